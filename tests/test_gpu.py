"""benchmarks.gpu on a CPU, with a small model. Its checks run as tests, on a GPU if there is one."""

import dataclasses
import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import bench as shared
from benchmarks.gpu import checks, prepare
from benchmarks.gpu.bench import Bench
from benchmarks.gpu.checks import CHECKS, compared
from benchmarks.profile import host_waits
from benchmarks.workload import Repeated
from pipeline.settings.params import load
from tests.projects import ROOT
from transformer.binarised import SIDES, id_type, open_binarised, write_description, write_side
from transformer.config.reading import UserError
from transformer.config.vocabulary import VocabularyConfig
from transformer.device import device_of
from transformer.vocabulary import Vocabulary, WordTable, learn

CPU = torch.device("cpu")
WORDS = [[f"{first}{second}" for first in "bdgk" for second in side] for side in (("a", "ol", "ime"), ("u", "er", "ane"))]


def lines(count: int) -> list[str]:
    """The texts of a source file and a target file, which hold pairs of sentences of 1 to 20 words."""
    draw, sides = random.Random(1), ([], [])
    for _ in range(count):
        chosen = [draw.randrange(12) for _ in range(draw.randint(1, 20))]
        for side, words in zip(sides, WORDS):
            side.append(" ".join(words[number] for number in chosen))
    return ["".join(f"{line}\n" for line in side) for side in sides]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the binarised corpus `own`: 300 pairs of train and 40 of dev."""
    folder = tmp_path_factory.mktemp("gpu")
    binarised = folder / "data/own/binarised"
    binarised.mkdir(parents=True)
    texts = [text.encode() for text in lines(340)]
    model = learn(texts, VocabularyConfig(300, "byte_fallback", 1.0, 0, 0.0, 1, 1, 1))
    (folder / "data/own/vocabulary.model").write_bytes(model)
    vocabulary = Vocabulary(folder / "data/own/vocabulary.model")
    table, counts = WordTable(vocabulary, 1), {}
    for name, part in (("train", slice(0, 300)), ("dev", slice(300, 340))):
        counts[name] = {}
        for side, text in zip(SIDES, texts):
            encoded = table.encode(b"".join(text.splitlines(keepends=True)[part]))
            pairs, tokens = write_side(binarised, f"{name}.{side}", [encoded], id_type(vocabulary.size))
            counts[name] |= {"pairs": pairs, f"{side}_tokens": tokens}
    write_description(binarised, vocabulary.size, vocabulary.sha256, ("en", "de"), counts)
    return folder


@pytest.fixture
def prepared(built, monkeypatch):
    """`benchmarks.gpu.prepare`, started in `built`."""
    params = load(ROOT / "params.yaml")
    monkeypatch.setattr(prepare, "load", lambda: params)
    monkeypatch.chdir(built)
    return lambda *words: prepare.main(prepare.options().parse_args(words))


@pytest.fixture(scope="module")
def data(built):
    out, params = built / "prepared", load(ROOT / "params.yaml")
    params["models"]["tiny"]["model"] = {"N": 2, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "load", lambda: params)
        patch.chdir(built)
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
        status = command.main(
            command.options().parse_args([*words, "--part", part, "--data", str(data), "--out", str(out)])
        )
    (path,) = out.glob(f"gpu-{part}*.json")
    return status, json.loads(path.read_text(encoding="utf-8"))


def row(table: dict, first: str) -> dict[str, str]:
    return next(dict(zip(table["columns"], cells)) for cells in table["rows"] if cells[0] == first)


def test_the_prepared_pairs_are_the_first_of_the_corpus(data, built):
    for name, size in (("train", 250), ("dev", 40)):
        some, whole = open_binarised(data, name), open_binarised(built / "data/own/binarised", name)
        assert len(some) == size
        for number in (0, size - 1):
            assert [ids.tolist() for ids in some.pair(number)] == [ids.tolist() for ids in whole.pair(number)]
    settings = json.loads((data / shared.SETTINGS).read_text())
    assert set(settings["models"]) == {"tiny", "base", "big"} and settings["models"]["big"]["model"]["d_model"] == 1024


@pytest.mark.parametrize(
    "corpus, pairs, said",
    [
        ("own", 250, r"--pairs 250: the data has [\d,]+ bytes, more than 1,000"),
        ("own", 0, "--pairs: 0 is not possible; a number above 0 is expected"),
        ("other", 250, "data/other/binarised is missing; `snakemake binarise@other` makes it"),
    ],
)
def test_data_that_cannot_be_is_refused(prepared, tmp_path, monkeypatch, corpus, pairs, said):
    monkeypatch.setattr(prepare, "MOST", 1000)
    with pytest.raises(UserError, match=said):
        prepared(corpus, "--out", str(tmp_path / "data"), "--pairs", str(pairs))
    assert not (tmp_path / "data").exists()


def test_a_repeated_corpus_has_its_pairs_again(data):
    pairs = open_binarised(data, "train")
    repeated = Repeated(pairs, 1000)
    assert len(repeated) == 1000 == len(repeated.lengths("target"))
    for side, ids in zip(("source", "target"), pairs.pair(7)):
        found, lengths = repeated.sentences(side, np.array([7, 257, 757]))
        assert found.tolist() == ids.tolist() * 3 and lengths.tolist() == [len(ids)] * 3
        assert (repeated.lengths(side)[[7, 257, 757]] == lengths).all()


@pytest.mark.more
@pytest.mark.parametrize("name", CHECKS)
def test_check(name, bench):
    CHECKS[name](bench)


def test_differences_that_are_too_large_fail_a_check():
    gradients = torch.ones(4)
    assert compared((2.0, gradients), (2.0, gradients + 1e-5), "float32").startswith("float32: loss 0.0e+00")
    with pytest.raises(AssertionError, match="at most 1e-05 and 1e-03 are expected"):
        compared((2.0, gradients), (2.0, gradients * 1.01), "float32")
    with pytest.raises(AssertionError, match="loss 1"):
        compared((2.2, gradients), (2.0, gradients), "bfloat16")


@pytest.mark.more
def test_a_wait_of_the_host_is_seen():
    assert host_waits(lambda: torch.ones(3).sum(), CPU) == []
    assert host_waits(lambda: [torch.ones(3).sum().item() for _ in range(2)], CPU) == 2 * ["aten::_local_scalar_dense"]


@pytest.mark.more
def test_a_failure_leaves_the_other_checks(data, tmp_path, monkeypatch):
    def broken(bench: Bench) -> str:
        raise RuntimeError("no kernel\nfound")

    monkeypatch.setattr(checks, "CHECKS", {"broken": broken, "whole": lambda bench: "0 waits"})
    status, made = run("check", data, tmp_path)
    assert status == 1 and made["failures"] == ["broken: RuntimeError: no kernel"]
    (checked,) = made["tables"]
    assert row(checked, "broken")["result"] == "fails" and row(checked, "whole")["figures"] == "0 waits"


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


def test_a_part_whose_time_is_up_still_writes_its_file(bench, monkeypatch):
    def endless(bench: Bench, outcome) -> None:
        outcome.table("done").append(["first"])
        try:
            time.sleep(60)
        except Exception:
            pytest.fail("a part must not catch it")

    monkeypatch.setitem(command.PARTS, "big", endless)
    monkeypatch.setattr(shared, "CPU", dataclasses.replace(shared.CPU, seconds=1))
    outcome = command.run("big", bench)
    assert outcome.failures == ["stopped after 1 seconds"]
    made = json.loads((bench.out / "gpu-big.json").read_text())
    assert made["failures"] == outcome.failures and made["tables"] == [{"columns": ["done"], "rows": [["first"]]}]


@pytest.mark.more
def test_data_that_is_missing_is_one_line(tmp_path):
    done = start("-m", "benchmarks.gpu", "--part", "train", "--data", "none", "--out", str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.endswith("none/settings.json is missing; benchmarks.gpu.prepare makes the data\n")
    assert not list(tmp_path.iterdir())


def start(*words: str, **variables: str) -> subprocess.CompletedProcess:
    """Python on the CPU, also where there is a GPU."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment |= variables
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
