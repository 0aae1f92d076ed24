"""Data parallel training: two processes train what one trains, stop together, and a killed one ends the job."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML
from test_data import Pairs
from test_training import build
from torch.multiprocessing import start_processes

from pipeline.settings.params import load
from pipeline.training import workers
from pipeline.workflow import stage
from tests.imports import ROOT
from transformer import parallel
from transformer.binarised import id_type, write_description, write_side
from transformer.checkpoint import read_tensors
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.files import sha256

RUN = {"corpus": "demo", "model": "tiny", "N": 1, "d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16}
RUN |= {"batch_tokens": 200, "micro_batch_tokens": 60, "max_length": 30, "threads": 1}
RUN |= {"steps": 100_000, "checkpoint_every": 100}  # as good as endless
VOCABULARY = 90
PATIENCE = 180  # seconds, on a busy machine; nothing here takes ten on a quiet one


class Training:
    """`python -m pipeline.train` in a folder of its own, on random pairs."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder, self.work = folder, folder / "work/run"
        self.started: list[subprocess.Popen] = []
        (folder / "data").mkdir()
        sets = {"train": Pairs(60, 25), "dev": Pairs(12, 25, seed=9)}
        counts = {name: self.write(pairs, name) for name, pairs in sets.items()}
        (folder / "vocabulary.model").write_bytes(b"only its sum is looked at")
        write_description(folder / "data", VOCABULARY, sha256(folder / "vocabulary.model"), ["en", "de"], counts)
        self.set(processes)

    def write(self, pairs: Pairs, name: str) -> dict:
        counts = {"pairs": len(pairs)}
        for side, lines in zip(("source", "target"), pairs.sides):
            encoded = [(np.concatenate(lines), np.array([len(ids) for ids in lines]))]
            _, counts[f"{side}_tokens"] = write_side(
                self.folder / "data", f"{name}.{side}", encoded, id_type(VOCABULARY)
            )
        return counts

    def set(self, processes: int) -> None:
        params = load(ROOT / "params.yaml")
        params |= {"runs": {"run": RUN}, "corpora_in_use": ["demo"]}
        params["machine"]["processes"] = processes
        with open(self.folder / "params.yaml", "w") as file:
            YAML(typ="safe").dump(params, file)

    def kill(self) -> None:
        """What a failed test has left."""
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def start(self) -> subprocess.Popen:
        arguments = (
            "run",
            "--data",
            "data",
            "--vocabulary",
            "vocabulary.model",
            "--out",
            "models",
            "--scores",
            "scores",
            "--times",
            "times/training.json",
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.train", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": "off"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def saved(self, process: subprocess.Popen) -> None:
        """Wait for the first state."""
        while process.poll() is None and not list(self.work.glob("*/state.safetensors")):
            time.sleep(0.01)


@pytest.fixture
def training(tmp_path):
    training = Training(tmp_path, processes=2)
    yield training
    training.kill()


def children(process: subprocess.Popen) -> list[int]:
    """Its workers by rank."""
    return [int(number) for number in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


class Watched(parallel.GradientSum):
    def finish(self) -> None:
        assert len(self.under_way) in (len(self.buckets), 0), "all had left during the backward pass, if there was one"
        assert len(self.buckets) > 3
        super().finish()


def worker(rank: int, folder: Path, config: TrainingConfig, model: ModelConfig, port: int, until: int | None) -> None:
    """One of two, forked from this process: starting Python and torch anew takes longer than the training."""
    parallel.BUCKET = 4000  # several
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    parallel.GradientSum = Watched
    with workers.joined("cpu") as group:
        trainer = build(folder, config, model, group=group)
        trainer.run(lambda record: None, lambda: rank == 1 and trainer.state.step == until)
        assert trainer.state.step == (until or config.steps)


def train_by_two(folder: Path, config: TrainingConfig, model: ModelConfig, until: int | None = None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start_processes(worker, (folder, config, model, port, until), nprocs=2, start_method="fork")


def same(folder: Path, other: Path) -> None:
    """The same records and files, and the same weights to rounding."""
    logs = [[json.loads(line) for line in (place / "training.jsonl").open()] for place in (folder, other)]
    assert len(logs[0]) == len(logs[1]) > 0
    for record, expected in zip(*logs):
        assert record == pytest.approx(expected, rel=1e-4)
    files = [{str(file.relative_to(place)) for file in place.rglob("*")} for place in (folder, other)]
    assert files[0] == files[1]
    numbers = [read_tensors(place / "state.safetensors")[1]["numbers"] for place in (folder, other)]
    assert numbers[0]["sums"] == numbers[1]["sums"]


@pytest.mark.parametrize("micro_batch_tokens", [150, 20])
def test_two_processes_train_what_one_trains(tmp_path, settings, training_settings, micro_batch_tokens):
    """Without dropout: the loss curve, dev losses and counts of the same global batches."""
    config = training_settings(batch_tokens=150, micro_batch_tokens=micro_batch_tokens)
    build(tmp_path / "one", config, settings()).run(lambda record: None, lambda: False)
    train_by_two(tmp_path / "two", config, settings())
    same(tmp_path / "two", tmp_path / "one")


def test_a_worker_without_pairs_adds_nothing(tmp_path, settings, training_settings):
    """Batches of one pair leave the other worker with none."""
    config = training_settings(batch_tokens=12, micro_batch_tokens=12, max_length=12)
    build(tmp_path / "one", config, settings()).run(lambda record: None, lambda: False)
    train_by_two(tmp_path / "two", config, settings())
    same(tmp_path / "two", tmp_path / "one")


@pytest.mark.parametrize("until", [5, 7])
def test_two_processes_stop_together_and_one_or_two_go_on(tmp_path, settings, training_settings, until):
    """Where one is told to, between records, so that the losses since the last one have to be in the state."""
    config = training_settings(batch_tokens=150, micro_batch_tokens=150)
    build(tmp_path / "whole", config, settings()).run(lambda record: None, lambda: False)
    train_by_two(tmp_path / "parts", config, settings(), until)
    if until == 5:
        train_by_two(tmp_path / "parts", config, settings())
    else:
        build(tmp_path / "parts", config, settings()).run(lambda record: None, lambda: False)
    same(tmp_path / "parts", tmp_path / "whole")


def test_a_signal_to_one_stops_all_and_a_killed_one_ends_the_job(training):
    """SIGTERM to one stops all at one step; SIGKILL of one is said in one line; one process goes on from there."""
    process = training.start()
    training.saved(process)
    os.kill(children(process)[1], signal.SIGTERM)
    _, output = process.communicate(timeout=PATIENCE)
    assert process.returncode == stage.INTERRUPTED, output
    stopped = int(re.search(r"stopped by what another worker was told at step (\d+)", output)[1])

    process = training.start()
    assert f"resuming at step {stopped} " in process.stderr.readline()
    os.kill(children(process)[1], signal.SIGKILL)
    _, output = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    said = [line for line in re.split(r"[\r\n]+", output) if line and "step/s" not in line and "?step" not in line]
    assert len(said) == 1 and said[0].startswith("train: worker 1 of 2 was killed by SIGKILL"), output

    training.set(processes=1)
    process = training.start()
    assert f"resuming at step {stopped} " in process.stderr.readline()
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_shares_are_a_batch_between_them_and_even(number):
    sizes = np.random.default_rng(0).integers(2, 50, 100)
    shares = []
    for rank in range(number):
        group = object.__new__(parallel.Workers)
        group.rank, group.number = rank, number
        shares.append(group.share(np.arange(100), sizes))
    assert np.concatenate(shares).tolist() == list(range(100))
    tokens = [sizes[share].sum() for share in shares]
    assert max(tokens) - min(tokens) <= 2 * sizes.max()


@pytest.mark.parametrize(
    "statuses, comes_to",
    [([0, 0], 0), ([75, 75], 75), ([1, workers.LOST], 1), ([0, 75], 75), ([workers.LOST, 2, None], 2)],
)
def test_the_status_of_all(statuses, comes_to):
    assert workers.outcome(statuses) == comes_to


def test_workers_that_lose_each_other_are_not_silent():
    with pytest.raises(UserError, match="lost each other"):
        workers.outcome([workers.LOST, workers.LOST])
