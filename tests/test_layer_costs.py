"""The costs of Table 1: the layers against torch, the operation counts, the fits and the path lengths."""

import argparse
import json
import math
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pipeline import layer_costs, report
from pipeline.costs.measuring import kept_bytes, power_law, seconds
from pipeline.costs.table1_layers import COUNTS, RestrictedSelfAttention, layer, path_length, reads, sequential_operations
from pipeline.report import Known
from pipeline.reporting import layer_table
from pipeline.reporting.layer_table import layer_times
from pipeline.reporting.published import TABLE1
from pipeline.settings import layer_costs as settings
from transformer.attention import attention_weights, position_mask
from transformer.config.reading import UserError

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
    fit = power_law(places, [COUNTS[kind].operations(n, d, 3, 16) for n, d in places])
    powers = {"O(n^2 d)": (2, 1), "O(n d^2)": (1, 2), "O(k n d^2)": (1, 2), "O(r n d)": (1, 1)}
    assert (fit.n, fit.d) == pytest.approx(powers[row.complexity])
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


def test_time_is_positive_and_grows_with_the_work():
    made = layer(ATTENTION, 16, 3, 4)
    few, many = (min(seconds(made, sequence(1, n, 16)) for _ in range(3)) for n in (16, 1024))
    assert 0 < few < many


@pytest.mark.parametrize("n, d", [(2.0, 1.0), (1.0, 2.0), (0.5, -1.25)])
def test_the_fit_recovers_powers(n, d):
    places = [(32, 16), (64, 16), (64, 128), (128, 32)]
    fit = power_law(places, [3e-9 * a**n * b**d for a, b in places])
    assert (fit.scale, fit.n, fit.d) == pytest.approx((3e-9, n, d))
    assert fit.r_squared == pytest.approx(1) and fit.at(64, 128) == pytest.approx(3e-9 * 64**n * 128**d)


def test_other_curves_fit_a_power_law_less_well():
    places = [(n, d) for n in (32, 64, 128) for d in (32, 64, 128)]
    fit = power_law(places, [n * d * (3 if (n + d) % 64 else 1) for n, d in places])
    assert fit.r_squared < 0.95


# Path lengths and sequential operations


@pytest.mark.parametrize("n, k, r", [(2, 3, 1), (9, 3, 2), (27, 5, 4), (64, 3, 16), (50, 7, 7)])
def test_paths_and_sequential_operations_are_the_paper_s(n, k, r):
    ours = {kind: (sequential_operations(kind, n), path_length(kind, n, k, r)) for kind in KINDS}
    assert ours[ATTENTION] == (1, 1)  # O(1), O(1)
    assert ours[RECURRENT] == (n, n - 1)  # O(n), O(n)
    assert ours[RESTRICTED] == (1, math.ceil((n - 1) / r))  # O(1), O(n / r)
    # O(1), O(log_k n): a path covers the 2n - 1 distances from -(n - 1) to n - 1
    assert ours[CONVOLUTION] == (1, math.ceil(round(math.log(2 * n - 1, k), 9)))


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

    grown, waits = chain(24) - chain(12), sequential_operations(kind, 24) - sequential_operations(kind, 12)
    assert (grown >= waits == 12) if kind == RECURRENT else (grown == waits == 0)


# The stage and its settings

SMALL = {"lengths": [8, 16, 32, 64], "widths": [4, 8, 16], "repeats": 1, "neighbourhood": 4}


@pytest.fixture
def scores(params, tmp_path, monkeypatch):
    """A folder of scores, in which the stage has run on a small grid."""
    params = {**params, "layer_costs": params["layer_costs"] | SMALL}
    monkeypatch.setattr(layer_costs, "load", lambda: params)
    run_stage(tmp_path)
    return tmp_path / "scores"


def run_stage(folder):
    paths = {key: folder / place / "layer-costs.json" for key, place in (("out", "scores"), ("times", "times"))}
    layer_costs.main(argparse.Namespace(**paths))


def measured(folder):
    return layer_table.measured(folder / "scores", folder / "results", folder / "times")


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("lengths", [64, 128], "three or more rising numbers"),
        ("lengths", [64, 64, 128], "three or more rising numbers"),
        ("lengths", [1, 64, 128], "rising numbers from 2"),
        ("widths", [0, 64, 128], "three or more rising numbers"),
        ("widths", 64, "a list is expected"),
        ("kernel", 4, "an odd number above 1"),
        ("neighbourhood", 0, "above 0"),
        ("repeats", 0, "above 0"),
        ("seed", -1, "from 0 to 2"),
        ("kernal", 3, "did you mean 'kernel'"),
    ],
)
def test_invalid_settings_are_refused(params, key, value, expected):
    with pytest.raises(UserError, match=rf"^params\.yaml: layer_costs\.{key}.*{expected}"):
        settings.config({"layer_costs": params["layer_costs"] | {key: value}})


def test_the_stage_measures_the_whole_grid(scores, tmp_path):
    written = json.loads((scores / "layer-costs.json").read_text())
    times = json.loads((tmp_path / "times" / "layer-costs.json").read_text())
    assert list(written["layers"]) == list(times["layers"]) == KINDS
    for kind, cost in written["layers"].items():
        grid = [(n, d) for n in SMALL["lengths"] for d in SMALL["widths"]]
        assert [(point["n"], point["d"]) for point in cost["points"]] == grid
        assert all(point["seconds"] > 0 for point in times["layers"][kind]["points"])
        fits = cost["bytes"]
        assert [fits["measured"][key] for key in "nd"] == pytest.approx([fits["expected"][key] for key in "nd"]), kind
    assert written["layers"][RECURRENT]["sequential_operations"] == SMALL["lengths"][0]


def test_the_time_of_a_layer_is_the_shortest_of_all_rounds(params, monkeypatch):
    """A layer of one n and d is measured once a round, in the order of the grid."""
    size, times = {"lengths": [8, 16, 32], "widths": [4, 8, 16]}, [5.0, 1.0, 3.0]
    config = settings.config({"layer_costs": params["layer_costs"] | size | {"repeats": 3, "neighbourhood": 4}})
    grid = len(KINDS) * 3 * 3
    calls = iter(range(3 * grid))
    monkeypatch.setattr(layer_costs, "seconds", lambda made, x_BND: times[(call := next(calls)) // grid] + call % grid)
    found = layer_costs.measure(config, torch.device("cpu"))
    assert [point.seconds for kind in KINDS for point in found[kind]] == [1.0 + place for place in range(grid)]


def test_the_output_is_equal_in_every_run_and_the_times_are_not(scores, tmp_path):
    files = [tmp_path / place / "layer-costs.json" for place in ("scores", "times")]
    output, times = (file.read_text() for file in files)
    run_stage(tmp_path)
    assert files[0].read_text() == output and files[1].read_text() != times


# The report


def test_table1_has_a_line_for_each_machine(scores, tmp_path):
    recorded = tmp_path / "results" / "layer-costs" / "gpu-1.json"
    recorded.parent.mkdir(parents=True)
    text = (tmp_path / "times" / "layer-costs.json").read_text()
    recorded.write_text(text.replace('"hardware": "', '"hardware": "Some GPU, not '))
    here, there = machines = measured(tmp_path)
    table = layer_table.table1(machines)
    assert [row[0] for row in table.rows] == [kind for kind in KINDS for _ in range(2)]
    assert [row[-1] for row in table.rows[:2]] == [here.hardware, there.hardware] and "Some GPU" in there.hardware
    assert [row[-2] for row in table.rows[:2]] == ["this one", "gpu-1"]
    fit = here.layers[ATTENTION].seconds.measured
    assert table.rows[0][2:4] == [f"n^{fit.n:.2f} d^{fit.d:.2f}", fit.r_squared]
    assert [row[7] for row in table.rows[::2]] == [1, 8, 1, 1] and [row[9] for row in table.rows[::2]] == [1, 7, 3, 2]
    assert [layer_times(machine).name for machine in machines] == ["layer-costs", "layer-costs-gpu-1"]


def test_a_record_of_an_earlier_version_loads(scores, tmp_path):
    """An earlier version wrote scores and times to one file, without the sha256 of the output."""
    recorded = tmp_path / "results" / "layer-costs" / "cpu.json"
    content = json.loads((tmp_path / "times" / "layer-costs.json").read_text())
    del content["output_sha256"]
    recorded.parent.mkdir(parents=True)
    recorded.write_text(json.dumps(content))
    here, there = measured(tmp_path)
    assert there.layers == here.layers and there.has_times


@pytest.mark.slow
def test_without_times_table1_shows_what_is_exact(scores, tmp_path, params):
    with_times = report.report({**params, "runs": {}}, Known([], measured(tmp_path)))
    (tmp_path / "times" / "layer-costs.json").unlink()
    (machine,) = machines = measured(tmp_path)
    without = report.report({**params, "runs": {}}, Known([], machines))
    assert not machine.has_times and machine.hardware is None
    row = layer_table.table1(machines).shown()[0]
    assert row[2:4] == ["–", "–"] and row[5].startswith("n^")
    pages = [files.pop("index.html") for files in (with_times, without)]
    assert with_times == without and pages[0] != pages[1]


def test_table1_without_a_file_is_the_paper_s_formulae_and_dashes(tmp_path):
    assert measured(tmp_path) == []
    shown = layer_table.table1([]).shown()
    assert [row[:2] for row in shown] == [[row.layer, row.complexity] for row in TABLE1]
    assert all(cells.count("–") == 6 for cells in shown)


@pytest.mark.slow
def test_the_report_raises_the_powers_and_shows_the_figure(scores, tmp_path, params):
    (machine,) = machines = measured(tmp_path)
    files = report.report({**params, "runs": {}}, Known([], machines))
    time, memory = (growth.measured for growth in (machine.layers[RECURRENT].seconds, machine.layers[RECURRENT].bytes))
    assert f"<td>n<sup>{time.n:.2f}</sup> d<sup>{time.d:.2f}</sup></td>" in files["index.html"]
    assert f"$n^{{{memory.n:.2f}}} d^{{{memory.d:.2f}}}$" in files["table1.tex"] and "$O(r n d)$" in files["table1.tex"]
    assert all(kind in layer_times(machine).svg for kind in KINDS)
    assert "Time of a layer" in files["index.html"] and "figures/layer-costs.svg" not in files


@pytest.mark.parametrize(
    "old, new", [('"scale"', '"scales"'), ('"recurrent"', '"recursive"'), ('"kernel": 3', '"kernel": 2')]
)
def test_a_damaged_file_is_refused_by_name(scores, tmp_path, old, new):
    path = scores / "layer-costs.json"
    path.write_text(path.read_text().replace(old, new))
    (tmp_path / "times" / "layer-costs.json").unlink()
    with pytest.raises(UserError, match=r"scores/layer-costs.json"):
        measured(tmp_path)
