"""The four layers of Table 1 (section 4), and their path lengths and sequential operations.

Each layer maps a sequence of n positions to a sequence of n positions. Both kinds of self-attention have one head, and x is
query, key and value. They leave out the projections, n d^2 operations each, as the paper's count does.

Shapes: B sentences, N positions, D dimensions; G blocks of R positions, and a window of W = 3 R around each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import attention_weights


@dataclass(frozen=True)
class Counts:
    """The expected cost of a layer for one sentence, as functions of n, d, k and r.

    operations: those of the matrix products, forward and backward.
    kept: how many numbers the backward pass needs from the forward pass, without the weights. They are the input, the
    states and the attention weights.
    """

    operations: Callable[[int, int, int, int], float]
    kept: Callable[[int, int, int, int], float]


COUNTS = {
    "self-attention": Counts(lambda n, d, k, r: 12 * n**2 * d, lambda n, d, k, r: n**2 + n * d),
    "recurrent": Counts(lambda n, d, k, r: 12 * n * d**2, lambda n, d, k, r: (2 * n + 1) * d),
    "convolutional": Counts(lambda n, d, k, r: 6 * k * n * d**2, lambda n, d, k, r: n * d),
    "self-attention (restricted)": Counts(
        lambda n, d, k, r: 36 * r * n * d, lambda n, d, k, r: (2 * n + 2 * r) * d + 3 * r * n
    ),
}


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


class Recurrent(nn.Module):
    """h_t = tanh(W x_t + U h_(t-1) + b): the simplest recurrent layer; an LSTM computes four such terms."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(d, d, batch_first=True)

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.rnn(x_BND)[0]


class Convolutional(nn.Module):
    """A convolution of k positions, k odd, over all dimensions (not separable)."""

    def __init__(self, d: int, k: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d, d, k, padding=k // 2)

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.convolution(x_BND.transpose(1, 2)).transpose(1, 2)


def layer(kind: str, d: int, k: int, r: int) -> nn.Module:
    """A layer of Table 1 by its name in the table."""
    return {
        "self-attention": lambda: SelfAttention(),
        "recurrent": lambda: Recurrent(d),
        "convolutional": lambda: Convolutional(d, k),
        "self-attention (restricted)": lambda: RestrictedSelfAttention(r),
    }[kind]()


def distances(n: int) -> Tensor:
    """Return i - j for all positions i and j, [n, n]."""
    return torch.arange(n)[:, None] - torch.arange(n)


def reads(kind: str, n: int, k: int, r: int, step: int) -> Tensor:
    """Return which positions each position reads in one step, [n, n]: true at [i, j] if position i reads position j.

    A step is one layer of a stack, or one position of the recurrent layer. The convolution of step `step` is dilated by
    k^step, as in ByteNet, but by at most n - 1. Without dilation the path length would be O(n / k).
    """
    distance = distances(n)
    if kind == "self-attention":
        return torch.ones(n, n, dtype=torch.bool)
    if kind == "self-attention (restricted)":
        return distance.abs() <= r
    if kind == "recurrent":
        return (distance == 0) | (distance == 1)
    assert kind == "convolutional"
    dilation = min(k**step, n - 1)
    return (distance % dilation == 0) & (distance.abs() <= k // 2 * dilation)


def path_length(kind: str, n: int, k: int, r: int) -> int:
    """Return the length of the longest of the shortest paths between two positions, in steps."""
    reached, steps = torch.eye(n, dtype=torch.bool), 0
    while True:
        further = (reads(kind, n, k, r, steps).float() @ reached.float()) > 0
        if torch.equal(further, reached):
            return steps
        reached, steps = further, steps + 1


def sequential_operations(kind: str, n: int) -> int:
    """Return the number of rounds. Each round computes all positions whose inputs are ready."""
    waits = distances(n) == 1 if kind == "recurrent" else torch.zeros(n, n, dtype=torch.bool)
    done, rounds = torch.zeros(n, dtype=torch.bool), 0
    while not done.all():
        done, rounds = ~(waits & ~done).any(1), rounds + 1
    return rounds
