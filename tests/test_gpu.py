"""benchmarks.gpu on a CPU, with a small model. Its checks run as tests, on a GPU if there is one."""

import argparse

import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import bench as shared
from benchmarks.gpu import checks
from benchmarks.gpu.bench import Bench
from benchmarks.gpu.checks import CHECKS
from pipeline.settings.params import load
from tests.support.projects import ROOT
from tests.support.refusals import refused
from transformer.device import device_of

SHAPE = {"N": 2, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A smaller model, which stands for all others on a CPU."""
    params = load(ROOT / "params.yaml")
    params["models"]["tiny"]["model"] = SHAPE
    monkeypatch.setattr(shared, "load", lambda: params)


@pytest.mark.more
@pytest.mark.parametrize("name", CHECKS)
def test_check(name):
    CHECKS[name](Bench(device_of("auto")))


@pytest.mark.more
@pytest.mark.parametrize("part", ["train", "big"])
def test_a_training_is_timed_cold_and_warm(monkeypatch, part):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (passes,) = command.measure(argparse.Namespace(part=part))
    rows = [dict(zip(passes["columns"], cells)) for cells in passes["rows"]]
    assert [row["pass"] for row in rows] == ["from a cold start", "again", "warm"]
    assert {row["steps"] for row in rows} == {"6"}
    assert all(len(cells) == len(passes["columns"]) for cells in passes["rows"])


def test_a_failed_check_is_in_the_table_and_no_other_is_left_out(monkeypatch):
    def wrong(bench):
        raise AssertionError("1 is\nnot 2")

    monkeypatch.setattr(checks, "CHECKS", {"sums": wrong, "products": lambda bench: "equal"})
    tables = checks.run(Bench(torch.device("cpu")))
    rows = [cells[:3] for cells in next(tables)["rows"]]
    assert rows == [["sums", "fails", "AssertionError: 1 is not 2"], ["products", "holds", "equal"]]
    with refused("sums: failed"):
        next(tables)
