"""Adam and its learning rate (section 5.3)."""

from collections.abc import Iterable

import torch
from torch import nn

from transformer.config.training import TrainingConfig


def learning_rate(step: int, d_model: int, warmup: int, lr_scale: float = 1.0) -> float:
    """lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3); steps count from 1."""
    assert step >= 1
    return lr_scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def adam(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> torch.optim.Adam:
    """The paper's Adam. The learning rate is set at every step, so the one given here is never used."""
    betas = (config.beta1, config.beta2)
    return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=config.epsilon, fused=True)
