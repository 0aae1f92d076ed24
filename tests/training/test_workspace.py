"""The folders of unfinished trainings, and what is published at the end."""

import argparse
import hashlib
import json
import math
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from ruamel.yaml import YAML

from pipeline import code, train
from pipeline.commands import accept
from pipeline.corpora.binarised import describe
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.selection import run_settings
from pipeline.training import workers, workspace
from pipeline.workflow import hardware
from tests.pairs import Pairs
from tests.projects import ROOT
from tests.refusals import refused
from tests.small_run import RUN, Training, write_data
from tests.trainers import files
from transformer.checkpoint import read_settings, read_tensors
from transformer.files import read_json, write_json
from transformer.parallel import SINGLE_PROCESS, Workers
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


def test_an_adopted_training_states_the_code_before_and_one_that_is_running_is_not_adopted(place):
    assert workspace.claim("run", "0123", "first") == (place, [])
    workspace.accept(place, "second")
    assert workspace.claim("run", "0123", "second") == (place, ["first"])
    assert workspace.claim("run", "0123", "second") == (place, ["first"])
    with refused(place, "another version of the code saved"):
        workspace.claim("run", "0123", "third")
    before = (place / "code.json").read_bytes()
    with workspace.lock("run"), refused("another process uses", "work/run"):
        accept.main(argparse.Namespace(name="run"))
    assert (place / "code.json").read_bytes() == before
    workspace.remove(place)
    workspace.claim("run", "0123", "first")
    assert workspace.claim("run", "0123", "second") == (place, []), "the first was killed before it saved a state"


def published(place: Path, out: Path, settings) -> list[str]:
    store = Store(place, 2, {})
    state, config = SimpleNamespace(model=SimpleNamespace(config=settings())), SimpleNamespace(keep=store.keep)
    training = SimpleNamespace(state=state, config=config, store=store)
    train.publish(training, {"vocabulary_size": 90, "vocabulary_sha256": "0"}, out)
    return sorted(path.name for path in out.glob("step-*"))


def test_the_last_checkpoints_are_published_even_if_a_kill_left_more_and_nothing_without_any(place, tmp_path, settings):
    names = ["step-00000040.safetensors", "step-00000050.safetensors"]
    assert published(place, tmp_path / "out", settings) == names
    for path in place.glob("checkpoints/*"):
        path.unlink()
    with refused(place, "holds the last state of a training without its checkpoints"):
        published(place, tmp_path / "out", settings)
    assert sorted(path.name for path in (tmp_path / "out").glob("step-*")) == names, "the earlier model is kept"


# Changes during a training, after which DVC would record the new settings or code for the old model


@pytest.fixture
def short(tmp_path, monkeypatch) -> Callable[[Callable[[], object]], int]:
    """A function that starts or resumes a training of 6 steps, and calls its argument when the last step is done."""
    Training(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "dvc.yaml", "dvc.yaml")
    monkeypatch.setenv("DVC_STAGE", "train@run")
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


def key_of_run() -> str:
    _, model, config = run_settings(load(), "run")
    return train.key_of(model, config, describe(Path("data")))[1]


def finished_without_training(short) -> int:
    """The exit status of a start that goes on after the last step."""
    (state,) = Path("work/run").glob("*/state.safetensors")
    before = state.read_bytes()
    return short(lambda: before == state.read_bytes() or pytest.fail("it was trained again"))


@pytest.mark.parametrize("change", [SHORT | {"dropout": 0.3}, {}, None], ids=["a setting", "the selection", "the code"])
def test_what_changes_during_a_training_is_not_recorded_for_it(short, monkeypatch, change):
    described = code.described
    if change is None:
        with refused("its code changed while train@run ran; the finished training is kept: undo"):
            short(lambda: monkeypatch.setattr(code, "described", lambda script: "other"))
        monkeypatch.setattr(code, "described", described)
    else:
        with refused("params.yaml: ", "changed while train@run ran; ", "undo the change, and the same command"):
            short(lambda: write_runs(**change))
        write_runs(**SHORT)
    assert not Path("models").exists() and len(workspace.unfinished("run")) == 1
    assert finished_without_training(short) == 0
    assert read_settings(Path("models")).max_length == RUN["max_length"] and not workspace.unfinished("run")


def test_a_training_on_other_data_begins_at_the_first_step_in_a_folder_of_its_own(short):
    assert short(lambda: None) == 0
    (place,) = Path("work/run").glob("*/")
    before, weights = files(place), files(Path("models"))
    shutil.rmtree("data")
    write_data(Path(), train=61)
    assert short(lambda: None) == 0
    (other,) = set(Path("work/run").glob("*/")) - {place}
    assert files(place) == before and files(Path("models")) != weights
    steps = [json.loads(line)["step"] for line in (other / "training.jsonl").read_text().splitlines()]
    assert steps and steps == sorted(steps), "of one training"


def test_a_state_that_was_copied_to_the_folder_of_other_settings_is_refused(short):
    with refused("params.yaml: runs.run changed"):
        short(lambda: write_runs(**SHORT, dropout=0.3))
    (state,) = Path("work/run").glob("*/state.safetensors")
    key = key_of_run()
    shutil.copytree(state.parent, workspace.folder("run", key))
    with refused(f"was made with settings and data '{state.parent.name}', now '{key[:16]}'"):
        short(lambda: None)
    assert not Path("models").exists()


@pytest.mark.parametrize("folder", ["pipeline", "transformer"])
def test_a_commit_is_marked_if_the_code_was_edited(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    for path in ("pipeline/a.py", "transformer/a.py", "params.yaml"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("a = 1\n")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    Path("params.yaml").write_text("a: 2\n")
    assert hardware.commit() == head
    Path(folder, "a.py").write_text("a = 2\n")
    assert hardware.commit() == f"{head}-edited"


def test_a_finished_training_is_kept_until_average_has_run(short, monkeypatch):
    def full(*_) -> None:
        raise OSError("No space left on device")

    Path("dvc.lock").write_text("outs: []\n")  # it knows other stages
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(train, "write_times", full)
        short(lambda: None)
    (place,) = workspace.unfinished("run")
    made = files(Path("models")) | files(Path("scores"))
    for _ in range(2):  # DVC, if killed before it has recorded them, removes the outputs and starts the stage again
        shutil.rmtree("models")
        shutil.rmtree("scores")
        assert finished_without_training(short) == 0
        assert Path("times/training.json").exists() and workspace.saved("run") == [place] != workspace.unfinished("run")
        assert files(Path("models")) | files(Path("scores")) == made
    (place / workspace.PUBLISHED).write_text("")
    assert finished_without_training(short) == 0, "of earlier code, whose mark was empty"
    recorded = hashlib.md5(Path("scores/training.json").read_bytes()).hexdigest()
    Path("dvc.lock").write_text(f"outs:\n- path: scores/training.json\n  md5: {recorded}\n")
    assert workspace.claim("run", key_of_run(), "of other code") == (place, []), "it is recorded, so it is made again"
    assert not (place / "state.safetensors").exists()
    (place / workspace.PUBLISHED).touch()
    workspace.remove_published("run")
    assert not place.exists()


def test_times_and_counts_are_in_the_units_of_their_names_and_the_commit_is_that_of_the_start(short, monkeypatch):
    commits = iter(["first", "second"])
    monkeypatch.setattr(hardware, "commit", lambda: next(commits))
    trainings, trainer = [], train.trainer
    monkeypatch.setattr(train, "trainer", lambda *given: trainings.append(trainer(*given)) or trainings[0])
    write_runs(**SHORT, max_length=20, evaluate_every=3)  # the pairs have up to 25 pieces
    binarised = read_json(Path("data/binarised.json"))
    binarised["sets"]["train"]["segmentations"] = 2
    write_json(Path("data/binarised.json"), binarised)
    short(lambda: None)
    made, took = (json.loads(Path(path).read_text()) for path in ("scores/training.json", "times/training.json"))
    (took,) = took.values()  # by the sha256 of training.json
    assert took["commit"] == "first"
    tokens = made["source_tokens"] + made["target_tokens"]
    dev = [
        record for record in map(json.loads, Path("scores/training.jsonl").read_text().splitlines()) if "dev_loss" in record
    ]
    assert [made[key] for key in ("dev_loss", "dev_perplexity")] == [dev[-1][key] for key in ("dev_loss", "dev_perplexity")]
    assert len(dev) > 1 and made["dev_perplexity"] == pytest.approx(math.exp(made["dev_loss"]), rel=1e-5)
    assert made["batches_an_epoch"] == len(trainings[0].batches)
    assert took["tokens_per_second"] * took["seconds"] == pytest.approx(tokens, rel=0.1)
    lengths = zip(*(Pairs(60, 25).lengths(side) for side in ("source", "target")))
    assert made["pairs_left_out"] == round(sum(max(pair) + 1 > 20 for pair in lengths) / 2) > 0, "EOS counts"
    weights, _ = read_tensors(Path("models/step-00000006.safetensors"))
    assert made["parameters"] == sum(tensor.numel() for tensor in weights.values())
    assert trainings[0].save_every_seconds == pytest.approx(0.06), "params.yaml states 0.001 minutes"


def test_only_the_first_worker_reports_that_a_training_diverged(short):
    write_runs(**SHORT, lr_scale=1e9)
    arguments = argparse.Namespace(run="run", data=Path("data"), vocabulary=Path("vocabulary.model"))
    second = Workers()
    second.rank = 1
    assert train.assist(arguments, machine(load()), second) == workers.LOST


def test_a_state_of_another_precision_number_of_threads_or_kind_of_cpu_is_not_resumed(monkeypatch):
    """With `precision: auto`, another torch may choose another precision, and CPUs of one name differ in instructions."""
    cpu = torch.device("cpu")
    here, made = hardware.hardware(cpu), [train.identity_of(cpu, *other) for other in (("bfloat16", 2), ("float32", 3))]
    for instructions in ("AVX2", "AVX512", "AVX2"):
        monkeypatch.setattr(hardware, "hardware", lambda _, now=instructions: here | {"instructions": now})
        made.append(train.identity_of(cpu, "float32", 2))
    assert made[2] == made.pop() and not any(made.count(each) > 1 for each in made)


def test_the_time_limit_is_in_minutes(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(train, "signal", SimpleNamespace(**vars(signal) | {"signal": lambda *_: None}))
    stop, never = train.Interruption(2.0), train.Interruption(None)
    now += 119
    assert not stop()
    now += 2
    assert stop() and not never() and stop.reason == "the time limit of 2 minutes"
