#!/usr/bin/env bash
# Expected: Xavier's initialisation gives the projections of queries, keys and values, 512 by 512 each, a deviation of sqrt(2 / 1024),
#   0.0442, however nn.MultiheadAttention stores them.
# Happens: three projections in one matrix are initialised as one layer of 512 to 1,536: the deviation is 0.0312, smaller by a factor of
#   sqrt(2). If kdim is 511 instead of 512, three matrices are stored, and the deviation is 0.0442. The projection of the output gets
#   neither: it has that of nn.Linear, 0.0255. A comparison of layers that are built both ways begins with other scales.
# Versions: torch 2.13.0 on a CPU. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://github.com/pytorch/pytorch/issues/166378 and https://github.com/pytorch/pytorch/issues/57117 (the output).
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
together, apart = torch.nn.MultiheadAttention(512, 8), torch.nn.MultiheadAttention(512, 8, kdim=511)
found = {
    "queries, one matrix": together.in_proj_weight[:512],
    "queries, three matrices": apart.q_proj_weight,
    "output": together.out_proj.weight,
}
found = {name: weights.std().item() for name, weights in found.items()}
for name, deviation in found.items():
    print(f"{name}: {deviation:.4f}")
right = {"queries, one matrix": 2048**-0.5 * 2**0.5, "queries, three matrices": 1024**-0.5 * 2**0.5, "output": 1536**-0.5}
sys.exit(None if all(abs(found[name] / right[name] - 1) < 0.01 for name in right) else "changed: the scales are others")
PYTHON
