#!/usr/bin/env bash
# Expected: with the length penalty of 1 that is standard, the score of a translation that begins with a target_prefix is a mean: over the
#   tokens that follow the prefix, as in transformers, or over all.
# Happens: CTranslate2 adds up the log-probabilities of the tokens that follow, and divides by the number of all, those of the prefix too.
#   The longer the prefix, the less the length of what follows counts, and the more often a shorter translation comes first. Scores with
#   different prefixes cannot be compared. The model here is a toy with random weights.
# Versions: ctranslate2 4.8.5, numpy 2.4.6. Date: 2026-11-30.
# Source: https://opennmt.net/CTranslate2/python/ctranslate2.Translator.html (target_prefix, length_penalty), OpenNMT/CTranslate2,
#   include/ctranslate2/translation.h (the formula), and huggingface/transformers, generation/utils.py, which subtracts the prompt's length.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q ctranslate2==4.8.5 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.model_spec import visit_spec

print("ctranslate2", version("ctranslate2"))
words, width, generator = ["<unk>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz"], 16, numpy.random.default_rng(4)
rows = {"encodings": 64, "embeddings": len(words), "embeddings_0": len(words), "projection": len(words)}
rows |= {"ffn/linear_0": 2 * width, "self_attention/linear_0": 3 * width, "attention/linear_1": 2 * width}


def fill(part, name, value):
    if value is not None:
        return
    layer, kind = name.rsplit("/", 1)
    size = next((size for end, size in rows.items() if f"/{name if kind == end else layer}".endswith("/" + end)), width)
    columns = 2 * width if layer.endswith("ffn/linear_1") else width
    drawn = generator.standard_normal((size, columns) if kind in ("weight", "encodings") else size)
    fixed = {"gamma": numpy.ones(width), "beta": numpy.zeros(width)}
    setattr(part, kind, fixed.get(kind, drawn).astype(numpy.float32))


model = TransformerSpec.from_config((1, 1), num_heads=2, pre_norm=False)
visit_spec(model, fill)
model.decoder.projection.bias = numpy.zeros(len(words), numpy.float32)
model.decoder.projection.bias[words.index("</s>")] = 5
model.register_source_vocabulary(words)
model.register_target_vocabulary(words)
model.validate()
Path("toy").mkdir()
model.save("toy")
translator = ctranslate2.Translator("toy")
sentences, letters = ([list(line) for line in generator.choice(words[3:], (300, 8))] for _ in range(2))
longest, found = 50, {}
for length in (1, 8):
    prefixes = [line[:length] for line in letters]
    options = {"beam_size": 4, "num_hypotheses": 4, "return_scores": True, "max_decoding_length": longest}
    results = translator.translate_batch(sentences, target_prefix=prefixes, **options)
    errors, longer = [], 0
    for sentence, result in zip(sentences, results):
        scored = translator.score_batch([sentence] * len(result.hypotheses), result.hypotheses)
        new = [numpy.array(each.log_probs[length:longest]) for each in scored]  # also that of </s>
        for tokens, log_probs, score in zip(result.hypotheses, new, result.scores):
            if len(tokens) < longest:  # it has ended
                errors.append(abs(log_probs.sum() / (len(tokens) + 1) - score))
        best = max(range(len(new)), key=lambda place: new[place].mean())
        longer += len(new[best]) > len(new[0])
    found[length] = max(errors), longer
    print(f"prefix of {length}: the score is the sum over what follows by the length of all, for {len(errors)} translations;", end=" ")
    print(f"for {longer} of {len(sentences)} sentences, a longer one has a better mean than the first")
exact = all(error < 1e-3 for error, _ in found.values())
if not exact or found[8][1] < 1.5 * found[1][1]:
    sys.exit("changed: the score is divided by another length")
PYTHON
