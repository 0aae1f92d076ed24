"""The folders of unfinished trainings, and what is published at the end."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline import train
from pipeline.training import workspace
from transformer.config.reading import UserError
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
