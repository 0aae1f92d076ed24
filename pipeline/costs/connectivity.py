"""Which positions of a layer read which others, and the resulting path lengths and sequential operations (section 4).

A boolean matrix [n, n] is true at [i, j] if position i reads position j.
"""

import torch
from torch import Tensor


def distances(n: int) -> Tensor:
    """Return i - j for all positions i and j, [n, n]."""
    return torch.arange(n)[:, None] - torch.arange(n)


def reads(kind: str, n: int, k: int, r: int, step: int) -> Tensor:
    """Return which positions each position reads in one step.

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
