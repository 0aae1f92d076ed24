"""Dropout (section 5.4), on a CPU with 16 random bits for each element.

On a CPU, torch draws one random number for each element, which takes a tenth of the training time of a small model.
Here four elements share a 64-bit number, so the rate is rounded to a multiple of 2^-16.
"""

import threading

import torch
from torch import Tensor, nn


class Source(threading.local):
    """Where dropout on a CPU takes the random numbers of a thread from: a generator of its own, or torch's if it is None.

    Threads that share torch's generator would draw from it in an order that depends on their speed.
    """

    generator: torch.Generator | None = None


SOURCE = Source()


class Dropout(nn.Dropout):
    """As torch's dropout: in training, elements are 0 with probability `p` and otherwise divided by 1 - p."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p:
            return x
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=SOURCE.generator)
        draws = draws.view(torch.int16)[: x.numel()].view(x.shape)
        threshold = min(round(self.p * 2**16), 2**16 - 1) - 2**15  # `min` keeps it within int16 for p close to 1
        return x * torch.ge(draws, threshold, out=torch.empty_like(x)).mul_(1 / (1 - self.p))
