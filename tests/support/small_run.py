"""A folder in which `python -m pipeline.train run` trains a small model on random pairs."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML

from pipeline.settings.params import load
from pipeline.text.binarised import id_type, write_description, write_side
from tests.support.pairs import Pairs
from tests.support.projects import OF_TESTS, ROOT
from transformer.files import sha256

RUN = {"corpus": "demo", "model": "tiny", "N": 1, "d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16}
RUN |= {"batch_tokens": 200, "micro_batch_tokens": 60, "max_length": 30, "threads": 1}
RUN |= {"steps": 100_000, "checkpoint_every": 100}  # more steps than any test takes
VOCABULARY = 90
ARGUMENTS = "run --data data --vocabulary vocabulary.model --out models --scores scores --times times/training.json"
PATIENCE = 180  # seconds, enough on a busy machine; on an idle machine, each wait is shorter than 10 seconds
COMMAND = ["pipeline.train", *ARGUMENTS.split()]


def write_data(folder: Path, train: int = 60, dev: int = 12) -> None:
    """Write folder/data, with this number of pairs of train and of dev, and folder/vocabulary.model."""
    (folder / "data").mkdir()
    counts: dict[str, dict] = {}
    for name, pairs in {"train": Pairs(train, 25), "dev": Pairs(dev, 25, seed=9)}.items():
        counts[name] = {"pairs": len(pairs)}
        for side, lines in zip(("source", "target"), pairs.sides):
            encoded = [(np.concatenate(lines), np.array([len(ids) for ids in lines]))]
            _, tokens = write_side(folder / "data", f"{name}.{side}", encoded, id_type(VOCABULARY))
            counts[name][f"{side}_tokens"] = tokens
    (folder / "vocabulary.model").write_bytes(b"only its digest is compared")
    write_description(folder / "data", VOCABULARY, sha256(folder / "vocabulary.model"), ["en", "de"], counts)


def write_params(folder: Path, machine: dict | None = None, **settings) -> None:
    """Write params.yaml with the run `run`: RUN, changed by `settings`."""
    write_yaml(folder, {"run": RUN | settings}, machine={"save_every_minutes": 0.001, **(machine or {})})


def write_yaml(folder: Path, runs: dict, machine: dict | None = None, **base: dict) -> None:
    """Write the project's params.yaml with these runs of the corpus `demo`, and changes of `machine` and `base`."""
    params = load(ROOT / "params.yaml") | {"runs": runs, "corpora_in_use": ["demo"]}
    params["machine"] |= machine or {}
    for section, changes in base.items():
        params["base"][section] |= changes
    write_params_yaml(folder, params)


def write_params_yaml(folder: Path, params: dict) -> None:
    with open(folder / "params.yaml", "w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)


def saved(process: subprocess.Popen, folder: Path) -> None:
    """Wait until a training has saved its first state below this folder."""
    while process.poll() is None and not list(folder.glob("**/state.safetensors")):
        time.sleep(0.005)


class Training:
    """`python -m pipeline.train` in its own folder, on random pairs."""

    def __init__(self, folder: Path, processes: int, nodes: int = 1) -> None:
        self.folder, self.work = folder, folder / "work/run"
        self.started: list[subprocess.Popen] = []
        write_data(folder)
        write_params(folder, {"nodes": nodes, "processes": processes})

    def kill(self) -> None:
        """Kill the processes that a failed test has left."""
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def start(self) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", *COMMAND],
            cwd=self.folder,
            env=os.environ | OF_TESTS,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def first_line(self, process: subprocess.Popen) -> str:
        """What a training says first, after the line that names no commit: its folder is no clone of git."""
        line = process.stderr.readline()
        return process.stderr.readline() if line.startswith("warning: the commit of the code is not recorded") else line
