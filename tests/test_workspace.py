"""The folders of unfinished trainings, and what is published at the end."""

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from ruamel.yaml import YAML
from test_parallel import RUN, Training

from pipeline import train
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.training import workspace
from pipeline.workflow import hardware
from transformer.config.reading import UserError
from transformer.parallel import SINGLE_PROCESS
from transformer.store import Store


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """The folder of a finished training of `run`, with its last state and five checkpoints."""
    monkeypatch.setattr(workspace, "WORK", tmp_path / "work")
    place = workspace.folder("run", "0123")
    store = Store(place, 2, {})
    store.state.touch()
    for step in range(10, 60, 10):
        (store.checkpoints / f"step-{step:08d}.safetensors").touch()
    return place


def test_a_kill_while_a_training_is_removed_leaves_no_state_without_its_checkpoints(place, monkeypatch):
    def killed(path: Path, **_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        workspace.remove(place)
    assert place.exists() and not workspace.unfinished("run")


def published(place: Path, out: Path, settings) -> list[str]:
    store = Store(place, 2, {})
    state, config = SimpleNamespace(model=SimpleNamespace(config=settings())), SimpleNamespace(keep=store.keep)
    training = SimpleNamespace(state=state, config=config, store=store)
    train.publish(training, {"vocabulary_size": 90, "vocabulary_sha256": "0"}, out)
    return sorted(path.name for path in out.glob("step-*"))


def test_the_last_checkpoints_are_published_even_if_a_kill_left_more(place, tmp_path, settings):
    names = ["step-00000040.safetensors", "step-00000050.safetensors"]
    assert published(place, tmp_path / "out", settings) == names


def test_a_training_without_checkpoints_does_not_replace_a_model(place, tmp_path, settings):
    published(place, tmp_path / "out", settings)
    for path in place.glob("checkpoints/*"):
        path.unlink()
    with pytest.raises(UserError, match="holds the last state of a training without its checkpoints"):
        published(place, tmp_path / "out", settings)
    assert (tmp_path / "out/step-00000050.safetensors").exists()


# Changes during a training, after which DVC would record the new settings or code for the old model


@pytest.fixture
def short(tmp_path, monkeypatch) -> Callable[[Callable[[], object]], int]:
    """A function that starts or resumes a training of 6 steps, and calls its argument when the last step is done."""
    Training(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    monkeypatch.setattr(hardware, "torch_device", lambda options, threads: torch.device("cpu"))
    monkeypatch.setattr(train, "Interruption", lambda limit: lambda: False)
    write_runs(**SHORT)
    out = {"data": Path("data"), "vocabulary": Path("vocabulary.model"), "out": Path("models"), "scores": Path("scores")}
    arguments = argparse.Namespace(run="run", times=Path("times/training.json"), **out)
    follow = train.follow

    def start(at_the_end: Callable[[], object]) -> int:
        monkeypatch.setattr(train, "follow", lambda *given: (follow(*given), at_the_end())[0])
        return train.lead(arguments, machine(load()), SINGLE_PROCESS)

    return start


SHORT = {"steps": 6, "checkpoint_every": 3}


def write_runs(**settings: object) -> None:
    with open("params.yaml", "r+") as file:
        params = YAML(typ="safe").load(file) | {"runs": {"run": RUN | settings} if settings else {"another": RUN}}
        file.seek(0)
        YAML(typ="safe").dump(params, file)
        file.truncate()


@pytest.mark.parametrize("change", [SHORT | {"dropout": 0.3}, {}], ids=["another setting", "another selection"])
def test_settings_that_change_during_a_training_are_not_recorded_for_it(short, change):
    with pytest.raises(UserError, match=r"the settings of run 'run' changed .* undo the change, and the same command"):
        short(lambda: write_runs(**change))
    assert not Path("models").exists() and len(workspace.unfinished("run")) == 1
    write_runs(**SHORT)
    (state,) = Path("work/run").glob("*/state.safetensors")
    before = state.read_bytes()
    assert short(lambda: before == state.read_bytes() or pytest.fail("it was trained again")) == 0
    assert Path("models/settings.json").exists() and not workspace.unfinished("run")


def test_code_that_changes_during_a_training_is_not_recorded_for_it_but_a_comment_is(short, monkeypatch):
    here = Path("module.py")
    here.write_text("A = 1\n")
    monkeypatch.setattr(workspace, "sources", lambda: {here: here.read_bytes()})
    with pytest.raises(UserError, match=r"module\.py changed .* `python -m pipeline\.commands\.adopt run`"):
        short(lambda: here.write_text("A = 2\n"))
    assert short(lambda: here.write_text("A = 2  # why\n")) == 0
    assert Path("models/settings.json").exists()


def test_the_commit_is_that_of_the_start(short, monkeypatch):
    commits = iter(["first", "second"])
    monkeypatch.setattr(hardware, "commit", lambda: next(commits))
    short(lambda: None)
    assert json.loads(Path("times/training.json").read_text())["commit"] == "first"


def test_the_sources_are_those_of_this_project():
    names = {path.name for path in workspace.sources()}
    assert {"train.py", "loss.py", "workspace.py"} <= names and "test_workspace.py" not in names
