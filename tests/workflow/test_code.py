"""The code of a stage: what is a change of it, which stages a change makes stale, and how a user keeps their outputs."""

import argparse
import contextlib
import hashlib
import os
import pty
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dvc.dependency import param
from dvc.fs import localfs
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipeline import code
from pipeline.orchestrating import costly
from pipeline.orchestrating.project import opened, read_settings_once
from pipeline.running import devices, stage, unchanged
from pipeline.running.durations import measured, noted, seconds_of
from pipeline.running.times import write_times
from pipeline.settings import addresses
from pipeline.settings.params import load
from pipeline.settings.selection import run_settings
from tests.support.projects import ROOT, with_settings
from tests.support.refusals import refused
from tests.support.stubs import MODEL, StubProject
from tests.support.trainers import files
from transformer.files import write_json

RUN = "demo-tiny"
TRAIN = f"train@{RUN}"
SMOOTHING = ("    label_smoothing: 0.1", "    label_smoothing: 0.2")


def lock(root: Path) -> dict:
    return YAML(typ="safe").load((root / "dvc.lock").read_text())["stages"]


def append(project: StubProject, path: str, text: str) -> None:
    with open(project.root / path, "a", encoding="utf-8") as file:
        file.write(text)


# What becomes stale


def test_dvc_lock_has_the_digests_of_the_present_code():
    """After a merge, `dvc repro code` brings dvc.lock up to date, and pipeline.commands.accept where no result changes."""
    for name, entry in lock(ROOT).items():
        kind = name.partition("@")[0]
        if kind != "code":
            recorded = {dep["path"]: dep["md5"] for dep in entry["deps"]}
            assert recorded[f"work/code/{kind}"] == hashlib.md5(code.described(kind).encode()).hexdigest(), name


def test_the_same_code_is_digested_once_also_in_a_copy_of_the_project(built, here, monkeypatch):
    for name in ("pipeline", "transformer"):
        shutil.copytree(built.root / name, here / name)
    (here / "work").mkdir()
    shutil.copy(built.root / code.NOTED, here / code.NOTED)
    monkeypatch.setattr(code, "ROOT", here)
    monkeypatch.setattr(code, "lines", lambda _: pytest.fail("digested again"))
    code.write()
    assert files(here / code.FOLDER) == files(built.root / code.FOLDER)
    (here / MODEL).write_text("")
    with pytest.raises(pytest.fail.Exception, match="digested again"):
        code.write()


def test_settings_are_read_again_once_they_have_changed(here, monkeypatch):
    """Between the moments at which DVC looks for changes and at which the stage starts, a user may edit a setting."""
    for name in ("load_path", "dpath"):
        monkeypatch.setattr(param, name, None)  # to be put back
    read_settings_once()
    for number in (1, 2):
        Path("params.yaml").write_text(f"a: {{b: {number}}}\n")
        os.utime("params.yaml", (number, number))
        assert param.dpath.get(param.load_path("params.yaml", localfs), "a.b", separator=".") == number


# While a stage runs


@pytest.fixture
def folder(here, monkeypatch) -> Path:
    with_settings(here, "dvc.yaml")
    Path("work/code").mkdir(parents=True)
    Path("work/code/decode_set").write_text(code.described("decode_set"))
    monkeypatch.setenv("DVC_STAGE", "../dvc.yaml:decode_set@demo-beam")  # as DVC, started in a subfolder, names it
    monkeypatch.setattr(sys, "argv", ["decode_set"])
    text = Path("params.yaml").read_text(encoding="utf-8").replace("decodings: {}", f"decodings:\n  {LINE}", 1)
    Path("params.yaml").write_text(text, encoding="utf-8")
    return here


LINE = "demo-beam: {model: demo-tiny/average, set: demo-test, beam: 1}"


def run(main) -> str | int | None:
    with pytest.raises(SystemExit) as ended:
        stage.run(main, argparse.ArgumentParser("decode_set"))
    return ended.value.code


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (LINE, LINE.replace("1", "3"), "decodings.demo-beam"),
        (f"decodings:\n  {LINE}", "decodings: {}", "decodings.demo-beam"),
        ("    beam: 4 ", "    beam: 5 ", "base.decoding"),
        ("    steps: 100000\n", "    steps: 99999\n", None),  # of trainings
        ("  demo-tiny: {corpus: demo, model: quick}\n", "  demo-tiny: {corpus: demo, model: quick}\n  new: {}\n", None),
    ],
)
def test_only_an_edit_of_its_own_settings_stops_a_stage(folder, capsys, old, new, path):
    text = Path("params.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    status = run(lambda _: Path("params.yaml").write_text(text.replace(old, new), encoding="utf-8") and None)
    told = f"decode_set: params.yaml: {path} changed while decode_set@demo-beam ran" if path else ""
    assert bool(status) == bool(path) and capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("kind", sorted({*code.scripts()} - {"train", "tune"}))  # which keep their work
def test_an_edit_of_its_code_stops_a_stage(folder, capsys, monkeypatch, kind):
    Path("work/code", kind).write_text(code.described(kind))
    monkeypatch.setenv("DVC_STAGE", f"{kind}@demo" if "foreach" in devices.definitions()[kind] else kind)
    monkeypatch.setattr(sys, "argv", [kind])
    with pytest.raises(SystemExit) as ended:
        stage.run(lambda _: monkeypatch.setattr(code, "described", lambda _: "edited"), argparse.ArgumentParser(kind))
    assert ended.value.code == 1 and "its code changed while" in (said := capsys.readouterr().err)
    assert "ran; its outputs are not recorded" in said


@pytest.mark.parametrize(
    "given, file",
    [
        ("text/mine/a.en", "a.en"),
        ("./text//mine/./a.en", "a.en"),
        ('text/mine/it\'s \\ "a".en', 'it\'s \\ "a".en'),
        ("text/mine/a-*-of-00002.parquet", "a-00001-of-00002.parquet"),
    ],
)
def test_an_edit_of_a_text_stops_the_stage_that_reads_it(folder, monkeypatch, given, file):
    file, other = (Path("text/mine", name) for name in (file, "other.en"))
    for path in (file, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before")
        os.utime(path, (1, 1))
    params = load()
    params["corpora"]["demo"]["download"]["train"] = [{"parquet": given}]
    monkeypatch.setattr(unchanged, "load", lambda: params)
    monkeypatch.setenv("DVC_STAGE", "download@demo")
    before = unchanged.inputs()
    other.write_text("after")
    Path("text/mine/new.en").write_text("new")
    unchanged.require_unchanged(before)
    file.write_text("after!")  # of the same size
    with refused(f"{file} changed while download@demo ran; its outputs are not recorded"):
        unchanged.require_unchanged(before)


def test_a_file_that_dvc_ignores_is_no_input_of_a_stage():
    names = [
        "text/a.en",
        "text/.a.en",
        "text/.#a.en",
        "text/a.en~",
        "text/~a.en",
        "text/.a.en.swp",
        "text/a~/a.en",
        "text/a.partial/a.en",
        "scores/run/.x.json.1.partial",
        "scores/x.partial",
    ]
    names += ["results/run.json", "results/times/run.json", "models/times/run.json"]
    with Repo(str(ROOT)) as repo:
        theirs = [repo.dvcignore.is_ignored_file(str(ROOT / name)) for name in names]
    assert [unchanged.ignored(Path(name)) for name in names] == theirs and len({*theirs}) == 2
    for name, ignored in zip(names, theirs):
        if name.startswith("text/"):  # the setting would name a text whose edits DVC does not notice
            with refused("DVC ignores such names") if ignored else contextlib.nullcontext():
                addresses.require_address(name)


def test_an_edit_of_the_studies_stops_the_report_and_a_file_that_dvc_ignores_does_not(folder, monkeypatch):
    monkeypatch.setenv("DVC_STAGE", "report")
    before = unchanged.inputs()
    for path in ("scores/demo-tiny/.score.json.swp", "results/times/demo-tiny.json"):  # DVC ignores both
        write_json(Path(path), {})
    unchanged.require_unchanged(before)
    os.utime("studies.yaml", (1, 1))
    with refused("studies.yaml changed while report ran"):
        unchanged.require_unchanged(before)


def test_a_stage_starts_with_valid_settings_and_a_gpu_of_its_own(folder, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    seen = []
    assert run(lambda _: seen.append(os.environ["CUDA_VISIBLE_DEVICES"])) is None and seen == ["4"]
    text = Path("params.yaml").read_text(encoding="utf-8")
    Path("params.yaml").write_text(text.replace("    label_smoothing: 0.1", "    label_smoothing: 2"), encoding="utf-8")
    assert run(lambda _: pytest.fail("it ran")) == 1, "of a setting that it does not use"
    assert "base.training.label_smoothing: 2 is not possible" in capsys.readouterr().err


def test_a_stage_runs_only_with_the_code_that_is_recorded(folder, capsys, monkeypatch):
    described, recorded = code.described("decode_set"), Path("work/code/decode_set")
    assert run(lambda _: recorded.write_text("of an edit that was undone since") and None) is None
    assert recorded.read_text() == described
    known = dict(map(reversed, code.lines(code.scripts()["decode_set"])))
    recorded.write_text(described.replace(known[MODEL], "0"))
    assert run(lambda _: pytest.fail("it ran")) == 1
    assert capsys.readouterr().err.startswith(f"decode_set: {MODEL} changed after the stage `code` had run")
    monkeypatch.delenv("DVC_STAGE")
    assert run(lambda _: None) is None, "without DVC, nothing is recorded"


# The user's word


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[None]:
    """Within this, the file at `path` may be replaced, but not truncated or written in place."""
    before, held = path.read_bytes(), path.parent / "work/held"
    held.unlink(missing_ok=True)
    os.link(path, held)
    yield
    assert held.read_bytes() == before, f"a kill would have left {path.name} incomplete"


def accept(project: StubProject, *names: str, status: int = 0) -> str:
    before = (project.root / "dvc.lock").read_bytes()
    with replaced(project.root / "dvc.lock"):
        printed = project.run("python", "-m", "pipeline.commands.accept", *names, status=status)
    assert "Traceback" not in printed
    if status and "accepted" not in printed:
        entries = YAML(typ="safe").load(before)["stages"]
        assert {**lock(project.root), "code": None} == {**entries, "code": None}
    return printed


def test_a_change_of_code_is_accepted_by_the_users_word(project):
    project.change_code()
    entries = lock(project.root)
    printed = accept(project, RUN)
    assert f"{TRAIN}: stale only because code ({MODEL}) is modified; accepted" in printed
    now = lock(project.root)
    assert {name.partition("@")[0] for name in now if now[name] != entries[name]} == {"code", "train", "average", "decode"}
    assert all(now[name]["outs"] == entries[name]["outs"] for name in now if name != "code")
    assert (project.root / "work/.dvc.lock").read_bytes() == (project.root / "dvc.lock").read_bytes()
    assert not {name for name in project.stale() if RUN in name} and project.ran() == []


COMMAND = "--out 'models/${key}/checkpoints' --scores"


def test_a_stage_that_is_stale_by_more_than_code_is_refused_and_named(project):
    project.change_code()
    changes = {
        "training.json is modified": lambda: (project.root / f"scores/{RUN}/training.json").write_text("{}"),
        "checkpoints is deleted": lambda: shutil.rmtree(project.root / f"models/{RUN}/checkpoints"),
        "base.training is modified": lambda: project.edit("params.yaml", *SMOOTHING),
        "its command is changed": lambda: project.edit("dvc.yaml", COMMAND, f"--more {COMMAND}"),
    }
    for change in changes.values():
        change()
    printed = accept(project, TRAIN, status=1)
    assert f"more than code has changed, so these remain stale: {TRAIN}: " in printed
    assert [says for says in changes if says not in printed] == []


def test_a_setting_that_the_run_overrides_is_accepted_and_one_of_its_own_is_refused(project):
    _, *now = run_settings(load(), RUN)
    settings = dict(zip(("model", "training"), map(vars, now)))
    write_json(project.root / f"scores/{RUN}/training.json", {"settings": settings})
    project.run("dvc", "commit", "--force", TRAIN)
    project.edit("params.yaml", "    steps: 100000\n", "    steps: 99999\n")
    assert f"{TRAIN}: stale only because base.training is modified; accepted" in accept(project, TRAIN)
    assert TRAIN not in project.stale()
    project.edit("params.yaml", *SMOOTHING)
    assert f"remain stale: {TRAIN}: base.training is modified" in accept(project, TRAIN, status=1)


def test_a_wrong_name_gets_the_right_one_and_a_path_is_no_name_and_a_syntax_error_starts_nothing(project):
    assert f"did you mean '{RUN}'?" in accept(project, "demo-tony", status=1)
    assert "is not possible" in accept(project, f"../work/{RUN}", status=1)
    append(project, MODEL, "x =\n")
    printed = project.run("snakemake", "--cores", "2", status=1)
    assert f"snakemake: {MODEL}, line " in printed and "Traceback" not in printed and project.ran() == []


def test_another_path_of_the_script_and_a_check_before_it_in_earlier_dvc_yaml_are_accepted(project):
    before = lock(project.root)
    command = " ".join(shlex.split(before[TRAIN]["cmd"])).replace("pipeline.train", "pipeline.extras.train")
    earlier = before | {TRAIN: before[TRAIN] | {"cmd": ["python -m pipeline.commands.check", command]}}
    with open(project.root / "dvc.lock", "w") as file:
        YAML().dump({"schema": "2.0", "stages": earlier}, file)
    assert TRAIN in project.stale()
    assert f"{TRAIN}: stale only because its command is changed; accepted" in accept(project, TRAIN, RUN)
    assert lock(project.root) == before and TRAIN not in project.stale()
    assert "the names of runs or stages are expected, or --all" in accept(project, "--all", TRAIN, status=1)


# Long stages


def took(project: StubProject, seconds: float) -> None:
    path, made = (project.root / folder / RUN / "training.json" for folder in ("work/times", "scores"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_times(path, made, {"seconds": seconds})


def test_a_stage_finds_the_modules_of_the_project_if_python_leaves_out_its_folder():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.delenv("PYTHONPATH", raising=False)
        for name in ("PATH", "PYTHONUNBUFFERED", "PYTHONSAFEPATH"):  # which `opened` changes
            patch.setenv(name, os.environ.get(name, "1"))
        with opened(locked=False):
            subprocess.run(["python", "-m", "pipeline.settings.addresses"], check=True)


@contextlib.contextmanager
def asking(project: StubProject) -> Iterator[Callable[[], str]]:
    """What `snakemake --dry-run` says of long stages. This process does it, and asks DVC once which stages are stale."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.setattr(code, "ROOT", project.root)
        for name in ("PATH", "PYTHONUNBUFFERED", "PYTHONSAFEPATH"):  # which `opened` changes
            patch.setenv(name, os.environ.get(name, "1"))
        code.write()
        with opened() as repo:
            graph, stale = repo.index.graph, repo.status()
            yield lambda: "\n".join(costly.costly(graph, stale).values())


def asked(project: StubProject) -> str:
    with asking(project) as ask:
        return ask()


def test_without_a_terminal_a_long_training_is_not_begun_again_for_code_alone(project):
    took(project, 8040)
    project.change_code()
    stale, entries = f"{TRAIN} is stale only because code ({MODEL}) is modified; it took 2 h 14 min.", lock(project.root)
    dry = project.run("snakemake", "--dry-run")
    project.run("snakemake", "--cores", "2", "--list-rules")
    printed = project.run("snakemake", "--cores", "2", status=1)
    assert lock(project.root) == entries, "a dry run, a listing and a run that is not started change no file in git"
    (line,) = [line for line in printed.splitlines() if line.startswith(f"snakemake: {stale}")]
    assert "commands.accept demo-tiny`" in line
    assert printed.strip().splitlines()[-1].startswith(f"snakemake: not started: {TRAIN} would run again; YES=1")
    assert project.ran() == [] and (project.root / f"models/{RUN}/checkpoints").exists() and "Traceback" not in printed
    assert line in dry.splitlines()
    project.run("snakemake", "--cores", "1", "download@demo")


def test_on_a_terminal_it_asks(project):
    took(project, 8040)
    project.change_code()
    for answer, status in (("n", 1), ("y", 0)):
        master, slave = pty.openpty()
        os.write(master, f"{answer}\n".encode())
        with replaced(project.root / "dvc.lock"):
            printed = project.run("snakemake", "--cores", "1", TRAIN, status=status, stdin=slave)
        os.close(master)
        os.close(slave)
        assert f"Run again: {TRAIN}? [y/N]" in printed and "2 h 14 min" in printed and "Traceback" not in printed
        assert (TRAIN in project.ran()) == (answer == "y")


def test_a_long_training_whose_outputs_dvc_has_lost_is_kept(project):
    took(project, 8040)
    shutil.rmtree(project.root / ".dvc/cache/files")  # the run cache still names them
    why = f"stale only because models/{RUN}/checkpoints is not in cache, "
    assert f"{TRAIN} is {why}" in asked(project)
    assert f"{TRAIN}: {why}" in accept(project, TRAIN)
    assert TRAIN not in project.stale() and project.ran() == []
    for lost in (".dvc/cache/files", f"models/{RUN}/checkpoints"):  # as in a clone without `dvc pull`
        shutil.rmtree(project.root / lost)
    printed = accept(project, TRAIN, status=1)
    assert "accepted" not in printed and f"{TRAIN}: models/{RUN}/checkpoints is deleted" in printed


def test_a_short_training_another_setting_and_a_run_that_dvc_remembers_are_no_question(project):
    before = {path: path.read_bytes() for path in (project.root / MODEL, project.root / code.NOTED)}
    project.change_code()
    with asking(project) as ask:
        for seconds in (30 * 60 + 1, 30 * 60):
            took(project, seconds)
            assert ("stale only because" in ask()) == (seconds > 30 * 60)
        write_json(project.root / f"results/times/{RUN}.json", {"training": {"seconds": 8040}})
        assert ask() == "", "the time here, not that of the record"
        (project.root / f"work/times/{RUN}/training.json").write_text('{"of another": {"seconds": 30}}')
        assert "it took 2 h 14 min" in ask(), "the time of the record"
    project.edit("params.yaml", *SMOOTHING)
    assert asked(project) == ""
    project.edit("params.yaml", *reversed(SMOOTHING))
    project.run("dvc", "repro", TRAIN)
    for path, content in before.items():
        path.write_bytes(content)
    assert asked(project) == "" and TRAIN in project.stale(), "DVC's run cache has it"


def test_any_stage_that_took_long_is_asked_about(project):
    append(project, "pipeline/scoring/bleu.py", "\nA = 1\n")
    with asking(project) as ask:
        for name, seconds in (("score@demo-tiny", 1801), ("score@demo-tiny", 1800), ("report", 1801)):
            write_json(project.root / f"work/.times/{name}.json", {"seconds": seconds})
            line = f"{name} is stale only because code (pipeline/scoring/bleu.py) is modified; it took 30 min"
            assert (line in ask()) == (seconds > 1800)


def test_a_long_stage_that_dvc_has_started_asks_too_and_puts_its_outputs_back(project, monkeypatch):
    stage, out = "average@demo-tiny", project.root / "models/demo-tiny/average"
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("YES", raising=False)
    monkeypatch.setattr(sys, "stdin", None)
    with measured(stage, "earlier code") as ended:
        ended.append(0)
    costly.confirm_started(stage, "code")  # it took no time
    write_json(project.root / f"work/.times/{stage}.json", {"seconds": 8040})
    costly.confirm_started(stage, "code")  # forced, as nothing has changed
    project.change_code()
    project.run("dvc", "repro", "code")
    before = [path.read_bytes() for path in sorted(out.iterdir())]
    shutil.rmtree(out)  # as DVC does before it starts a stage
    with refused(f"not started: {stage} would run again; YES=1"):
        costly.confirm_started(stage, "code")
    assert [path.read_bytes() for path in sorted(out.iterdir())] == before
    shutil.rmtree(out)
    with monkeypatch.context() as patch:
        patch.setenv("YES", "1")
        costly.confirm([stage], [stage])
        costly.confirm_started(stage, "code")
    with measured(stage, "code") as ended:
        ended.append(75)
    costly.confirm_started(stage, "code")
    assert noted(stage)["seconds"] == 8040, "a resumed attempt is no question, and its duration is added"
    write_json(project.root / f"work/.times/{stage}.json", noted(stage) | {"spent": 100})
    with measured(stage, "code") as ended:
        ended.append(0)
    assert noted(stage).keys() == {"seconds"} and 100 < seconds_of(stage) < 160
