"""The value of a prefix: the expected score, from 0 to 1, of the translations that the model samples from it.

A head on the decoder's output predicts the distribution of the score over bins. A search that has decoded a prefix
therefore knows its value without a further call of the model. The head is trained by cross-entropy on the prefixes of
sampled translations (after Leblond et al. 2021).

Shapes: M prefixes, D d_model, W bins; `...` stands for any dimensions.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.checkpoint import load_weights, read_tensors, write_tensors
from transformer.config.reading import UserError, read_saved
from transformer.config.value import ValueConfig

VALUE = "value.safetensors"  # in a model folder
Values = Callable[[Tensor], Tensor]
"""Takes the decoder's output [..., D], returns the value of each prefix [...], between 0 and 1."""


class ValueHead(nn.Module):
    """Two linear layers, and bins whose centres are evenly spaced from 0 to 1."""

    centre_W: Tensor

    def __init__(self, d_model: int, config: ValueConfig) -> None:
        super().__init__()
        self.config = config
        self.inner = nn.Linear(d_model, config.hidden)
        self.outer = nn.Linear(config.hidden, config.bins)
        self.register_buffer("centre_W", torch.linspace(0, 1, config.bins), persistent=False)

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of the distribution over the bins, [..., W], in float32."""
        return self.outer(F.relu(self.inner(hidden.float())))

    def forward(self, hidden: Tensor) -> Tensor:
        """The mean of the distribution, [...]."""
        return self.logits(hidden).softmax(-1) @ self.centre_W

    def target(self, score_M: Tensor) -> Tensor:
        """The distribution over the two nearest bins whose mean is the score, [M, W]."""
        distance_MW = (score_M[:, None] - self.centre_W).abs() * (self.config.bins - 1)
        return (1 - distance_MW).clamp(min=0)


def save(head: ValueHead, path: Path, description: dict[str, Any]) -> None:
    """Write the head with its settings. The file also holds `description`."""
    write_tensors(path, head.state_dict(), {**description, "settings": asdict(head.config)})


def load(path: Path, d_model: int, device: torch.device) -> tuple[ValueHead, dict[str, Any]]:
    """The head in a file, and the description in the file.

    Raises UserError for a file that is missing or damaged, holds no value head or belongs to a model of another width.
    """
    tensors, description = read_tensors(path)
    if "settings" not in description:
        raise UserError(f"{path} holds no value head; a file that the stage `train_value` wrote is expected")
    head = ValueHead(d_model, read_saved(ValueConfig, description["settings"], f"{path}: settings"))
    load_weights(head, tensors, path)
    return head.to(device).eval().requires_grad_(False), description
