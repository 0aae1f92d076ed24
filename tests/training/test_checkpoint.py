"""Damaged, malicious and mismatched checkpoints are refused, and a killed training loses nothing that it had saved."""

import argparse
import itertools
import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.multiprocessing import start_processes

from pipeline import average
from pipeline.training import workspace
from tests.support.killed import at_change
from tests.support.packed import Payload
from tests.support.refusals import refused
from tests.support.small_run import write_yaml
from tests.support.trainers import build, files, run
from transformer.checkpoint import load_model, read_settings, read_tensors, write_settings, write_tensors
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import AveragingConfig, TrainingConfig
from transformer.files import HOST, atomic, atomic_folder, remove, sha256, write_lines
from transformer.model import Transformer

KILLED = 9


def test_a_flipped_bit_of_any_byte_and_a_cut_anywhere_are_noticed(tmp_path):
    """The bytes are those of the header and of the weights."""
    path = tmp_path / "step-00000003.safetensors"
    write_tensors(path, {"w": torch.arange(6.0).reshape(2, 3), "half": torch.ones((), dtype=torch.bfloat16)}, {"step": 3})
    good = path.read_bytes()
    flipped = [good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :] for at in range(len(good))]
    for content in [*flipped, *(good[:length] for length in range(0, len(good), 10))]:
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"step-00000003\.safetensors is damaged"):
            read_tensors(path)
    path.write_bytes(good)
    read, description = read_tensors(path)
    assert description == {"step": 3} and read.keys() == {"w", "half"}
    with pytest.raises(UserError, match=f"{tmp_path} cannot be read"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("write", [pickle.dump, torch.save])
def test_a_pickle_in_the_place_of_weights_or_settings_is_not_executed(here, settings, write):
    write_settings(here, settings(), 90, "0" * 64)
    with open("model.safetensors", "wb") as file:
        write(Payload(), file)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        load_model(here / "model.safetensors", torch.device("cpu"))
    Path("model.safetensors").rename("settings.json")
    with pytest.raises(UserError, match=r"settings\.json is damaged"):
        read_settings(here)
    assert not Path("evil").exists()


SIZES = ["abc", "90", 9.5, True, None, [90], -5, 0, 10**7 + 1, 10**13]
SPOILT = ["", "[]", "3", "{}", '{"model": 3}', pytest.param("[" * 100_000, id="deep")]


WRONG = [*({"vocabulary_size": size} for size in SIZES), {"max_length": 0}, {"max_length": "long"}, *SPOILT]


@pytest.mark.parametrize("content", WRONG, ids=str)
def test_invalid_settings_are_refused_with_the_name_of_the_file(tmp_path, settings, content):
    write_settings(tmp_path, settings(), 90, "0" * 64)
    assert read_settings(tmp_path) == (settings(), 90, "0" * 64, None)
    path = tmp_path / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(json.loads(path.read_text()) | content))
    with refused("settings.json", *(f": {key}: " for key in content if isinstance(content, dict))):
        load_model(tmp_path / "model.safetensors", torch.device("cpu"))


def test_a_file_of_other_weights_is_refused_by_its_name(tmp_path, settings):
    path, device = tmp_path / "model.safetensors", torch.device("cpu")
    save_file({}, path, {"description": "[" * 100_000})
    with refused("model.safetensors is damaged"):
        read_tensors(path)
    model = Transformer(settings(), 90)
    write_tensors(path, model.state_dict(), {})
    for other, size in ((settings(d_ff=96), 90), (settings(N=1), 90), (settings(), 91)):
        write_settings(tmp_path, other, size, "0" * 64)
        with refused("model.safetensors", " it is of a model with other settings"):
            load_model(path, device)
    model.state_dict()["embedding"][0, 0] = float("inf")
    write_tensors(path, model.state_dict(), {})
    write_settings(tmp_path, settings(), 90, "0" * 64)
    with refused("model.safetensors", "'embedding'", "not finite"):
        load_model(path, device)
    path.unlink()
    with refused("model.safetensors is missing"):
        load_model(path, device)


def test_a_loaded_model_drops_nothing(tmp_path, settings):
    config = settings(dropout=0.5, attention_dropout=0.5, relu_dropout=0.5)
    model = Transformer(config, 90)
    write_tensors(tmp_path / "model.safetensors", model.state_dict(), {})
    write_settings(tmp_path, config, 90, "0" * 64)
    source, target = torch.arange(4, 10)[None], torch.arange(20, 25)[None]
    loaded, _ = load_model(tmp_path / "model.safetensors", torch.device("cpu"))
    assert torch.equal(loaded(source, target), model.eval()(source, target))


def test_the_average_is_that_of_the_last_checkpoints_or_of_those_of_the_lowest_dev_loss(here, settings, monkeypatch):
    names = ("checkpoints", "training.jsonl", "vocabulary.model", "text.json")
    checkpoints, training, vocabulary, text = (here / name for name in names)
    losses = {9: 2.5, 10: 2.75, 11: 2.5}
    records = [{"step": step, key: loss} for step, loss in losses.items() for key in ("loss", "dev_loss")]
    write_lines(training, map(json.dumps, records))
    for step in (9, 10, 11):
        write_tensors(checkpoints / f"step-{step:08d}.safetensors", {"w": torch.full((2,), float(step))}, {"step": step})
    vocabulary.write_bytes(b"only its digest is compared")
    text.touch()
    write_settings(checkpoints, settings(), 90, sha256(vocabulary), max_length=30)
    write_yaml(here, {"run": {"corpus": "demo", "model": "tiny"}}, averaging={"checkpoints": 2})
    paths = {
        "checkpoints": checkpoints,
        "dev": here,
        "training": training,
        "vocabulary": vocabulary,
        "text": text,
        "out": here / "average",
    }
    for mark in (finished := here / "work/run/0123/published", other := here / "work/other/0123/published"):
        mark.parent.mkdir(parents=True)
        mark.touch()
    average.main(argparse.Namespace(run="run", **paths))
    assert other.exists() and finished.exists(), "DVC has not recorded the training"
    monkeypatch.setattr(workspace, "recorded", lambda *_: True)
    for keep in (True, False):
        write_yaml(here, {"run": {"corpus": "demo", "model": "tiny"}}, {"keep_states": keep}, averaging={"checkpoints": 2})
        average.main(argparse.Namespace(run="run", **paths))
        assert other.exists() and finished.exists() == keep
    tensors, description = read_tensors(here / "average/model.safetensors")
    assert tensors["w"].tolist() == [10.5, 10.5] and description == {"averaged_steps": [10, 11]}
    assert read_settings(here / "average").max_length == 30
    with refused("checkpoints holds 3 checkpoints, and averaging.checkpoints asks for 4"):
        average.work(argparse.Namespace(**paths), AveragingConfig(4, "last"))
    monkeypatch.setattr(average, "greedy_bleu", lambda weights, *_: {"9": 3.0, "0": 3.0, "1": 2.9}[weights.stem[-1]])
    for choose, count, steps in (
        ("dev_loss", 1, [11]),
        ("dev_loss", 2, [9, 11]),
        ("dev_bleu", 1, [10]),
        ("dev_bleu", 2, [9, 10]),
    ):
        average.work(argparse.Namespace(**paths), AveragingConfig(count, choose))
        assert read_tensors(here / "average/model.safetensors")[1] == {"averaged_steps": steps}
    write_lines(training, map(json.dumps, records[:-1]))
    with refused("training.jsonl has no dev loss of the checkpoints at steps 11"):
        average.work(argparse.Namespace(**paths), AveragingConfig(1, "dev_loss"))


@pytest.mark.parametrize("kind", ["cut", "weights"])
def test_a_refused_state_is_left_as_it_is(tmp_path, training, kind):
    trainer = training()
    run(trainer, until=9)
    ((_, weights),) = trainer.store.weights()
    trainer.store.state.write_bytes(weights.read_bytes() if kind == "weights" else trainer.store.state.read_bytes()[:-1])
    before = files(tmp_path)
    with refused("state.safetensors"):
        training()
    assert files(tmp_path) == before and weights.exists()


def test_a_state_without_a_record_or_a_checkpoint_that_it_had_is_refused(training):
    often = {"checkpoint_every": 2, "keep": 2, "log_every": 2}
    trainer = training(**often)
    run(trainer, until=11)
    assert [step for step, _ in trainer.store.weights()] == [10]
    log, path = trainer.store.log, trainer.store.weights()[0][1]
    whole, weights = log.read_bytes(), path.read_bytes()
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[1:]))
    with refused("training.jsonl has 6 of the 7 records of ", "state.safetensors; restore"):
        training(**often)
    log.write_bytes(whole)
    path.unlink()
    with refused("checkpoints lacks the checkpoints of steps 10, which ", " had; restore"):
        training(**often)
    path.write_bytes(weights)
    assert run(training(**often))


def test_what_a_power_cut_left_behind_the_log_is_cut_off_and_damage_before_it_is_named(training, monkeypatch):
    trainer = training(log_every=2)
    run(trainer, until=6)
    synced: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
        trainer.store.save(trainer.state)
    assert synced[0] == str(trainer.store.log), "its records reach the disk before the state"
    whole = trainer.store.log.read_bytes()
    for left in (b"\0\0\0\n", b'{"step"\n', b"{}\n", b"1\n[]\n", b'{"step": Infinity}\n', b'{"step": 7'):
        trainer.store.log.write_bytes(whole + left)
        training(log_every=2)
        assert trainer.store.log.read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    trainer.store.log.write_bytes(b"".join([lines[0], b"\xff\n", *lines[2:]]))
    with refused("training.jsonl has 1 of the 4 records"):
        training(log_every=2)


def test_a_folder_takes_the_place_of_a_link_and_leaves_alone_what_it_led_to(tmp_path):
    other, path = tmp_path / "other", tmp_path / "out"
    other.mkdir()
    (other / "mine").touch()
    for led_to in (other, other, tmp_path / "gone"):
        path.symlink_to(led_to)
        (tmp_path / f".out.old.{HOST}.4194304.partial").symlink_to(other)  # above Linux's largest process id
        with atomic_folder(path) as folder:
            (folder / "made").touch()
        assert [file.name for file in path.iterdir()] == ["made"] and (other / "mine").exists()
        assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "out"]
        remove(path)


def test_only_what_ended_processes_of_this_host_left_of_the_same_file_is_removed(tmp_path, monkeypatch):
    """A name is no pattern, and on a shared file system, the processes of another host are not known here."""

    def kill(process, signal):
        # of kill(2): the first process exists and belongs to another user
        raise PermissionError if process == 4711 else ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    theirs = [f".[ab].{HOST}.4711.partial", ".[ab].other-host.4194304.partial", f".a.{HOST}.4194304.partial"]
    for name in [*theirs, f".[ab].{HOST}.4194304.partial"]:
        (tmp_path / name).touch()
    with atomic(tmp_path / "[ab]") as file:
        file.write(b"content")
    assert {path.name for path in tmp_path.iterdir()} == {*theirs, "[ab]"}


def test_what_an_earlier_process_with_our_id_left_is_in_nobody_s_way(tmp_path):
    """In a container, the processes of two starts often have the same id."""
    for name in ("out", "out.old"):
        (tmp_path / f".{name}.{HOST}.{os.getpid()}.partial").mkdir()
    (tmp_path / f".out.{HOST}.{os.getpid()}.partial/left").touch()
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "made").touch()
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("out"), Path("out/made")]


def test_all_files_of_a_new_folder_reach_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("transformer.files.sync_folder", lambda path: synced.append(path.name))
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "models/first").mkdir(parents=True)
        (folder / "models/first/weights").touch()
        name = folder.name
    assert set(synced[:-2]) == {"models", "first", "weights"} and synced[-2:] == [name, tmp_path.name]
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: synced.append("replaced") or replace(old, new))
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    synced.clear()
    with atomic(tmp_path / "file") as file:
        file.write(b"content")
    assert synced == [7, "replaced", tmp_path.name], "the whole content, then the name"


def killed_at_each_change(_: int, folder: Path, config: TrainingConfig, model: ModelConfig) -> None:
    """Train in a folder for each change of a file, by its number. A process for each ends just before it, as if killed."""
    for place in itertools.count():
        if not (process := os.fork()):
            torch.set_num_threads(1)  # as in the test process: other sums would have other bytes
            at_change(place, folder / str(place), lambda: os._exit(KILLED))
            run(build(folder / str(place), config, model), states=[3])
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert status in (0, KILLED), "a training has failed; its traceback is on standard error"
        if status == 0:
            return  # there is no change of this number


@pytest.mark.slow
@pytest.mark.xdist_group("forkserver")
def test_a_training_killed_at_any_change_of_a_file_goes_on_to_the_same_bytes(tmp_path, settings, training_settings):
    config = training_settings(steps=4, checkpoint_every=2, keep=1, log_every=3, patience=100)
    model = settings(N=1, dropout=0.3)
    run(build(tmp_path / "whole", config, model))
    expected, steps = files(tmp_path / "whole"), []
    start_processes(killed_at_each_change, (tmp_path, config, model), start_method="forkserver")
    for place in sorted(int(folder.name) for folder in tmp_path.glob("[0-9]*")):
        folder = tmp_path / str(place)
        trainer = build(folder, config, model)
        steps.append(trainer.state.step)
        run(trainer)
        left = files(folder)
        older = {Path("checkpoints/step-00000002.safetensors")}  # a kill before its removal leaves it
        assert left.keys() - older == expected.keys(), "a partial file was left, or a file is missing"
        # the state differs, because it holds the time that the training took
        assert all(left[path] == expected[path] for path in expected if path.name != "state.safetensors"), place
    assert set(steps) == {0, 3, 4} and steps == sorted(steps), "a saved state was lost"
