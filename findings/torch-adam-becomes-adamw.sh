#!/usr/bin/env bash
# Expected: an optimiser that loads a state keeps its algorithm: Adam goes on as Adam, whose weight decay is a part of the gradient, and
#   AdamW as AdamW.
# Happens: AdamW does, and Adam does not: with the state of AdamW, it decays as AdamW does, because decoupled_weight_decay is an entry of
#   the groups that load_state_dict replaces. It takes the state's steps to the last bit, and its type is still Adam.
# Versions: torch 2.13.0. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html (decoupled_weight_decay),
#   https://github.com/pytorch/pytorch/pull/118857 (one class for both) and https://github.com/pytorch/pytorch/pull/144972 (AdamW keeps it).
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


def steps(optimiser, weights, count=3):
    for _ in range(count):
        optimiser.zero_grad()
        (weights * torch.tensor([0.1, 0.2, 0.3])).sum().backward()
        optimiser.step()
    return weights.detach().clone()


def made(kind):
    weights = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    return kind([weights], lr=0.1, weight_decay=0.1), weights


after = {}
for old in (torch.optim.Adam, torch.optim.AdamW):
    for new in (torch.optim.Adam, torch.optim.AdamW):
        before, weights = made(old)
        started = steps(before, weights)
        loaded, copy = made(new)
        copy.data.copy_(started)
        loaded.load_state_dict(before.state_dict())
        assert type(loaded) is new
        after[old.__name__, new.__name__] = steps(loaded, copy)
        decoupled = loaded.param_groups[0]["decoupled_weight_decay"]
        print(f"state of {old.__name__}, then {new.__name__}: {copy.tolist()}, decoupled_weight_decay={decoupled}")
becomes = torch.equal(after["AdamW", "Adam"], after["AdamW", "AdamW"])
stays = not torch.equal(after["Adam", "AdamW"], after["Adam", "Adam"])
if not becomes or not stays:
    sys.exit("changed: Adam keeps its weight decay, or AdamW loses its own")
PYTHON
