"""The whole pipeline, really run: by Snakemake in a copy of the project, on a small demonstration corpus.

What is killed and started again must end with the same bytes as what was not.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.stubs import copy_project

SMALLER = {
    "train: 40000, dev: 500, test: 1000": "train: 1500, dev: 30, test: 40",
    "vocabulary: {size: 2000}": "vocabulary: {size: 600}",
}
RUN = "demo-tiny"
TINY = {"N": 1, "d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16, "steps": 60, "batch_tokens": 300}
TINY |= {"micro_batch_tokens": 300, "warmup": 10, "checkpoint_every": 5, "evaluate_every": 20, "log_every": 10}
STAGES = {
    "normalise": "data/demo/normalised",
    "learn_bpe": "data/demo/vocabulary.model",
    "binarise": "data/demo/binarised",
    "train": f"models/{RUN}/checkpoints",
    "average": f"models/{RUN}/average",
    "decode": f"scores/{RUN}/translations",
    "score": f"scores/{RUN}/score.json",
}


class Project:
    """A copy of the project, and how to run things in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def popen(self, *command: str, **options) -> subprocess.Popen:
        environment = os.environ | {
            "MLFLOW_TRACKING_URI": "off",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, cwd=self.root, env=environment, **(pipes | options))

    def run(self, *command: str) -> tuple[int, str]:
        process = self.popen(*command)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def dvc(self, *arguments: str) -> tuple[int, str]:
        return self.run(sys.executable, "-m", "dvc", *arguments)

    def snakemake(self, *arguments: str) -> tuple[int, str]:
        return self.run(sys.executable, "-m", "snakemake", *arguments)

    def command(self, stage: str) -> list[str]:
        """The command of a stage, as DVC ran it."""
        key = RUN if stage in ("train", "average", "decode", "score") else "demo"
        lock = YAML(typ="safe").load((self.root / "dvc.lock").read_text())
        return [sys.executable, *lock["stages"][f"{stage}@{key}"]["cmd"].split()[1:]]

    def content(self, path: str) -> dict[str, bytes]:
        """The bytes of a file or of all files in a folder."""
        place = self.root / path
        files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
        return {str(file.relative_to(place)): file.read_bytes() for file in sorted(files)}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    copy_project(root)
    text = (root / "params.yaml").read_text()
    for old, new in SMALLER.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    differences = ", ".join(f"{key}: {value}" for key, value in TINY.items())
    text = text.replace(
        f"  {RUN}: {{corpus: demo, model: tiny}}", f"  {RUN}: {{corpus: demo, model: tiny, {differences}}}", 1
    )
    (root / "params.yaml").write_text(text)
    project = Project(root)
    status, output = project.snakemake("--cores", "2")
    assert status == 0, output
    return project


def test_it_ends_with_a_report(project):
    page = (project.root / "reports/index.html").read_text()
    score = json.loads((project.root / f"scores/{RUN}/score.json").read_text())
    assert RUN in page and f"{score['test']['average']['metrics']['bleu-13a']['score']:.2f}" in page
    for line in (project.root / f"scores/{RUN}/training.jsonl").read_text().split("\n")[:-1]:
        assert "step" in json.loads(line)
    model_folder = {path.name for path in (project.root / f"models/{RUN}/average").iterdir()}
    assert model_folder == {"model.safetensors", "settings.json", "vocabulary.model"}
    assert not list((project.root / "work" / RUN).glob("*/")), "the published training left its state behind"


def test_both_tools_find_nothing_more_to_do(project):
    assert "up to date" in project.dvc("status")[1]
    assert "Running" not in project.dvc("repro")[1]
    assert "Nothing to be done" in project.snakemake("-n")[1]


def test_metrics_and_dag_can_be_shown(project):
    status, table = project.dvc("metrics", "show")
    assert status == 0 and "bleu-13a" in table and "dev_perplexity" in table
    status, graph = project.dvc("dag", "--mermaid")
    assert status == 0 and f"train@{RUN}" in graph


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_killed_and_run_again_writes_the_same_bytes(project, stage):
    """SIGKILL at a seeded moment of what the stage took; then the same command to the end."""
    before, command = project.content(STAGES[stage]), project.command(stage)
    started = time.monotonic()
    assert project.run(*command)[0] == 0
    took = time.monotonic() - started
    assert project.content(STAGES[stage]) == before, "not the same bytes without a kill"
    process = project.popen(*command, start_new_session=True)
    time.sleep(took * random.Random(stage).uniform(0.3, 0.95))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    status, output = project.run(*command)
    assert status == 0, output
    assert project.content(STAGES[stage]) == before


def test_sigterm_saves_says_so_and_is_resumed(project):
    before, command = project.content(STAGES["train"]), project.command("train")
    process = project.popen(*command)
    log = project.root / "work" / RUN
    while process.poll() is None and not list(log.glob("*/state.safetensors")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 75, output
    assert "stopped by SIGTERM at step" in output
    status, output = project.run(*command)
    assert status == 0 and "resuming at step" in output
    assert project.content(STAGES["train"]) == before


def test_a_second_trainer_is_refused(project):
    command = project.command("train")
    first = project.popen(*command)
    while first.poll() is None and not list((project.root / "work" / RUN).glob("*/training.jsonl")):
        time.sleep(0.01)
    status, output = project.run(*command)
    first.communicate()
    assert status == 1 and "another process" in output and "Traceback" not in output


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("beam: 4 ", "beam: 0 ", "beam"),
        ("  tiny:     ", "  tony:     ", "did you mean 'tony'"),
        ("alpha: 0.6", "alhpa: 0.6", "did you mean 'alpha'"),
    ],
)
def test_wrong_settings_are_refused_by_both_tools_in_one_line(project, old, new, says):
    path = project.root / "params.yaml"
    text = path.read_text()
    assert old in text
    try:
        path.write_text(text.replace(old, new, 1))
        for command in (["-m", "snakemake", "-n"], ["-m", "pipeline.check"], project.command("score")[1:]):
            status, output = project.run(sys.executable, *command)
            assert status == 1 and says in output and "Traceback" not in output, output
    finally:
        path.write_text(text)
