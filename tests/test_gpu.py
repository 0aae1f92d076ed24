"""benchmarks.gpu on a CPU, with a small model. Its checks run as tests, on a GPU if there is one."""

import json

import numpy as np
import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import bench as shared
from benchmarks.gpu import prepare
from benchmarks.gpu.bench import Bench
from benchmarks.gpu.checks import CHECKS
from benchmarks.workload import Repeated
from pipeline.settings.params import load
from tests.projects import ROOT
from tests.refusals import refused
from tests.small_run import write_data
from transformer.binarised import open_binarised
from transformer.device import device_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the binarised corpus `own`: 300 pairs of train and 40 of dev."""
    folder = tmp_path_factory.mktemp("gpu")
    (folder / "data/own").mkdir(parents=True)
    write_data(folder / "data/own", 300, 40)
    (folder / "data/own/data").rename(folder / "data/own/binarised")
    return folder


@pytest.fixture(scope="module")
def data(folder):
    """What `benchmarks.gpu.prepare` makes of the corpus."""
    params, out = load(ROOT / "params.yaml"), folder / "prepared"
    params["models"]["tiny"]["model"] = {"N": 2, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "load", lambda: params)
        patch.chdir(folder)
        prepare.main(prepare.options().parse_args(["own", "--out", str(out), "--pairs", "250"]))
    return out


@pytest.fixture(scope="module")
def bench(data):
    """One bench for all checks, because two of them share a training."""
    return Bench(device_of("auto"), data, data.parent / "out")


def run(part, data, out, *words) -> tuple[int, dict]:
    """A part on the CPU, also where there is a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        arguments = [*words, "--part", part, "--data", str(data), "--out", str(out)]
        status = command.main(command.options().parse_args(arguments))
    (path,) = out.glob(f"gpu-{part}*.json")
    return status, json.loads(path.read_text(encoding="utf-8"))


def test_the_prepared_pairs_are_the_first_of_the_corpus_and_are_repeated(data, folder):
    for name, size in (("train", 250), ("dev", 40)):
        some, whole = open_binarised(data, name), open_binarised(folder / "data/own/binarised", name)
        assert len(some) == size
        for number in (0, size - 1):
            assert [ids.tolist() for ids in some.pair(number)] == [ids.tolist() for ids in whole.pair(number)]
    settings = json.loads((data / shared.SETTINGS).read_text())
    assert set(settings["models"]) == {"tiny", "base", "big"} and settings["models"]["big"]["model"]["d_model"] == 1024
    pairs = open_binarised(data, "train")
    repeated = Repeated(pairs, 1000)
    assert len(repeated) == 1000 == len(repeated.lengths("target"))
    for side, ids in zip(("source", "target"), pairs.pair(7)):
        found, lengths = repeated.sentences(side, np.array([7, 257, 757]))
        assert found.tolist() == ids.tolist() * 3 and lengths.tolist() == [len(ids)] * 3
        assert (repeated.lengths(side)[[7, 257, 757]] == lengths).all()


def test_data_that_is_missing_is_refused(tmp_path):
    with refused("none/settings.json is missing; benchmarks.gpu.prepare makes the data"):
        run("train", "none", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.more
@pytest.mark.parametrize("name", CHECKS)
def test_check(name, bench):
    CHECKS[name](bench)


@pytest.mark.more
@pytest.mark.parametrize("part, batching", [("train", "by_length"), ("big", "mixed")])
def test_a_training_is_timed_cold_and_warm(data, tmp_path, part, batching):
    status, made = run(part, data, tmp_path, "--batching", batching)
    assert status == 0 and made["failures"] == [] and made["device"] == "cpu"
    assert (tmp_path / f"gpu-{part}{'-mixed' if batching == 'mixed' else ''}.json").exists()
    passes, inside = made["tables"][0], made["tables"][-1]
    rows = [dict(zip(passes["columns"], cells)) for cells in passes["rows"]]
    assert [row["pass"] for row in rows] == ["from a cold start", "again", "warm"]
    assert {row["steps"] for row in rows} == {"6"} and {row["batching"] for row in rows} == {batching}
    assert inside["rows"][0][0] == "0", "the host waits for nothing in a step"
    assert all(len(cells) == len(table["columns"]) for table in made["tables"] for cells in table["rows"])
