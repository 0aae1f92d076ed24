"""Dropout (section 5.4), with masks drawn sixteen bits an element on a processor.

torch draws a processor's masks one number an element, which is a tenth of a small model's training; four elements share
one 64-bit number here, so the rate is held to 2^-16. On a GPU torch's own is fused and is used.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """`x` with elements set to zero with probability `p` and the others divided by 1 - p, when training."""
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    return x * scaled_mask(x, p)


def scaled_mask(x: Tensor, p: float) -> Tensor:
    """Zeros with probability `p`, otherwise 1 / (1 - p)."""
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= round(p * 2**16) - 2**15
    return keep.to(x.dtype).mul_(1 / (1 - p))
