"""The folders of unfinished trainings, and what is published at the end."""

import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline import code, train
from pipeline.commands import accept
from pipeline.orchestrating import project
from pipeline.running import hardware, stage
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.selection import run_settings
from pipeline.text.binarised import describe, write_description
from pipeline.training import more_steps, workers, workspace
from tests.support import in_process
from tests.support.pairs import Pairs
from tests.support.projects import ROOT, STAGES, module_of, without_git
from tests.support.refusals import refused
from tests.support.small_run import RUN, Training, write_data
from tests.support.trainers import files
from transformer.checkpoint import read_settings, read_tensors, write_tensors
from transformer.config.reading import UserError
from transformer.files import digest, read_json, write_json
from transformer.model import Transformer
from transformer.parallel import WorkerLost, Workers
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


def test_an_adopted_training_states_the_code_before_and_one_that_is_running_is_not_adopted(place, here, monkeypatch):
    assert workspace.claim("run", "0123", "first") == (place, [])
    (place / workspace.PUBLISHED).touch()
    monkeypatch.setattr(project, "code_of", lambda *_: None)  # DVC has not recorded it
    assert not workspace.unfinished("run")
    assert workspace.claim("run", "0123", "first") == (place, []) and workspace.unfinished("run") == [place]
    workspace.accept(place, "second")
    assert workspace.claim("run", "0123", "second") == (place, ["first"])
    assert workspace.claim("run", "0123", "second") == (place, ["first"])
    with refused(place, "another version of the code saved"):
        workspace.claim("run", "0123", "third")
    before = (place / "code.json").read_bytes()
    for name in ("run", "train@run"):
        with workspace.lock("run"), refused("another process uses", "work/run"):
            accept.main(argparse.Namespace(names=[name], all=False))
    with workspace.lock("run"), refused("another process uses", "work/run"):
        workspace.remove_recorded("run")
    assert (place / "code.json").read_bytes() == before
    workspace.remove(place)
    workspace.claim("run", "0123", "first")
    assert workspace.claim("run", "0123", "second") == (place, []), "the first was killed before it saved a state"


def published(place: Path, out: Path, settings) -> list[str]:
    store = Store(place, 2, {})
    state, config = (
        SimpleNamespace(model=SimpleNamespace(config=settings())),
        SimpleNamespace(keep=store.keep, max_length=100),
    )
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


# Changes during a stage, after which DVC would record the new settings, data or code for outputs of the old ones

DATA, VOCABULARY = Path("data/demo/binarised"), Path("data/demo/vocabulary.model")
SCRIPTS = {name: import_module(module_of(name)).main for name in ("train", "tune", "flops") if name in STAGES}
READ = {"train": DATA, "tune": DATA, "flops": Path("scores/corpora/demo")}


@pytest.fixture
def started(here, monkeypatch) -> Callable[..., str | int | None]:
    """A function that starts a stage of a run of 6 steps in this process, as DVC does, and returns its exit status.

    Its second argument is called after the stage, before the stage's inputs are compared.
    """
    Training(here, 1)
    for old, new in {"data": DATA, "vocabulary.model": VOCABULARY}.items():
        Path(old).rename("moved")
        new.parent.mkdir(parents=True, exist_ok=True)
        Path("moved").rename(new)
    shutil.copy(ROOT / "dvc.yaml", "dvc.yaml")
    for name in SCRIPTS:
        Path("work/code").mkdir(parents=True, exist_ok=True)
        Path("work/code", name).write_text(code.described(name))
    write_json(READ["flops"] / "binarise.json", {"vocabulary_size": 90})
    monkeypatch.setattr(code, "described", functools.cache(code.described))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    monkeypatch.setattr(hardware, "torch_device", lambda options, threads, arithmetic="native": torch.device("cpu"))
    monkeypatch.setattr(train, "Interruption", lambda limit: lambda: False)
    monkeypatch.setattr(stage, "check", lambda params: None)
    write_runs(**SHORT)
    paths = {"data": DATA, "vocabulary": VOCABULARY, "scores": Path("scores/run"), "times": Path("times/training.json")}
    paths |= {"corpus": READ["flops"] / "binarise.json", "training": Path("scores/run/training.json"), "dev": None}

    def start(script: str, then: Callable[[], object] = bool) -> str | int | None:
        monkeypatch.setenv("DVC_STAGE", f"{script}@run")
        monkeypatch.setattr(sys, "argv", [script])
        parser = argparse.ArgumentParser(script)
        parser.set_defaults(run="run", name="run", out=Path("models" if script == "train" else f"{script}.json"), **paths)
        with pytest.raises(SystemExit) as ended:
            stage.run(lambda arguments: (SCRIPTS[script](arguments), then())[0], parser, remedy=workspace.UNDO)
        return ended.value.code

    return start


OPENED: list[Callable[[str], None]] = []  # the last one is called with each path that is opened
sys.addaudithook(lambda event, given: OPENED[-1](str(given[0])) if event == "open" and OPENED else None)


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_stage_records_is_what_it_ran_with(started, monkeypatch, capsys, script):
    """An edit before the first input is read is one of the inputs. A later one is refused."""
    if script == "flops":
        assert started("train") == 0
    described, data = code.described, READ[script]
    edits = {
        "params.yaml: ": lambda: write_runs(**SHORT, label_smoothing=0.3),
        str(data): lambda: [os.utime(path, (1, 1)) for path in data.iterdir()],
        "its code": lambda: monkeypatch.setattr(code, "described", lambda script: described(script) + "0  new.py\n"),
    }
    for says, edit in edits.items():
        for moment in (1, 2, 10**6):
            opens = itertools.count(1)

            def opened(path: str, opens=opens, moment=moment, edit=edit) -> None:
                if path.startswith((str(data), "params.yaml")) and next(opens) == moment:
                    OPENED.clear()
                    edit()

            OPENED.append(opened)
            status = started(script, lambda edit=edit: OPENED and not OPENED.clear() and edit())
            said = capsys.readouterr().err
            if moment > 1 and (script, says) != ("flops", "params.yaml: "):  # it has no settings
                assert status == 1 and says in said and f"changed while {script}@run ran" in said, (moment, said)
            else:
                assert (status == 1) == (says == "its code"), said
            write_runs(**SHORT)
            for path in data.iterdir():
                os.utime(path, (2, 2))
            monkeypatch.setattr(code, "described", described)


@pytest.fixture
def short(started, monkeypatch) -> Callable[[Callable[[], object]], str | int | None]:
    """A function that starts or resumes the training, and calls its argument when the last step is done."""
    follow = train.follow

    def start(at_the_end: Callable[[], object]) -> str | int | None:
        monkeypatch.setattr(train, "follow", lambda *given: (follow(*given), at_the_end())[0])
        return started("train")

    return start


SHORT, WHOLE = {"steps": 6, "checkpoint_every": 3}, {"micro_batch_tokens": RUN["batch_tokens"]}
SEARCH = {"corpus": "demo", "model": "tiny", "trials": 1, "steps": 1, "metric": "dev_loss", "seed": 1}


def write_runs(**settings: object) -> None:
    params = load() | {"runs": {"run": RUN | WHOLE | settings} if settings else {"another": RUN}}
    params["searches"] = {"run": SEARCH | {"space": {"dropout": [settings.get("label_smoothing", 0.1)]}}}
    Path("params.yaml").write_text(json.dumps(params))  # JSON is YAML, and is written in less time


def key_of_run() -> str:
    _, model, config = run_settings(load(), "run")
    return train.key_of(model, config, describe(DATA))[1]


def finished_without_training(short) -> int:
    """The exit status of a start that goes on after the last step."""
    (state,) = Path("work/run").glob("*/state.safetensors")
    before = state.read_bytes()
    return short(lambda: before == state.read_bytes() or pytest.fail("it was trained again"))


@pytest.mark.parametrize("change", [SHORT | {"dropout": 0.3}, {}], ids=["a setting", "the selection"])
def test_after_an_edit_a_finished_training_is_kept_and_recorded_once_the_edit_is_undone(short, capsys, change):
    assert short(lambda: write_runs(**change)) == 1
    said = capsys.readouterr().err
    assert "params.yaml: " in said and "changed while train@run ran; undo the change, and the same command" in said
    write_runs(**SHORT)
    assert finished_without_training(short) == 0
    assert read_settings(Path("models")).max_length == RUN["max_length"] and not workspace.unfinished("run")


def test_a_training_on_other_data_begins_at_the_first_step_in_a_folder_of_its_own(short):
    assert short(lambda: None) == 0
    (place,) = Path("work/run").glob("*/")
    before, weights = files(place), files(Path("models"))
    shutil.rmtree(DATA)
    Path("other").mkdir()
    write_data(Path("other"), train=61)
    Path("other/data").rename(DATA)
    assert short(lambda: None) == 0
    (other,) = set(Path("work/run").glob("*/")) - {place}
    assert files(place) == before and files(Path("models")) != weights
    steps = [json.loads(line)["step"] for line in (other / "training.jsonl").read_text().splitlines()]
    assert steps and steps == sorted(steps), "of one training"


def test_a_training_begins_with_the_weights_in_its_data_and_resumes_as_any_other(short, capsys):
    write_runs(**SHORT | {"lr_scale": 1e-15, "label_smoothing": 0.2, "dropout": 0.3})
    _, model, _ = run_settings(load(), "run")
    first = Transformer(replace(model, dropout=0.1), 90)
    description, weights = describe(DATA), Path("model.safetensors")
    write_tensors(weights, first.state_dict(), {"averaged_steps": [1]})
    initial = {"weights": weights, "model": "other/average", "settings": vars(first.config)}
    of = [description[key] for key in ("vocabulary_size", "vocabulary_sha256", "languages", "sets")]
    write_description(DATA, *of, initial)
    before = key_of_run()
    assert short(lambda: None) == 0 and "beginning with the weights of models/other/average" in capsys.readouterr().err
    assert finished_without_training(short) == 0 and "resuming at step 6" in capsys.readouterr().err
    tensors, _ = read_tensors(Path("models/step-00000006.safetensors"))
    assert all(torch.allclose(tensors[name], value, atol=1e-9) for name, value in first.state_dict().items())
    assert read_json(Path("scores/run/training.json"))["initial"] == "other/average"
    write_tensors(weights, {name: value + 1 for name, value in first.state_dict().items()}, {"averaged_steps": [1]})
    write_description(DATA, *of, initial)
    assert key_of_run() != before, "other weights are other data"
    write_runs(**SHORT | {"d_ff": 32, "h": 1})
    assert short(lambda: None) == 1
    assert "d_ff is 32 here and 64 in other/average; h is 1 here and 2 in other/average" in capsys.readouterr().err
    (DATA / "initial.safetensors").write_bytes(weights.read_bytes()[:-1])
    write_runs(**SHORT)
    assert short(lambda: None) == 1 and "initial.safetensors is not the file that binarise" in capsys.readouterr().err


def test_a_second_training_of_a_run_is_refused(short, capsys):
    with workspace.lock("run"):
        assert short(lambda: pytest.fail("it trained")) == 1
    assert "another process" in capsys.readouterr().err


def test_a_state_that_was_copied_to_the_folder_of_other_settings_is_refused(short, capsys):
    assert short(lambda: write_runs(**SHORT, dropout=0.3)) == 1
    shutil.rmtree("models")
    (state,) = Path("work/run").glob("*/state.safetensors")
    key = key_of_run()
    shutil.copytree(state.parent, workspace.folder("run", key))
    assert short(lambda: None) == 1
    assert f"was made with settings and data '{state.parent.name}', now '{key[:16]}'" in capsys.readouterr().err
    assert not Path("models").exists()


def trained(short, **settings: object) -> dict[Path, bytes]:
    """What a training with these settings publishes. The log has no times."""
    write_runs(**settings)
    assert short(lambda: None) == 0
    return files(Path("models")) | files(Path("scores/run"))


MORE = {"evaluate_every": 4, "log_every": 1, "keep": 2}
LONGER = [
    ({"steps": 4, "checkpoint_every": 2}, {"steps": 8}, ""),  # the dev loss of step 4 is kept
    ({"steps": 5, "checkpoint_every": 2}, {"steps": 9}, ""),  # that of step 5 is dropped
    ({"steps": 6, "checkpoint_every": 3}, {"steps": 7}, "1 more steps are not a multiple of checkpoint_every (3)"),
    ({"steps": 6, "checkpoint_every": 3, "patience": 9}, {"steps": 9}, "patience is 9, and 0 is expected"),
    ({"steps": 6, "checkpoint_every": 3}, {"steps": 9, "dropout": 0.3}, None),  # another training
    ({"steps": 6, "checkpoint_every": 3}, {"steps": 4}, None),
    ({"steps": 2, "checkpoint_every": 1}, {"steps": 6, "checkpoint_every": 3}, None),
]


@pytest.mark.parametrize(("first", "then", "reason"), LONGER)
def test_more_steps_go_on_from_the_finished_training_with_the_bytes_of_one_of_that_length(
    short, capsys, first, then, reason
):
    whole = trained(short, **MORE | first | then)
    shutil.rmtree("work/run")
    before = trained(short, **MORE | first)
    (place,) = Path("work/run").glob("*/")
    kept = files(place)
    capsys.readouterr()
    assert trained(short, **MORE | first | then) == whole
    said = capsys.readouterr().err
    assert (f"resuming at step {first['steps']}" in said) == (reason == "")
    assert ("the training begins at step 0" in said) == bool(reason) and (reason or "") in said
    assert files(place) == kept and trained(short, **MORE | first) == before
    if reason is not None and "patience" not in first:
        longest = (first if reason else then)["steps"]
        trained(short, **MORE | first | {"steps": longest + first["checkpoint_every"]})
        assert f"resuming at step {longest}" in capsys.readouterr().err, "the longest from which a multiple remains"


@pytest.mark.slow
def test_more_steps_do_not_go_on_from_a_state_of_other_code_or_of_other_hardware(short, monkeypatch, capsys):
    whole = trained(short, **MORE, **SHORT | {"steps": 9})
    shutil.rmtree("work/run")
    trained(short, **MORE, **SHORT)
    (place,) = Path("work/run").glob("*/")
    history = (place / "code.json").read_text()
    for other, says in {
        "code.json": "other code made it",
        "state.safetensors": "precision was 'float16', now '",
    }.items():
        if other == "code.json":
            write_json(place / other, [*read_json(place / other), "of another version"])  # accepted for it
        else:
            tensors, description = read_tensors(place / other)
            description["identity"]["precision"] = "float16"
            write_tensors(place / other, tensors, description)
        capsys.readouterr()
        assert trained(short, **MORE, **SHORT | {"steps": 9}) == whole
        assert says in capsys.readouterr().err
        shutil.rmtree(workspace.folder("run", key_of_run()))
        (place / "code.json").write_text(history)
    trained(short, **MORE, **SHORT | {"steps": 3})
    write_json(place / "code.json", ["of another version"])
    capsys.readouterr()
    assert trained(short, **MORE, **SHORT | {"steps": 9}) == whole
    assert "resuming at step 3" in capsys.readouterr().err, "the longest that the present code made"


def test_a_kill_at_any_write_before_more_steps_begin_costs_nothing(short, monkeypatch):
    more = MORE | SHORT | {"steps": 9}
    whole = trained(short, **more)
    shutil.rmtree("work/run")
    trained(short, **MORE, **SHORT)
    (place,) = Path("work/run").glob("*/")
    kept = files(place)
    for write in range(4):  # two checkpoints, the digests of the code, the state
        left = itertools.count()

        def killed(function: Callable, write: int = write, left: itertools.count = left) -> Callable:
            def called(*given: object) -> object:
                if next(left) == write:
                    raise KeyboardInterrupt
                return function(*given)

            return called

        write_runs(**more)
        with monkeypatch.context() as patch:
            for name in ("copy", "write_json", "write_tensors"):
                patch.setattr(more_steps, name, killed(getattr(more_steps, name)))
            assert short(lambda: None) != 0
        assert files(place) == kept and trained(short, **more) == whole
        shutil.rmtree(workspace.folder("run", key_of_run()))


@pytest.mark.parametrize("folder", ["pipeline", "transformer"])
def test_a_commit_is_marked_if_the_code_was_edited(here, folder):
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

    with monkeypatch.context() as patch:
        patch.setattr(train, "write_times", full)
        assert short(lambda: None) == 1
    (place,) = workspace.unfinished("run")
    made = files(Path("models")) | files(Path("scores/run"))
    for _ in range(2):  # DVC, if killed before it has recorded them, removes the outputs and starts the stage again
        shutil.rmtree("models")
        shutil.rmtree("scores/run")
        assert finished_without_training(short) == 0
        assert Path("times/training.json").exists() and workspace.saved("run") == [place] != workspace.unfinished("run")
        assert files(Path("models")) | files(Path("scores/run")) == made


RECORDED = """
stages:
  code: {cmd: mkdir -p work/code && echo text > work/code/train, outs: [work/code]}
  train@run: {cmd: echo made > made, deps: [work/code/train], outs: [made]}
"""


def test_dvc_has_recorded_a_training_once_its_entry_and_its_cache_have_the_outputs(here):
    Path("dvc.yaml").write_text(RECORDED.replace("train@run: {", "train:\n    foreach: [run]\n    do: {"))
    without_git(here)
    md5 = hashlib.md5(b"made\n").hexdigest()
    assert project.code_of("train@run", md5) is None
    subprocess.run([sys.executable, "-m", "dvc", "repro", "--quiet"], check=True)
    assert project.code_of("train@run", md5) == "text\n"
    assert project.code_of("train@run", "0" * 32) is None and project.code_of("train@other", md5) is None
    Path(".dvc/cache/files/md5", md5[:2], md5[2:]).unlink()
    assert project.code_of("train@run", md5) is None, "a clone has the entry, and not the outputs"


class Trainings(RuleBasedStateMachine):
    """A run whose stages DVC starts, kills and records, with edits between. Of DVC and the training, only files are here.

    Its invariant: what was trained is in outputs that DVC has recorded and cached, or in work/, and the next start uses it.
    """

    STEPS = 3

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self.patch.setattr(workspace, "WORK", self.folder / "work")
        self.patch.setattr(project, "code_of", lambda name, md5: self.code_of(name, md5))
        self.setting, self.code = "A", "first"
        self.outputs: str | None = None  # what is in models/
        self.entry: tuple[str, str, str] | None = None  # of dvc.lock: the setting, the code and what they made
        self.cache: set[str] = set()
        self.runs: dict[tuple[str, str], str] = {}  # DVC's run cache
        self.trained: dict[str, int] = {}  # the steps of each setting that must not be lost

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    def code_of(self, name: str, md5: str) -> str | None:
        assert name == "train@run"
        return self.entry[1] if self.entry and self.entry[2] == md5 in self.cache else None

    @initialize(cloned=st.booleans())
    def clone(self, cloned: bool) -> None:
        """The dvc.lock of a clone has the entry of the training that was recorded elsewhere."""
        self.entry = ("A", "first", "made by A") if cloned else None

    @rule(setting=st.sampled_from("AB"))
    def switch(self, setting: str) -> None:
        self.setting = setting

    @rule(code=st.sampled_from(["first", "second"]))
    def edit_code(self, code: str) -> None:
        self.code = code

    @rule()
    def accept(self) -> None:
        for place in workspace.saved("run"):
            workspace.accept(place, digest(self.code))
        if self.entry and self.entry[0] == self.setting and self.entry[2] in self.cache:
            self.record()

    def record(self) -> None:
        made = f"made by {self.setting}"
        self.entry = self.setting, self.code, made
        self.cache.add(made)
        self.runs[self.setting, self.code] = made

    @rule(writes=st.integers(0, 8), force=st.booleans())
    def repro(self, writes: int, force: bool) -> None:
        """Run the stage `train`. It is killed after so many writes, of which the last is DVC's."""
        known = self.runs.get((self.setting, self.code))
        if known and not force:
            self.outputs, self.entry = known, (self.setting, self.code, known)
            return
        self.outputs = None
        in_cache = f"made by {self.setting}" in self.cache
        place = workspace.folder("run", self.setting)
        expected = self.trained.get(self.setting, 0)
        try:
            with workspace.lock("run"):
                workspace.claim("run", self.setting, digest(self.code))
        except UserError:
            history = workspace.history_of(place)
            assert history[-1] != digest(self.code) and (place / workspace.STATE).exists()
            return
        state = place / workspace.STATE
        step = int(state.read_text()) if state.exists() else 0
        if not in_cache:
            assert step == expected, "the next start uses it"
        self.trained[self.setting] = step
        for _ in range(step, self.STEPS):
            if (writes := writes - 1) < 0:
                return
            step += 1
            state.write_text(str(step))
            self.trained[self.setting] = step
        for write in (self.publish, lambda: (place / workspace.PUBLISHED).write_text(self.outputs), self.record):
            if (writes := writes - 1) < 0:
                return
            write()

    def publish(self) -> None:
        self.outputs = f"made by {self.setting}"

    @rule()
    def average(self) -> None:
        if self.outputs:
            workspace.remove_recorded("run")
            if self.entry and self.entry[2] == self.outputs in self.cache:
                marks = [mark.read_text() for mark in (workspace.WORK / "run").glob("*/published")]
                same = workspace.history_of(workspace.folder("run", self.entry[0]))[-1:] == [digest(self.entry[1])]
                assert not (same and self.outputs in marks), "it is kept once"

    @invariant()
    def nothing_is_lost(self) -> None:
        for setting, step in self.trained.items():
            state = workspace.folder("run", setting) / workspace.STATE
            kept = int(state.read_text()) if state.exists() else 0
            assert kept == step or f"made by {setting}" in self.cache, f"{step} steps of {setting}"


TestTrainings = Trainings.TestCase
TestTrainings.settings = hypothesis.settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_times_and_counts_are_in_the_units_of_their_names_and_the_commit_is_that_of_the_start(short, monkeypatch):
    commits = iter(["first", "second"])
    monkeypatch.setattr(hardware, "commit", lambda: next(commits))
    here = hardware.hardware(torch.device("cpu"))
    monkeypatch.setattr(hardware, "hardware", lambda device, processes=0: {**here, "gpus": processes})
    trainings, trainer = [], train.trainer
    monkeypatch.setattr(train, "trainer", lambda *given: trainings.append(trainer(*given)) or trainings[0])
    write_runs(**SHORT, max_length=20, evaluate_every=3)  # the pairs have up to 25 pieces
    binarised = read_json(DATA / "binarised.json")
    binarised["sets"]["train"]["segmentations"] = 2
    write_json(DATA / "binarised.json", binarised)
    short(lambda: None)
    made, took = (json.loads(Path(path).read_text()) for path in ("scores/run/training.json", "times/training.json"))
    (took,) = took.values()  # by the sha256 of training.json
    assert took["commit"] == "first" and took["processes"] == took["gpus"] == 1
    tokens = made["source_tokens"] + made["target_tokens"]
    dev = [
        record
        for record in map(json.loads, Path("scores/run/training.jsonl").read_text().splitlines())
        if "dev_loss" in record
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


def test_a_training_that_another_worker_stops_says_so_and_exits_with_75(started, monkeypatch, capsys):
    monkeypatch.setattr(train, "Interruption", lambda limit: Mock(return_value=False, reason=None))
    monkeypatch.setattr(Workers, "highest", lambda _, *values: (True, *values[1:]) if len(values) == 3 else values)
    assert started("train") == stage.INTERRUPTED
    assert "stopped by another worker at step 1;" in capsys.readouterr().err


def test_a_training_that_lost_another_worker_leaves_the_error_to_the_launcher(started, monkeypatch, capsys):
    monkeypatch.setattr(train, "lead", Mock(side_effect=WorkerLost))
    assert (started("train"), capsys.readouterr().err) == (workers.LOST, "")


def test_only_the_first_worker_reports_that_a_training_diverged(short):
    write_runs(**SHORT, lr_scale=1e9)
    arguments = argparse.Namespace(run="run", data=DATA, vocabulary=VOCABULARY)
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
    for other in ({}, {"instructions": "AVX512", "hardware": "another"}):
        monkeypatch.setattr(hardware, "hardware", lambda _, now=other: here | now | {"arithmetic": "portable"})
        made.append(train.identity_of(cpu, "float32", 2))
    assert made[-1] == made.pop() and made.count(made[-1]) == 1, "portable arithmetic is the same on each type of CPU"


def test_the_time_limit_is_in_minutes(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(train, "signal", SimpleNamespace(**vars(signal) | {"signal": lambda *_: None}))
    stop, never = train.Interruption(2.0), train.Interruption(None)
    now += 119
    assert not stop()
    now += 2
    assert stop() and not never() and stop.reason == "the time limit of 2 minutes"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_a_training_and_nohup_keeps_it_from_sighup(number):
    with in_process.inside(Path()):
        for handler in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGHUP, handler)
            stop = train.Interruption(None)
            assert not stop()
            signal.raise_signal(number)
            heeded = handler == signal.SIG_DFL or number != signal.SIGHUP
            assert (stop(), stop.reason) == (heeded, number.name if heeded else None)
