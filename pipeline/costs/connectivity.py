"""Which positions of a layer read which others, and the path lengths and sequential operations that follow (4).

A boolean matrix [n, n] is true at [i, j] if position i reads position j.
"""

import torch
from torch import Tensor


def distances(n: int) -> Tensor:
    """i - j for all positions, [n, n]."""
    return torch.arange(n)[:, None] - torch.arange(n)


def reads(kind: str, n: int, k: int, r: int, step: int) -> Tensor:
    """Which positions each one reads in one step: one layer of a stack, or one position of the recurrent layer.

    The step-th convolution of a stack is dilated by k^step, as in ByteNet, and by at most n - 1. Without dilation its
    paths have length n / k.
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
    """The longest of the shortest paths between two positions: the number of steps until no step connects more."""
    reached, steps = torch.eye(n, dtype=torch.bool), 0
    while True:
        further = (reads(kind, n, k, r, steps).float() @ reached.float()) > 0
        if torch.equal(further, reached):
            return steps
        reached, steps = further, steps + 1


def sequential_operations(kind: str, n: int) -> int:
    """The rounds needed if each round computes all positions of the output that wait for no other position."""
    waits = distances(n) == 1 if kind == "recurrent" else torch.zeros(n, n, dtype=torch.bool)
    done, rounds = torch.zeros(n, dtype=torch.bool), 0
    while not done.all():
        done, rounds = ~(waits & ~done).any(1), rounds + 1
    return rounds
