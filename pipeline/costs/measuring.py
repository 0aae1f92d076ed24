"""The time and memory of one layer, forward and backward, and the powers of n and d with which they grow."""

import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.costs.growth import PowerLaw


def seconds(layer: nn.Module, x_BND: Tensor) -> float:
    """Return the time of a forward and a backward pass, in seconds.

    On a CPU this is the CPU time of this process, summed over its threads. The stage layer_costs sets one thread.
    """
    gradient, inputs = torch.ones_like(x_BND), [x_BND, *layer.parameters()]
    start = clock(x_BND.device)
    torch.autograd.grad(layer(x_BND), inputs, gradient)
    return clock(x_BND.device) - start


def clock(device: torch.device) -> float:
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def kept_bytes(forward: Callable[[], Tensor], weights: Iterable[Tensor]) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, without the weights. Exact on any device."""
    kept: dict[int, int] = {}  # by address, because two tensors may share memory

    def keep(tensor: Tensor) -> Tensor:
        memory = tensor.untyped_storage()
        kept[memory.data_ptr()] = memory.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = forward()  # its graph keeps the tensors alive, so that no address is used twice
    for weight in weights:
        kept.pop(weight.untyped_storage().data_ptr(), None)
    assert output.requires_grad
    return sum(kept.values())


def power_law(places: Sequence[tuple[int, int]], costs: Iterable[float]) -> PowerLaw:
    """Fit powers of n and d to the costs at these (n, d), by least squares on the logarithms."""
    logs, (lengths, widths) = np.log(np.array(list(costs), dtype=np.float64)), np.log(np.array(places, np.float64)).T
    factors = np.stack([np.ones_like(lengths), lengths, widths], axis=1)
    solution, *_ = np.linalg.lstsq(factors, logs, rcond=None)
    residual, total = ((logs - factors @ solution) ** 2).sum(), ((logs - logs.mean()) ** 2).sum()
    scale, n, d = map(float, solution)
    return PowerLaw(math.exp(scale), n, d, r_squared=float(1 - residual / total))
