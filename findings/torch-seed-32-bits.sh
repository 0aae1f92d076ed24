#!/usr/bin/env bash
# Expected: torch.manual_seed, which takes and reports seeds of 64 bits, draws different numbers for different seeds. So a training may
#   seed each step with (step << 32) + seed, or with a hash of 64 bits.
# Happens: on a CPU only the lower 32 bits count: 7, 7 + 2**32 and 7 + 2 * 2**32 draw the same numbers, so each of these steps has the
#   same dropout. initial_seed() returns all 64 bits nevertheless. The generator is mt19937, which takes 32 bits.
# Versions: torch 2.13.0. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html (the range of seeds) and
#   https://github.com/pytorch/pytorch/issues/87509 (mt19937 takes 32 bits).
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


def drop(seed):
    torch.manual_seed(seed)
    assert torch.initial_seed() == seed
    return torch.nn.functional.dropout(torch.ones(16), 0.5).bool().int().tolist()


seed, drawn = 7, []
for step in range(3):
    drawn.append(drop((step << 32) + seed))
    print(f"seed {(step << 32) + seed}: dropout keeps {drawn[-1]}")
other = drop(seed + 1)
print(f"seed {seed + 1}: dropout keeps {other}")
if drawn.count(drawn[0]) != 3 or other == drawn[0]:
    sys.exit("changed: the upper 32 bits of a seed count, or the lower do not")
PYTHON
