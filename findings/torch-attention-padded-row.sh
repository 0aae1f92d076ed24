#!/usr/bin/env bash
# Expected: what nn.MultiheadAttention returns for a sentence that is all padding, such as one that fills up a batch, depends neither on
#   whether its weights are asked for nor on whether gradients are.
# Happens: in eval mode it is finite if no weights are asked for, and NaN if they are, which is the default. Under torch.no_grad() it is
#   NaN in both cases. So a validation loss may be finite with gradients and NaN without. The other sentences do not change.
# Versions: torch 2.13.0 on a CPU. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://github.com/pytorch/pytorch/issues/160064 (NaN if the weights are asked for) and
#   https://github.com/pytorch/pytorch/issues/41508 (NaN gradients).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torch==2.13.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys

import torch

print("torch", torch.__version__)
torch.manual_seed(1)
attention = torch.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True).eval()
states = torch.randn(2, 3, 8)
padding = torch.tensor([[False, False, True], [True, True, True]])
found = {}
for gradients in (True, False):
    for weights in (True, False):
        with torch.set_grad_enabled(gradients):
            outputs = attention(states, states, states, key_padding_mask=padding, need_weights=weights)[0]
        assert outputs[0].isfinite().all()
        found[gradients, weights] = "NaN" if outputs[1].isnan().all() else "finite" if outputs[1].isfinite().all() else "mixed"
        print(f"gradients: {gradients}, need_weights: {weights}: the padded sentence is {found[gradients, weights]}")
if list(found.values()) != ["NaN", "finite", "NaN", "NaN"]:
    sys.exit("changed: attention treats a sentence of padding in another way")
PYTHON
