"""Adam and its learning rate (section 5.3)."""

from collections.abc import Iterable

import torch
from torch import nn

from transformer.config.training import TrainingConfig


def learning_rate(step: int, d_model: int, config: TrainingConfig) -> float:
    """lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3); steps count from 1.

    `no_warmup` has the peak, warmup^-0.5, in place of the rise, as Xiong et al. 2020 train for comparison.
    """
    assert step >= 1
    first = config.warmup**-0.5 if config.schedule == "no_warmup" else step * config.warmup**-1.5
    return config.lr_scale * d_model**-0.5 * min(step**-0.5, first)


def adam(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> torch.optim.Adam:
    """The paper's Adam. The learning rate is set at every step, so the one given here is never used."""
    betas = (config.beta1, config.beta2)
    return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=config.epsilon, fused=True)
