#!/usr/bin/env bash
# Expected: with gradient accumulation over 4 batches, a step that has 2, as the data end, uses the mean of 2, as one large batch would.
# Happens: Accelerate takes this step, as the data end, and divides by 4 nevertheless. The gradient of the last step of each epoch is half
#   as large here as that of the others, and so is the change with SGD. The gradient's norm, which a log shows, falls once an epoch. The
#   Trainer of transformers, which uses Accelerate, divides by 2.
# Versions: accelerate 1.15.0, transformers 5.24.0, torch 2.13.0 on a CPU. Date: 2026-11-30.
# Source: `backward` in src/accelerate/accelerator.py of https://github.com/huggingface/accelerate;
#   https://github.com/huggingface/transformers/pull/39659 (the correction in transformers) and
#   https://github.com/Lightning-AI/pytorch-lightning/issues/19987 (the same question for another package).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q accelerate==1.15.0 transformers==5.24.0 torch==2.13.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

print(*(f"{name} {version(name)}" for name in ("accelerate", "transformers", "torch")))
steps, rate, sentences = 4, 0.5, 6


class Model(torch.nn.Module):
    """Has a loss whose gradient is 1, whatever the sentences are."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": (self.weight * torch.ones_like(x)).mean()}


class Recorded(torch.optim.SGD):
    """Notes the gradients that a step uses."""

    def step(self, *arguments, **named):
        gradients.append(self.param_groups[0]["params"][0].grad.item())
        return super().step(*arguments, **named)


found = {}
for name in ("Accelerate", "Trainer"):
    gradients = found[name] = []
    model = Model()
    optimiser = Recorded(model.parameters(), rate)
    if name == "Trainer":
        options = TrainingArguments("out", per_device_train_batch_size=1, gradient_accumulation_steps=steps, use_cpu=True,
                                    num_train_epochs=2, report_to=[], disable_tqdm=True, max_grad_norm=0, save_strategy="no")
        data = [{"x": torch.ones(1)} for _ in range(sentences)]
        Trainer(model, options, train_dataset=data, optimizers=(optimiser, None)).train()
        continue
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=steps)
    model, optimiser, data = accelerator.prepare(model, optimiser, DataLoader(torch.ones(sentences, 1)))
    for _ in range(2):
        for batch in data:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch)["loss"])
                optimiser.step()
                optimiser.zero_grad()
print("gradients of the steps, after 4, 2, 4 and 2 batches:", found)
if found != {"Accelerate": [1, 0.5, 1, 0.5], "Trainer": [1, 1, 1, 1]}:
    sys.exit("changed: the last step of an epoch has another gradient")
PYTHON
