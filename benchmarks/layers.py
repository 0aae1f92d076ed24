"""What the four layers of Table 1 cost (section 4): time and memory.

    python -m benchmarks.layers [--rounds 4] [--out results/layers/layers.json]

Times one layer of each kind, forward and backward, with n and d from LARGE, in one thread and with one sentence,
and fits powers of n and d. Writes the file from which the report makes Table 1.

Each layer maps a sequence of n positions to a sequence of n positions. Both kinds of self-attention have one head, and x is
query, key and value. They leave out the projections, n d^2 operations each, as the paper's count does.

Shapes: B sentences, N positions, D dimensions; G blocks of R positions, and a window of W = 3 R around each.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.running import stage
from pipeline.running.hardware import commit, hardware
from transformer.attention import attention_weights
from transformer.files import write_json

LARGE = (256, 512, 1024)  # n and d for the fits: at small sizes, constant costs hide the growth
KERNEL, NEIGHBOURHOOD = 3, 16  # k of the convolution; r, positions on either side


class SelfAttention(nn.Module):
    """softmax(x x^T / sqrt(d)) x: every position attends to every position, and all n^2 weights are kept."""

    def forward(self, x_BND: Tensor) -> Tensor:
        return attention_weights(x_BND, x_BND, None, 1 / math.sqrt(x_BND.shape[-1])) @ x_BND


class RestrictedSelfAttention(nn.Module):
    """Self-attention of every position to the positions at most r away, in O(r n d) operations.

    Each block of r positions attends to itself and to the two blocks around it. The model's setting `neighbourhood`
    instead masks full attention, and costs as much as full attention.
    """

    def __init__(self, r: int) -> None:
        super().__init__()
        self.r = r

    def forward(self, x_BND: Tensor) -> Tensor:
        n, r = x_BND.shape[1], self.r
        missing, scale = -n % r, 1 / math.sqrt(x_BND.shape[-1])
        q_BGRD = F.pad(x_BND, (0, 0, 0, missing)).unflatten(1, (-1, r))
        k_BGWD = F.pad(x_BND, (0, 0, r, missing + r)).unfold(1, 3 * r, r).transpose(-2, -1)
        weights_BGRW = attention_weights(q_BGRD, k_BGWD, self.mask(n, x_BND.device), scale)
        return (weights_BGRW @ k_BGWD).flatten(1, 2)[:, :n]

    def mask(self, n: int, device: torch.device) -> Tensor:
        """True where a query may attend to a key, [G, R, W]: the key is at most r away and not padding.

        A query that is padding attends to the last real positions, so that every query has a key.
        """
        r = self.r
        query_R1, key_W = torch.arange(r, device=device)[:, None], torch.arange(-r, 2 * r, device=device)
        near_RW = (query_R1 - key_W).abs() <= r
        position_G1W = torch.arange(0, n, r, device=device)[:, None, None] + key_W
        return near_RW & (position_G1W >= 0) & (position_G1W < n)


class Recurrent(nn.RNN):
    """h_t = tanh(W x_t + U h_(t-1) + b): the simplest recurrent layer; an LSTM computes four such terms."""

    def forward(self, x_BND: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x_BND)[0]


class Convolutional(nn.Conv1d):
    """A convolution of k positions, k odd, over all dimensions (not separable)."""

    def forward(self, x_BND: Tensor) -> Tensor:
        return super().forward(x_BND.transpose(1, 2)).transpose(1, 2)


@dataclass(frozen=True)
class Kind:
    """A kind of layer, and its expected cost for one sentence, as functions of n, d, k and r.

    layer: a layer for d, k and r.
    kept: how many numbers the backward pass needs from the forward pass, without the weights. They are the input, the
    states and the attention weights.
    """

    layer: Callable[[int, int, int], nn.Module]
    kept: Callable[[int, int, int, int], float]


KINDS = {
    "self-attention": Kind(lambda d, k, r: SelfAttention(), lambda n, d, k, r: n**2 + n * d),
    "recurrent": Kind(lambda d, k, r: Recurrent(d, d, batch_first=True), lambda n, d, k, r: (2 * n + 1) * d),
    "convolutional": Kind(lambda d, k, r: Convolutional(d, d, k, padding=k // 2), lambda n, d, k, r: n * d),
    "self-attention (restricted)": Kind(
        lambda d, k, r: RestrictedSelfAttention(r), lambda n, d, k, r: (2 * n + 2 * r) * d + 3 * r * n
    ),
}


def seconds(layer: nn.Module, x_BND: Tensor) -> float:
    """Return the CPU time of a forward and a backward pass, in seconds, summed over the threads of this process."""
    gradient, inputs = torch.ones_like(x_BND), [x_BND, *layer.parameters()]
    start = time.process_time()
    torch.autograd.grad(layer(x_BND), inputs, gradient)
    return time.process_time() - start


def kept_bytes(forward: Callable[[], Tensor], weights: Iterable[Tensor]) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, without the weights."""
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


def power_law(costs: dict[tuple[int, int], float]) -> dict[str, float]:
    """Fit scale * n^n * d^d to the costs by (n, d): least squares on the logarithms, and the R^2 of this fit."""
    logs, (lengths, widths) = np.log(np.array(list(costs.values()))), np.log(np.array(list(costs), np.float64)).T
    factors = np.stack([np.ones_like(lengths), lengths, widths], axis=1)
    solution, *_ = np.linalg.lstsq(factors, logs, rcond=None)
    residual, total = ((logs - factors @ solution) ** 2).sum(), ((logs - logs.mean()) ** 2).sum()
    scale, n, d = map(float, solution)
    return {"scale": math.exp(scale), "n": n, "d": d, "r_squared": float(1 - residual / total)}


def measured(kind: str, rounds: int, lengths: Sequence[int] = LARGE, widths: Sequence[int] = LARGE) -> dict[str, Any]:
    """A row of Table 1. The time of a layer is the shortest of all rounds."""
    times: dict[tuple[int, int], float] = {}
    kept: dict[tuple[int, int], float] = {}
    for _, n, d in product(range(rounds), lengths, widths):
        torch.manual_seed(1)
        made = KINDS[kind].layer(d, KERNEL, NEIGHBOURHOOD)
        x_BND = torch.randn(1, n, d, requires_grad=True)
        kept[n, d] = kept_bytes(partial(made, x_BND), made.parameters())  # this call is also the warm-up
        times[n, d] = min(times.get((n, d), math.inf), seconds(made, x_BND))
    counted = {(n, d): KINDS[kind].kept(n, d, KERNEL, NEIGHBOURHOOD) for n, d in kept}
    return {
        "time": power_law(times),
        "memory": power_law(kept),
        "expected_memory": power_law(counted),
    }


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    layers = {kind: measured(kind, arguments.rounds) for kind in KINDS}
    here = hardware(torch.device("cpu"))
    sizes = {"n_d": [LARGE[0], LARGE[-1]], "k": KERNEL, "r": NEIGHBOURHOOD}
    made_on = {"hardware": f"{here['hardware']}, {here['instructions']}", "torch": here["torch"], "commit": commit()}
    write_json(arguments.out, {**made_on, "settings": sizes, "layers": layers})


if __name__ == "__main__":
    parser = stage.parser("benchmarks.layers", __doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/layers/layers.json"))
    stage.run(main, parser, checked=False)
