#!/usr/bin/env bash
# Expected: a training loop inside torch.autocast trains as one that enters it anew at each step: optimizer.step() changes what the next
#   forward pass computes.
# Happens: inside one autocast, each weight is cast once and the copy kept until the end, also after the optimiser changed the weight. The
#   loss stays at its first value, with the gradients of the first weights, while the weights move on with each step. Nothing warns.
#   `cache_enabled=False` mends it. So does autocast around the forward pass only, which the documentation asks for without this reason.
# Versions: torch 2.13.0. Date: 2026-11-30. The usual index has the build with CUDA, which is large; the one for CPUs is enough.
# Source: https://docs.pytorch.org/docs/stable/amp.html (autocast, cache_enabled) and
#   https://github.com/pytorch/pytorch/pull/63552 (the cache is cleared when the context is left).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torch==2.13.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import contextlib
import sys

import torch

print("torch", torch.__version__)


def train(around_all, around_each, *, cache=True):
    """The losses of eight steps in bfloat16, and how far the weights moved."""
    torch.manual_seed(1)
    model, inputs = torch.nn.Linear(4, 1), torch.randn(16, 4)
    first, losses = model.weight.detach().clone(), []
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def low(on):
        return torch.autocast("cpu", torch.bfloat16, cache_enabled=cache) if on else contextlib.nullcontext()

    with low(around_all):
        for _ in range(8):
            with low(around_each):
                loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(round(loss.item(), 4))
    return losses, (model.weight - first).norm().item()


each, all_steps, uncached = train(False, True), train(True, False), train(True, False, cache=False)
for name, (losses, moved) in (("each step", each), ("all steps", all_steps), ("all steps, no cache", uncached)):
    print(f"autocast around {name}: losses {losses}, the weights moved by {moved:.2f}")
learns = all(losses[-1] < 0.5 * losses[0] for losses, _ in (each, uncached))
if not learns or len(set(all_steps[0])) != 1 or all_steps[1] < 0.1:
    sys.exit("changed: autocast sees the changed weights, or training without its cache does not learn")
PYTHON
