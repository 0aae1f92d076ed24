#!/usr/bin/env bash
# Expected: load_state_dict(state, assign=True) gives the model that load_state_dict(state) gives, without a copy. The documentation says
#   that only properties of the tensors, as their type, are then those of the state. A matrix that is both the embedding and the output
#   projection, as in section 3.4 of "Attention Is All You Need", stays one.
# Happens: it becomes two parameters over the same memory. The model translates as before, so nothing is noticed; but its parameters are
#   counted twice, the norm of the gradient that is clipped is another, and Adam changes the matrix twice in each step. With a model made
#   on the device "meta", to_empty() makes two matrices, which a training drives apart.
# Versions: torch 2.13.0 on a CPU. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://github.com/pytorch/pytorch/issues/188346 and
#   https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html (load_state_dict, to_empty).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torch==2.13.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys

import torch
from torch import nn

print("torch", torch.__version__)


def tied():
    embedding, projection = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    projection.weight = embedding.weight
    return nn.Sequential(embedding, projection)


def on_meta():
    with torch.device("meta"):
        return tied()


torch.manual_seed(1)
torch.save(tied().state_dict(), "model.pt")
words, following = torch.tensor([1, 2, 3, 4]), torch.tensor([2, 3, 4, 5])
ways = {
    "load_state_dict": (tied(), False),
    "assign=True": (tied(), True),
    "to_empty, load_state_dict": (on_meta().to_empty(device="cpu"), False),
}
found = {}
for name, (model, assign) in ways.items():
    model.load_state_dict(torch.load("model.pt"), assign=assign)
    before, logits = model[0].weight.detach().clone(), model(words)
    nn.functional.cross_entropy(logits, following).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0).item()
    torch.optim.Adam(model.parameters(), lr=0.1).step()
    change = (model[0].weight - before).abs().max().item()
    numbers = sum(each.numel() for each in model.parameters())
    apart = not torch.equal(model[0].weight, model[1].weight)
    found[name] = numbers, round(change, 3), apart, round(logits.sum().item(), 4), round(norm, 4)
    print(f"{name}: {numbers} numbers, norm of the gradient {norm:.4f}, Adam with rate 0.1 changes by up to {change:.3f}, apart: {apart}")
plain, assigned, emptied = found.values()
same_model = plain[3] == assigned[3] == emptied[3] and plain[4] != assigned[4]
if not same_model or (plain[:3], assigned[:3], emptied[:3]) != ((40, 0.1, False), (80, 0.2, False), (80, 0.1, True)):
    sys.exit("changed: tied weights are still one parameter after loading")
PYTHON
