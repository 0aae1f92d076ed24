"""The costs of Table 1: the layers against torch, the operation counts, the fits and the path lengths."""

import json
import math
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.layers import (
    COUNTS,
    RestrictedSelfAttention,
    kept_bytes,
    layer,
    measured,
    power_law,
)
from pipeline.reporting.paper_tables import table1
from pipeline.reporting.published import TABLE1
from transformer.attention import attention_weights, position_mask

KINDS = [row.layer for row in TABLE1]
ATTENTION, RECURRENT, CONVOLUTION, RESTRICTED = KINDS
FLOAT = 4  # bytes


def sequence(batch, n, d):
    return torch.randn(batch, n, d, generator=torch.Generator().manual_seed(1), requires_grad=True)


# The layers


@pytest.mark.parametrize("batch, n, r", [(1, 32, 4), (2, 33, 4), (3, 5, 8), (1, 1, 1), (2, 16, 16), (1, 31, 1)])
def test_banded_attention_is_masked_attention(batch, n, r):
    x = sequence(batch, n, 12)
    mask = position_mask(n, False, r, x.device)
    masked = attention_weights(x, x, mask, 1 / math.sqrt(12)) @ x
    banded = RestrictedSelfAttention(r)(x)
    torch.testing.assert_close(banded, masked)
    weights = torch.randn(masked.shape, generator=torch.Generator().manual_seed(2))
    gradients = [torch.autograd.grad(y, x, weights)[0] for y in (banded, masked)]
    torch.testing.assert_close(*gradients)


def operations(kind, n, d, k, r):
    """The operations that torch counts for the matrix products of the layer, forward and backward."""
    made, x = layer(kind, d, k, r), sequence(1, n, d)
    with FlopCounterMode(display=False) as counter:
        made(x).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d, k, r", [(32, 16, 3, 4), (64, 24, 5, 8)])
def test_the_expected_operations_equal_the_count_of_torch(kind, n, d, k, r):
    first = 2 * d**2 if kind == RECURRENT else 0  # the initial state needs no gradient
    assert operations(kind, n, d, k, r) == COUNTS[kind].operations(n, d, k, r) - first


@pytest.mark.parametrize("kind", KINDS)
def test_the_operations_grow_as_the_paper_states(kind):
    (row,) = [row for row in TABLE1 if row.layer == kind]
    places = [(n, d) for n in (64, 128, 256) for d in (64, 128, 256)]
    fit = power_law({(n, d): COUNTS[kind].operations(n, d, 3, 16) for n, d in places})
    powers = {"O(n^2 d)": (2, 1), "O(n d^2)": (1, 2), "O(k n d^2)": (1, 2), "O(r n d)": (1, 1)}
    assert (fit["n"], fit["d"]) == pytest.approx(powers[row.complexity])
    wider, further = (COUNTS[kind].operations(64, 64, k, r) for k, r in ((6, 16), (3, 32)))
    assert wider == (2 if "k " in row.complexity else 1) * COUNTS[kind].operations(64, 64, 3, 16)
    assert further == (2 if "r " in row.complexity else 1) * COUNTS[kind].operations(64, 64, 3, 16)


# Memory and time


def test_the_memory_of_a_layer_equals_a_count_by_hand():
    n, d, k, r = 32, 16, 3, 4
    by_hand = {
        ATTENTION: n * d + n * n,  # x and the weights
        RECURRENT: n * d + (n + 1) * d,  # x and the states, including the initial one
        CONVOLUTION: n * d,  # x
        # x as queries, x with r positions of padding at both ends as keys and values, and the weights
        RESTRICTED: n * d + (n + 2 * r) * d + n * 3 * r,
    }
    for kind in KINDS:
        made = layer(kind, d, k, r)
        assert kept_bytes(partial(made, sequence(1, n, d)), made.parameters()) == FLOAT * by_hand[kind], kind
        assert COUNTS[kind].kept(n, d, k, r) == by_hand[kind], kind


def test_shared_memory_counts_once_and_weights_do_not_count():
    x, linear = torch.randn(3, 5, requires_grad=True), torch.nn.Linear(5, 7)
    assert kept_bytes(lambda: x * x + x.view(5, 3).t().reshape(3, 5) * 0 + x * x, []) == 15 * FLOAT
    assert kept_bytes(lambda: linear(x), linear.parameters()) == 15 * FLOAT


@pytest.mark.parametrize("n, d", [(2.0, 1.0), (1.0, 2.0), (0.5, -1.25)])
def test_the_fit_recovers_powers(n, d):
    places = [(32, 16), (64, 16), (64, 128), (128, 32)]
    fit = power_law({(a, b): 3e-9 * a**n * b**d for a, b in places})
    assert fit == pytest.approx({"scale": 3e-9, "n": n, "d": d, "r_squared": 1})
    places = [(n, d) for n in (32, 64, 128) for d in (32, 64, 128)]
    assert power_law({(n, d): n * d * (3 if (n + d) % 64 else 1) for n, d in places})["r_squared"] < 0.95


# Path lengths and sequential operations


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


@pytest.mark.parametrize("n, k, r", [(2, 3, 1), (9, 3, 2), (27, 5, 4), (64, 3, 16), (50, 7, 7)])
def test_paths_and_sequential_operations_are_those_of_the_graph(n, k, r):
    for kind in KINDS:
        assert COUNTS[kind].sequential(n) == sequential_operations(kind, n), kind
        assert COUNTS[kind].path(n, k, r) == path_length(kind, n, k, r), kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradients_agree_with_the_connectivity(kind):
    """The gradient of an output is zero exactly at the positions that one layer does not connect to it."""
    n, k, r = 12, 3, 2
    made, x = layer(kind, 6, k, r), sequence(1, n, 6)
    y = made(x)
    depends = torch.stack([torch.autograd.grad(y[0, i].sum(), x, retain_graph=True)[0][0].ne(0).any(-1) for i in range(n)])
    read = reads(kind, n, k, r, 0)
    assert torch.equal(depends, torch.linalg.matrix_power(read.float(), n) > 0 if kind == RECURRENT else read)


@pytest.mark.parametrize("kind", KINDS)
def test_the_autograd_graph_agrees_with_the_sequential_operations(kind):
    """The longest path in the autograd graph grows with n for the recurrent layer, and is constant for the others."""

    def chain(n):
        depths = {}

        def depth(node):
            if node not in depths:
                depths[node] = 1 + max((depth(before) for before, _ in node.next_functions if before), default=0)
            return depths[node]

        return depth(layer(kind, 4, 3, 2)(sequence(1, n, 4)).grad_fn)

    grown, waits = chain(24) - chain(12), COUNTS[kind].sequential(24) - COUNTS[kind].sequential(12)
    assert (grown >= waits == 12) if kind == RECURRENT else (grown == waits == 0)


# Table 1


def test_a_small_measurement_makes_a_row_of_table_1(tmp_path):
    rows = {kind: measured(kind, 1, lengths=(32, 64, 128), widths=(4, 8, 16)) for kind in KINDS}
    for kind, cost in rows.items():
        powers = [[cost[key][power] for power in "nd"] for key in ("memory", "expected_memory")]
        assert powers[0] == pytest.approx(powers[1]), kind
    sizes = {"n_d": [32, 128], "k": 3, "r": 16, "counted_at_n": 64}
    path = tmp_path / "layers.json"
    path.write_text(json.dumps({"hardware": "Some CPU", "settings": sizes, "layers": rows}))
    table, time = table1(path), rows[ATTENTION]["time"]
    assert list(table.frame["layer"]) == [row.layer for row in TABLE1] and "on Some CPU" in table.notes[-1]
    assert table.frame["time grows as"][0] == f"n^{time['n']:.2f} d^{time['d']:.2f}"
    assert list(table.frame["sequential operations, counted"]) == [1, 64, 1, 1]
    assert list(table.frame["path length, computed"]) == [1, 63, 5, 4]


def test_table_1_without_a_file_is_the_paper_s_formulae_and_dashes(tmp_path):
    rows = table1(tmp_path / "none.json").rows()
    assert [row["complexity per layer"] for row in rows] == [row.complexity for row in TABLE1]
    assert all(list(row.values()).count(None) == 5 for row in rows)
