"""Adam and its learning rate (section 5.3)."""

from collections.abc import Iterable

import torch
from torch import nn

from transformer.config.training import TrainingConfig


def learning_rate(step: int, d_model: int, config: TrainingConfig) -> float:
    """lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (5.3, equation 3). The first step is 1.

    The schedule `no_warmup` replaces the rise by its peak, warmup^-0.5, as in the comparison of Xiong et al. 2020.
    """
    assert step >= 1
    rise = config.warmup**-0.5 if config.schedule == "no_warmup" else step * config.warmup**-1.5
    return config.lr_scale * d_model**-0.5 * min(step**-0.5, rise)


def adam(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> torch.optim.AdamW:
    """Adam with the settings of 5.3. Training sets the learning rate before each step.

    A weight decay above 0, which the paper does not use, is decoupled (Loshchilov and Hutter 2019): each step multiplies
    all weights by 1 - learning rate * weight decay. With 0, AdamW computes the same bytes as Adam.
    """
    betas = (config.beta1, config.beta2)
    decay = config.weight_decay
    return torch.optim.AdamW(parameters, lr=0.0, betas=betas, eps=config.epsilon, weight_decay=decay, fused=True)
