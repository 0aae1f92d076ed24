"""The costs of Table 1: the layers against torch, the operation counts, the fits and the path lengths."""

import json
import math
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import layers
from benchmarks.layers import RestrictedSelfAttention, kept_bytes, measured, power_law
from pipeline.reporting.paper_tables import table1
from pipeline.reporting.published import TABLE1
from transformer.attention import attention_weights, position_mask

KINDS = [*TABLE1]
ATTENTION, RECURRENT, CONVOLUTION, RESTRICTED = KINDS
FLOAT = 4  # bytes
OPERATIONS = {  # of the matrix products, forward and backward
    ATTENTION: lambda n, d, k, r: 12 * n**2 * d,
    RECURRENT: lambda n, d, k, r: 12 * n * d**2,
    CONVOLUTION: lambda n, d, k, r: 6 * k * n * d**2,
    RESTRICTED: lambda n, d, k, r: 36 * r * n * d,
}


def sequence(batch, n, d):
    return torch.randn(batch, n, d, generator=torch.Generator().manual_seed(1), requires_grad=True)


# The layers


@pytest.mark.parametrize("batch, n, r", [(1, 32, 4), (2, 33, 4), (3, 5, 8), (1, 1, 1), (2, 16, 16), (1, 31, 1)])
def test_banded_attention_is_masked_attention(batch, n, r):
    x = sequence(batch, n, 12)
    mask = position_mask(torch.arange(n), False, r)
    masked = attention_weights(x, x, mask, 1 / math.sqrt(12)) @ x
    banded = RestrictedSelfAttention(r)(x)
    torch.testing.assert_close(banded, masked)
    weights = torch.randn(masked.shape, generator=torch.Generator().manual_seed(2))
    gradients = [torch.autograd.grad(y, x, weights)[0] for y in (banded, masked)]
    torch.testing.assert_close(*gradients)


def operations(kind, n, d, k, r):
    """The operations that torch counts for the matrix products of the layer, forward and backward."""
    made, x = layers.KINDS[kind].layer(d, k, r), sequence(1, n, d)
    with FlopCounterMode(display=False) as counter:
        made(x).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, d, k, r", [(32, 16, 3, 4), (64, 24, 5, 8)])
def test_the_expected_operations_equal_the_count_of_torch(kind, n, d, k, r):
    first = 2 * d**2 if kind == RECURRENT else 0  # the initial state needs no gradient
    assert operations(kind, n, d, k, r) == OPERATIONS[kind](n, d, k, r) - first


def test_a_power_law_is_found():
    fit = power_law({(n, d): OPERATIONS[RECURRENT](n, d, 3, 16) for n in (64, 128, 256) for d in (64, 128, 256)})
    assert (fit["n"], fit["d"]) == pytest.approx((1, 2))


# Memory and time


def test_the_memory_of_a_layer_is_the_count():
    n, d, k, r = 32, 16, 3, 4
    by_hand = {ATTENTION: n * d + n * n, RECURRENT: n * d + (n + 1) * d, CONVOLUTION: n * d}  # x, and weights or states
    by_hand[RESTRICTED] = n * d + (n + 2 * r) * d + n * 3 * r  # x, also with padding, and weights
    for kind in KINDS:
        made = layers.KINDS[kind].layer(d, k, r)
        assert kept_bytes(partial(made, sequence(1, n, d)), made.parameters()) == FLOAT * by_hand[kind], kind
        assert layers.KINDS[kind].kept(n, d, k, r) == by_hand[kind], kind
    # shared memory counts once, and weights do not count
    x, linear = torch.randn(3, 5, requires_grad=True), torch.nn.Linear(5, 7)
    assert kept_bytes(lambda: x * x + x.view(5, 3).t().reshape(3, 5) * 0 + x * x, []) == 15 * FLOAT
    assert kept_bytes(lambda: linear(x), linear.parameters()) == 15 * FLOAT


# Table 1


def test_a_small_measurement_makes_a_row_of_table_1(tmp_path):
    rows = {kind: measured(kind, 1, lengths=(32, 64, 128), widths=(4, 8, 16)) for kind in KINDS}
    for kind, cost in rows.items():
        powers = [[cost[key][power] for power in "nd"] for key in ("memory", "expected_memory")]
        assert powers[0] == pytest.approx(powers[1]), kind
    sizes = {"n_d": [32, 128], "k": 3, "r": 16}
    path = tmp_path / "layers.json"
    path.write_text(json.dumps({"hardware": "Some CPU", "settings": sizes, "layers": rows}))
    table, time = table1(path), rows[ATTENTION]["time"]
    assert list(table.frame["layer"]) == KINDS and "on Some CPU" in table.notes[-1]
    assert table.frame["time grows as"][0] == f"n^{time['n']:.2f} d^{time['d']:.2f}"
