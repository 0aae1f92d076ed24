"""Operation and parameter counts from the settings equal those of torch; the stage flops; the cost of a training."""

import argparse
import json
import re

import numpy as np
import pytest
import torch
from test_model import VARIATIONS
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pipeline import flops as stage
from pipeline.scoring.costs import Lengths, cost, forward_flops, training_flops
from tests.support.models import lengths_of
from tests.support.pairs import Listed
from transformer.config.reading import UserError, hints
from transformer.data import Batches
from transformer.model import Transformer

VOCABULARY = 90
MORE = [*VARIATIONS, {"d_v": 24}, {"N": 1, "d_ff": 48}]


def counted(config, sentences, source, target, backward):
    """The operations that torch counts for the model on `sentences` pairs of these lengths."""
    model = Transformer(config, VOCABULARY)
    ids = [torch.randint(4, VOCABULARY, (sentences, length)) for length in (source, target)]
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        logits = model(*ids)
        if backward:
            logits.sum().backward()
    return counter.get_total_flops()


def lengths(sentences, source, target):
    return lengths_of([(source, target)] * sentences)


@pytest.mark.parametrize("variation", MORE, ids=str)
def test_equals_torch_flop_counter(settings, variation):
    """Exactly, because both count matrix products. A score of additive attention has sums and tanh besides."""
    config, sizes = settings(**variation), (3, 11, 5)
    sentences, n, m = sizes
    forward = forward_flops(config, VOCABULARY, lengths(*sizes))
    scores = sentences * config.N * config.h * (n * n + m * m + n * m) if config.attention == "additive" else 0
    assert sum(forward.values()) == counted(config, *sizes, backward=False) + 4 * config.d_k * scores
    if not scores:
        assert sum(training_flops(forward).values()) == counted(config, *sizes, backward=True)


def test_causal_half_counts_only_the_visible_positions(settings):
    config, targets = settings(d_v=16), [1, 6, 9]
    sums = lengths_of([(4, m) for m in targets])
    full, half = (forward_flops(config, VOCABULARY, sums, causal_half=half) for half in (False, True))
    seen = sum(position + 1 for m in targets for position in range(m))
    assert half.pop("decoder_self_attention") == config.N * seen * 2 * config.h * (config.d_k + config.d_v)
    full.pop("decoder_self_attention")
    assert half == full


def test_the_sums_of_a_training_suffice_for_the_counts():
    pairs = Listed([[4] * n for n in (2, 6, 3, 9)], [[4] * m for m in (4, 1, 3, 30)])
    batches = Batches(pairs, seed=1, batch_tokens=100, max_length=10)
    assert Lengths(**batches.sums(np.array([0, 1, 2]))) == lengths_of([(3, 5), (7, 2), (4, 4)])  # with EOS


def timing(**differences):
    values = {"seconds": 43200.0, "gpus": 8, "hardware": "Tesla P100-SXM2-16GB", "precision": "float32"}
    return {**values, **differences}


COUNTED = {"analytic": {"training_flops": 3e15, "training_flops_causal_half": 2e15}}
RATES = {"P100": 9.5, "H100": 60.0, "H100 PCIe": 50.0, "H100 bfloat16": 700.0, "H200 bfloat16": 790.0}
PARAMS = {"hardware": RATES, "peak_tflops": {"P100": 10.0}}


@pytest.mark.parametrize(
    "hardware, precision, expected",
    [
        ("Tesla P100-SXM2-16GB", "float32", 9.5),
        ("Tesla P100-SXM2-16GB", "bfloat16", None),
        ("NVIDIA H200", "bfloat16", 790.0),
        ("NVIDIA GH200 480GB", "bfloat16", None),
        ("NVIDIA H100 80GB HBM3", "float32", 60.0),
        ("NVIDIA H100 PCIe", "float32", 50.0),
        ("NVIDIA H100 PCIe", "bfloat16", 700.0),
        ("Quadro P1000", "float32", None),
    ],
)
def test_the_cost_is_the_paper_s_formula_or_says_which_rate_is_missing(hardware, precision, expected):
    """A rate is found by the GPU's name and the precision."""
    made = cost(timing(hardware=hardware, precision=precision), "", COUNTED, PARAMS)
    assert made["sustained TFLOPS"] == expected
    if expected:
        assert made["FLOPs, estimated"] == pytest.approx(43200 * 8 * expected * 1e12)
    else:
        assert made["MFU (%)"] is None
        assert hardware.split()[1] in made["FLOPs, estimated"] and "hardware" in made["FLOPs, estimated"]


def test_on_a_cpu_and_without_times_or_a_count_less_is_known_of_the_cost():
    made = cost(timing(gpus=0, hardware="a CPU named P100"), "", COUNTED, PARAMS)
    assert made["MFU (%)"] is made["HFU (%)"] is None and "CPU" in made["FLOPs, estimated"]
    assert {*cost(None, "", COUNTED, PARAMS).values()} == {None}
    made = cost(timing(), "", None, PARAMS)
    assert made["FLOPs, estimated"] and made["MFU (%)"] is made["HFU (%)"] is None


def write_files(folder, settings, **training):
    """Write the files of a training of ten steps. They hold more than is needed, as the real files do."""
    sums = vars(lengths_of([(9, 5), (4, 17)] * 10))
    training = {**sums, "steps": 10, "dev_loss": 4.2, "settings": {"model": vars(settings), "training": training}}
    report = {"vocabulary_size": VOCABULARY, "data_sum": "00"}
    paths = {}
    for name, value in [("training", training), ("corpus", report)]:
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(json.dumps(value))
    return paths


def run_stage(paths):
    """Run the stage on these files. Returns the content of its output."""
    out = paths["training"].with_name("flops.json")
    stage.main(argparse.Namespace(run="some-run", out=out, **paths))
    return json.loads(out.read_text())


def test_the_stage_writes_the_count(tmp_path, settings):
    analytic = run_stage(write_files(tmp_path, settings()))["analytic"]
    assert analytic["training_flops"] == sum(analytic["components"].values())
    torch_s = sum(counted(settings(), 10, *pair, backward=True) for pair in [(9, 5), (4, 17)])
    assert analytic["training_flops"] == torch_s
    assert analytic["per_step"] == torch_s / 10
    assert analytic["training_flops_causal_half"] < torch_s


def test_r_drop_counts_both_passes(tmp_path, settings):
    """R-Drop passes each pair through the model twice."""
    without, none, twice = (
        run_stage(write_files(tmp_path, settings(), **training))["analytic"]["training_flops"]
        for training in ({}, {"r_drop": 0.0}, {"r_drop": 5.0})
    )
    assert without == none == twice / 2


def test_utilisation_of_the_hardware_and_of_the_model_is_the_count_over_the_peak(settings):
    params = {"hardware": {}, "peak_tflops": {"P100": 10.0}}
    counted_of_it = {"analytic": stage.analytic(settings(), VOCABULARY, lengths(5, 9, 5), steps=1)}
    result = cost(timing(seconds=2.0, gpus=3), "", counted_of_it, params)
    executed, at_peak = counted(settings(), 5, 9, 5, backward=True), 2 * 3 * 10.0e12
    hidden = 3 * settings().N * 5 * (5 * 4 // 2) * 2 * settings().h * (settings().d_k + settings().d_v)  # m (m - 1) / 2
    assert result["HFU (%)"] == pytest.approx(100 * executed / at_peak)
    assert result["MFU (%)"] == pytest.approx(100 * (executed - hidden) / at_peak)
    assert "hardware has no rate of Tesla P100" in result["FLOPs, estimated"]


NEEDED = {
    "training": ["steps", *hints(Lengths), "settings", "settings.model", "settings.model.d_model"],
    "corpus": ["vocabulary_size"],
}
PLACES = [(file, key) for file in NEEDED for key in NEEDED[file]]


@pytest.mark.parametrize(("file", "key"), PLACES)
def test_a_missing_or_invalid_entry_is_refused_by_its_name(tmp_path, settings, file, key):
    paths = write_files(tmp_path, settings())
    good = paths[file].read_text()
    for value in ("missing", None, True, "9", -1, 0, float("nan"), [1], {}):
        content = holder = json.loads(good)
        *outer, last = key.split(".")
        for name in outer:
            holder = holder[name]
        holder[last] = value
        if value == "missing":
            del holder[last]
        paths[file].write_text(json.dumps(content))
        with pytest.raises(UserError, match=rf"{file}\.json[.:] ?{re.escape(key)}"):
            run_stage(paths)


@pytest.mark.parametrize(
    ("key", "value"),
    [("seconds", float("inf")), ("seconds", -1), ("gpus", True), ("hardware", None), ("precision", {})],
)
def test_times_of_no_use_are_refused_by_the_file_s_name(key, value):
    with pytest.raises(UserError, match=rf"^times\.json\.{key}"):
        cost(timing(**{key: value}), "times.json", COUNTED, PARAMS)
