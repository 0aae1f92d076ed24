#!/usr/bin/env bash
# Expected: the position encodings of MarianMTModel are sinusoids (MarianSinusoidalPositionalEmbedding, made with _freeze=True). A training does
#   not change them, so save_pretrained leaves them out and from_pretrained computes them. A model that was trained, saved and loaded has
#   the loss that it had before.
# Happens: that holds for a model made from a MarianConfig. from_pretrained replaces the frozen parameters by others with
#   requires_grad=True. A training of a loaded model then changes them, save_pretrained leaves the changed ones out, and the model that is
#   loaded again is not the one that was trained: it has another loss. No warning is printed.
# Versions: transformers 5.24.0, torch 2.13.0 on a CPU. Date: 2026-11-30.
# Source: `_load_parameter_into_model` in src/transformers/modeling_utils.py, and `_keys_to_ignore_on_save` in
#   src/transformers/models/marian/modeling_marian.py, of https://github.com/huggingface/transformers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torch==2.13.0 numpy==2.4.6 transformers==5.24.0

venv/bin/python - <<'PYTHON'
import sys

import torch
import transformers
from transformers import MarianConfig, MarianMTModel

print("transformers", transformers.__version__, "torch", torch.__version__)
stacks = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
          {"layers": 1, "attention_heads": 2, "ffn_dim": 16}.items()}
special = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 2, "forced_eos_token_id": None}
torch.manual_seed(1)
made = MarianMTModel(MarianConfig(vocab_size=20, d_model=16, dropout=0.0, **stacks, **special))
made.save_pretrained("made")
line = {"input_ids": torch.tensor([[5, 6, 7, 3]]), "labels": torch.tensor([[7, 6, 5, 3]])}


def trained_and_loaded(model):
    """Whether the sinusoids are trainable, and the loss after a training, before and after the model is saved and loaded."""
    trainable = model.model.encoder.embed_positions.weight.requires_grad
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(50):
        optimiser.zero_grad()
        model(**line).loss.backward()
        optimiser.step()
    model.save_pretrained("trained")
    losses = [each.eval()(**line).loss.item() for each in (model, MarianMTModel.from_pretrained("trained"))]
    print(f"sinusoids trainable: {trainable}, loss {losses[0]:.4f}, after saving and loading {losses[1]:.4f}")
    return trainable, losses[0] == losses[1]


found = trained_and_loaded(made), trained_and_loaded(MarianMTModel.from_pretrained("made").train())
if found != ((False, True), (True, False)):
    sys.exit("changed: a loaded Marian model keeps its sinusoids")
PYTHON
