#!/usr/bin/env bash
# Expected: repetition_penalty makes tokens less likely that the model has already generated, so it does not hold back </s> in a sentence
#   that has not ended.
# Happens: BART starts the decoder with </s>, which then counts as generated: from the first token on, the penalty falls on the end of
#   the sentence too. Translations become longer or do not end. With `prompt_ignore_length=1`, which generate() does not set, the same
#   penalty leaves </s> alone. The model here is a toy with random weights.
# Versions: transformers 5.24.0, torch 2.13.0. Date: 2026-11-30.
# Source: https://huggingface.co/docs/transformers/internal/generation_utils (RepetitionPenaltyLogitsProcessor: previous tokens, of
#   decoder-only models also the prompt) and https://huggingface.co/docs/transformers/model_doc/bart (decoder_start_token_id).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q transformers==5.24.0 torch==2.13.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys

import torch
import transformers
from transformers import BartConfig, BartForConditionalGeneration, LogitsProcessorList, RepetitionPenaltyLogitsProcessor

transformers.logging.set_verbosity_error()
print("transformers", transformers.__version__, "torch", torch.__version__)
small = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}
sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in small.items()}
config = BartConfig(vocab_size=50, d_model=16, forced_eos_token_id=None, **sizes)
start, end, longest = config.decoder_start_token_id, config.eos_token_id, 40
print("decoder_start_token_id:", start, "eos_token_id:", end)
torch.manual_seed(0)
model = BartForConditionalGeneration(config).eval()
for parameter in model.parameters():
    if parameter.dim() > 1:
        torch.nn.init.normal_(parameter, std=0.3)
model.final_logits_bias[0, end] = 1
sources = torch.randint(4, config.vocab_size, (32, 8))


def mean_length(**options):
    outputs = model.generate(sources, max_new_tokens=longest, num_beams=1, do_sample=False, **options)[:, 1:]
    return sum((row.tolist() + [end]).index(end) for row in outputs) / len(outputs)


found = []
for penalty in (1.0, 1.2, 1.5):
    later = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(penalty, prompt_ignore_length=1)])
    found.append((mean_length(repetition_penalty=penalty), mean_length(logits_processor=later)))
    print(f"penalty {penalty}: mean length {found[-1][0]:.1f}, without a penalty on the start {found[-1][1]:.1f} (at most {longest})")
(plain, _), *penalised = found
if start != end or not all(all_tokens > later + 5 for all_tokens, later in penalised):
    sys.exit("changed: the penalty does not fall on the token that starts the decoder")
PYTHON
