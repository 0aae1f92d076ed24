"""A lost cache, two tools at once, a clock set back, signals, no git: one line reports each, and nothing is lost."""

import argparse
import codecs
import contextlib
import getpass
import importlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from dvc.fs import localfs
from ruamel.yaml import YAML, YAMLError

import pipeline
from pipeline.commands import check
from pipeline.orchestrating import lock_files, termination
from pipeline.orchestrating.lock_files import LOCK, keep_or_put_back
from pipeline.orchestrating.project import opened
from pipeline.running import devices, hardware, stage
from pipeline.running.merges import require_all_whole
from pipeline.settings.score_files import content
from tests import kill_everything
from tests.support import forked, in_process
from tests.support.projects import ROOT, with_settings, without_git
from tests.support.refusals import refused
from tests.support.shortened import outputs
from tests.support.stubs import StubProject
from transformer.files import write_file

SCORE = "scores/demo-tiny/score.json"
CHECKPOINTS = "models/demo-tiny/checkpoints"
BOOTSTRAP = ("    bootstrap: 1000 ", "    bootstrap: 500 ")  # score, result, collect and report depend on it


# DVC's cache


def cached(project: StubProject, output: str) -> Path:
    """The object in the cache that holds an output or, if the output is a folder, its first file."""
    lock = YAML(typ="safe").load((project.root / "dvc.lock").read_text())
    (md5,) = [out["md5"] for stage in lock["stages"].values() for out in stage.get("outs", []) if out["path"] == output]
    place = project.root / ".dvc/cache/files/md5"
    if md5.endswith(".dir"):
        md5 = json.loads((place / md5[:2] / md5[2:]).read_text())[0]["md5"]
    return place / md5[:2] / md5[2:]


def test_every_folder_of_outputs_lies_in_the_project_and_downloads_may_lie_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    with_settings(tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    for folder in ("work", "data", "models/run", "scores/corpora/demo", "results", "reports", "work/code"):
        Path(folder).parent.mkdir(parents=True, exist_ok=True)
        Path(folder).symlink_to(tmp_path / "elsewhere")
        with refused(f"{folder} is a link to {tmp_path / 'elsewhere'}, and DVC records outputs only within the project"):
            check.main(argparse.Namespace())
        Path(folder).unlink()
    Path("work/downloads").symlink_to(tmp_path / "elsewhere")
    check.main(argparse.Namespace())
    monkeypatch.chdir((tmp_path / "project").rename(tmp_path / "a{x}"))  # DVC takes it for a name in a format
    with refused("a{x}: DVC cannot record outputs in a folder with a brace in its path; rename the folder"):
        check.main(argparse.Namespace())


@pytest.mark.more
def test_a_full_disk_is_one_line(project, monkeypatch):
    """DVC opens databases of SQLite, whose errors are none of DVC's."""

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("pipeline.orchestrating.project.Repo", full)
    monkeypatch.chdir(project.root)
    with refused("DVC: disk I/O error"), opened():
        pass


def test_an_object_lost_or_spoilt_in_the_cache_is_made_again_and_no_other(project):
    """The next stages find the same bytes, and have nothing to do."""
    score, checkpoints = project.root / SCORE, project.root / CHECKPOINTS / "made"
    before = score.read_bytes(), checkpoints.read_bytes()
    cached(project, SCORE).unlink()
    spoilt = cached(project, CHECKPOINTS)
    spoilt.chmod(stat.S_IRUSR | stat.S_IWUSR)
    spoilt.write_text('{"digest": 1}\n')
    score.unlink()
    shutil.rmtree(checkpoints.parent)
    project.run("snakemake", "--cores", "2", "score@demo-tiny")
    assert sorted(project.ran()) == ["score@demo-tiny", "train@demo-tiny"]
    assert (score.read_bytes(), checkpoints.read_bytes()) == before
    assert project.stale() == set()


def test_a_dvc_lock_that_was_written_in_part_is_put_back_and_a_dry_run_writes_nothing(project):
    """DVC opens dvc.lock, then writes it. After a kill between these steps or during the second, nothing runs again."""
    path = project.root / "dvc.lock"
    whole = path.read_bytes()
    write_file(project.root / lock_files.KEPT, whole)
    path.write_bytes(cut := whole[: whole.rindex(b"outs:") + 9])
    (project.root / ".dvc/tmp/rwlock").write_text('{"/')  # DVC does not write this file in one piece either
    said = project.run("snakemake", "--dry-run", status=1)
    assert said.endswith("dvc.lock was incomplete after a kill; without --dry-run, it is restored\n")
    assert path.read_bytes() == cut
    assert "snakemake: dvc.lock was incomplete" in project.run("snakemake", "--cores", "2")
    assert project.ran() == [] and path.read_bytes() == whole
    assert [left.read_bytes() for left in project.root.glob("dvc.lock.cut-*")] == [cut]
    assert project.stale() == set()


def test_a_merge_resolved_by_half_stops_every_tool_before_it_writes_the_file_anew(project):
    path = project.root / "results/demo-tiny.json"
    path.write_text(merged := path.read_text() + ">>>>>>> theirs\n")
    says = f"results/demo-tiny.json, line {merged.count(chr(10))}: >>>>>>> is a conflict marker of git"
    assert says in project.run("snakemake", "--cores", "2", status=1)
    assert says in project.run("dvc", "repro", status=255)
    assert path.read_text() == merged


def test_the_line_of_dvc_yaml_that_is_wrong_is_named(here):
    without_git(here)
    Path("text").mkdir()
    for text, says in {
        "<<<<<<< HEAD\n  one: {cmd: echo}\n=======": "<<<<<<< is a conflict marker of git; resolve the conflict first",
        "  one: {cmd: echo, depss: []}": "stages.one.depss: extra keys not allowed",
    }.items():
        Path("dvc.yaml").write_text(f"stages:\n{text}\n")
        with refused(f"dvc.yaml, line 2: {says}"), opened() as repo:
            assert repo.index.stages
    Path("dvc.yaml").write_text("")
    assert devices.definitions() == {}


def test_a_merge_keeps_a_generated_file_whole(here):
    """Without .gitattributes, git takes the first line of one side and the last line of the other.

    The list of what reports have written is that of both sides: `report` replaces no other file.
    """
    listed, lines = Path("reports/files.txt"), list("abcdefg")
    paths = [Path(name) for name in ("dvc.lock", "reports/runs.csv", "results/demo-tiny.json")]

    def git(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *words], capture_output=True, text=True
        )
        assert done.returncode == status, done
        return done.stdout

    def commit(*changed: str) -> None:
        for path in (*paths, listed):
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(changed))
        git("add", ".")
        git("commit", "--quiet", "--message", "changed")

    shutil.copy(ROOT / ".gitattributes", here)
    git("init", "--quiet", "--initial-branch", "ours")
    commit(*lines)
    git("checkout", "--quiet", "-b", "theirs")
    commit(*lines[:-1], "G")
    git("checkout", "--quiet", "ours")
    commit("A", *lines[1:])
    git("merge", "theirs", status=1)
    assert git("diff", "--name-only", "--diff-filter=U").split() == [path.as_posix() for path in paths]
    assert {path.read_text() for path in paths} == {"\n".join(["A", *lines[1:]])}
    assert {"A", "G"} <= {*listed.read_text().split()}
    Path("dvc.lock").unlink()
    git("-c", "core.autocrlf=true", "checkout", "--quiet", "ours", "--", "dvc.lock")
    assert b"\r" not in Path("dvc.lock").read_bytes(), "DVC and the digests of templates see bytes"


# A lock file as DVC writes it
CONTENT = """\
schema: '2.0'
stages:
  one@für:
    cmd: python -m pipeline.one --out data/one
    deps:
    - path: text
      hash: md5
      md5: 7b5b4f4c4b4a4d4e4f50515253545556.dir
      size: 12
      nfiles: 2
    params:
      params.yaml:
        base.vocabulary:
          pieces: 2000
    outs:
    - path: data/one
      hash: md5
      md5: 0b5b4f4c4b4a4d4e4f50515253545550.dir
      size: 1234
      nfiles: 12
    - path: data/größe.json
      hash: md5
      md5: 1b5b4f4c4b4a4d4e4f50515253545551
      size: 42
  two:
    cmd: python -m pipeline.two --out data/two
    outs:
    - path: data/two
      hash: md5
      md5: 2b5b4f4c4b4a4d4e4f50515253545552
      size: 7
"""
LATER = CONTENT.replace("size: 42", "size: 4321") + CONTENT[CONTENT.index("  two:") :].replace("two", "three")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "first"), [(CONTENT, 0), (LATER, CONTENT.encode().index(b"size: 42"))], ids=["", "longer"]
)
def test_every_cut_of_a_lock_file_is_put_back_or_complete_and_what_was_left_is_kept(here, content, first):
    """docs/reference.md: a file that ends exactly after an output or a stage counts as complete."""
    whole = content.encode()
    for cut in range(first, len(whole)):
        LOCK.write_bytes(whole[:cut])
        write_file(lock_files.KEPT, CONTENT.encode())
        if said := keep_or_put_back():
            assert LOCK.read_text() == CONTENT and Path(said.split()[-5]).read_bytes() == whole[:cut]
        else:
            assert LOCK.read_bytes() == lock_files.KEPT.read_bytes() == whole[:cut] and cut > 300, cut


HALF = CONTENT[CONTENT.index("  two:") :]


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        (CONTENT + "=======\n", "dvc.lock, line 32: ======= is a conflict marker of git; resolve the conflict first"),
        (CONTENT + ">>>>>>> theirs\n", "dvc.lock, line 32: >>>>>>> is a conflict marker of git"),
        (f"<<<<<<< HEAD\n{CONTENT}", "dvc.lock, line 1: <<<<<<< is a conflict marker of git"),
        (CONTENT + HALF, "dvc.lock, line 32: found duplicate key"),
        (CONTENT + HALF[: len(HALF) // 2], "dvc.lock, line 32: found duplicate key"),
        (CONTENT.replace("  two:", "  zero:")[:-9], "dvc.lock, line 31: the file ends within zero"),
        (CONTENT.replace("    deps:", "  deps:"), "dvc.lock, line "),
        ("stages: []\n", "dvc.lock, line 1: "),
        (CONTENT.replace("2.0", "3.0"), "dvc.lock, line 1: schema: invalid schema version"),  # of another version of DVC
        (CONTENT.partition("stages:\n")[2], "dvc.lock, line 2: one@für: extra keys not allowed"),
        (CONTENT.replace("size: 7", "size: x"), "dvc.lock, line 28: stages.two.outs.0.size: expected int"),
        ("- notes\n", "dvc.lock, line 1: "),
        *((complete, "") for complete in (CONTENT[:-1], LATER, LATER[:-1], CONTENT[: CONTENT.index("  two:")])),
    ],
)
def test_a_dvc_lock_that_a_person_edited_is_left_as_it_is_and_refused_with_its_line_unless_it_is_complete(
    here, edited, says
):
    write_file(lock_files.KEPT, CONTENT.encode())
    LOCK.write_text(edited)
    for dry in (True, False):
        with refused(says) if says else contextlib.nullcontext():
            assert keep_or_put_back(dry) == ""
        assert LOCK.read_text() == edited and sorted(Path().iterdir()) == [LOCK, Path("work")]


def test_an_error_in_writing_dvc_lock_leaves_it_as_it_was(here):
    LOCK.write_text(CONTENT)
    with lock_files.lock_file(str(LOCK), localfs) as content:
        content["stages"]["two"]["outs"][0]["size"] = 8
    assert LOCK.read_text() == (written := CONTENT.replace("size: 7", "size: 8"))
    with pytest.raises(YAMLError), lock_files.lock_file(str(LOCK), localfs) as content:
        content["stages"]["three"] = object()
    assert LOCK.read_text() == written and [*Path().iterdir()] == [LOCK]


@pytest.mark.parametrize("path", ["checksums.json", "results/demo-tiny.json", "results/decodings/a.json"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  "a": 1,\n=======\n  "b": 2\n}\n', "line 3: ======= is a conflict marker of git"),
        ('{\n  "a": 1,\n  "b": 3,\n  "a": 2\n}\n', "line 4: found duplicate key"),
        ('{\n  "a": 1\n  "b": 2\n}\n', "line 3: Expecting ',' delimiter"),
    ],
)
def test_a_file_in_git_that_a_merge_damaged_is_refused_with_its_line(here, path, text, says):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    with refused(f"{path}, {says}"):  # as every tool and stage begins; the stage `result` would write the file anew
        stage.require_sound({})


def test_a_byte_order_mark_before_a_file_in_git_is_no_damage(here):
    path = Path("results/demo-tiny.json")
    path.parent.mkdir()
    path.write_bytes(codecs.BOM_UTF8 + b'{"a": 1}\n')
    require_all_whole()
    assert content(path) == {"a": 1}


# Two tools at once


@pytest.mark.parametrize("tool", [("dvc", "repro"), ("snakemake", "--cores", "2")], ids=["dvc", "snakemake"])
def test_beside_a_tool_at_work_either_tool_says_so_and_goes_on_once_it_is_gone(project, tool):
    project.edit("params.yaml", *BOOTSTRAP)
    with project.at_work(*tool):
        assert "is busy" in project.run("dvc", "repro", status=255)
        printed = project.run("snakemake", "--cores", "2", status=1)
        says = "is busy" if tool[0] == "dvc" else "snakemake: another snakemake is running in this folder"
        assert "\nsnakemake: " in f"\n{printed}" and says in printed and "Traceback" not in printed
        assert project.ran() == [], "never both"
    project.run("snakemake", "--cores", "2", "score@demo-tiny")
    assert project.ran() == ["score@demo-tiny"] and "score@demo-tiny" not in project.stale()


def hold(path: Path, writer: int, reader: int) -> None:
    """Enter processes into DVC's list: one as the writer of the scores of a run, and one as a reader."""
    file = str(path.parent.parent.parent / "scores/demo-tiny/score.json")
    of_writer, of_reader = ({"pid": pid, "cmd": "dvc repro"} for pid in (writer, reader))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"write": {file: of_writer}, "read": {f"{file}.other": [of_reader]}}))


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("reads", [False, True])
def test_a_process_that_is_ending_is_waited_for_and_one_that_is_not_keeps_its_entries(here, child, monkeypatch, reads):
    """A killed process that stays a zombie, since nobody waits for it, counts as ended."""
    path, ended = lock_files.RWLOCK, subprocess.Popen(["true"])
    ended.wait()
    hold(path, *((ended.pid, child.pid) if reads else (child.pid, ended.pid)))
    before = json.loads(path.read_text())
    monkeypatch.setattr(lock_files, "PATIENCE", 0.2)
    lock_files.clear_rwlock()
    assert json.loads(path.read_text()) == before
    monkeypatch.setattr(lock_files, "PATIENCE", 60)
    killer = threading.Timer(0.3, child.kill)
    killer.start()
    lock_files.clear_rwlock()
    killer.join()
    assert json.loads(path.read_text()) == {"write": {}, "read": {}}
    hold(path, os.getpid(), os.getppid())
    os.utime(path, (0, 0))  # before the last start of the machine; others have the ids of the processes now
    assert not lock_files.writing()
    lock_files.clear_rwlock()
    assert json.loads(path.read_text()) == {"write": {}, "read": {}}
    for text in ("", '{"write": ', '{"read": []}'):  # of which DVC wrote a part
        path.write_text(text)
        lock_files.clear_rwlock()
        assert not path.exists()


# The clock and the disk


def test_a_clock_set_back_stops_snakemake_with_a_word_and_no_stage_runs_twice(project):
    project.edit("params.yaml", "    beam: 4 ", "    beam: 5 ")
    assert "clock skew" in project.run("snakemake", "--cores", "2", status=1, STUB_CLOCK="back")
    assert project.ran() == ["decode@demo-tiny"]
    assert project.planned() == ["collect", "report", "result@demo-tiny", "score@demo-tiny"]


def interrupted(_: argparse.Namespace) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("main", "status", "says"),
    [
        (lambda _: torch.empty(10**15), 1, "out of memory; run fewer stages"),
        (lambda _: np.ones(10**15), 1, "out of memory; run fewer stages"),
        (interrupted, 130, "interrupted; "),
    ],
)
def test_a_stage_that_cannot_go_on_has_failed_so_that_dvc_records_nothing(monkeypatch, capsys, main, status, says):
    monkeypatch.setattr(sys, "argv", ["train"])
    with pytest.raises(SystemExit) as ended:
        stage.run(main, argparse.ArgumentParser("train"), checked=False)
    assert ended.value.code == status and capsys.readouterr().err.startswith(f"train: {says}")


def test_a_stage_replaces_no_folder_of_the_user(here):
    """A folder of outputs, an empty folder and a new one are replaced."""
    for path in ("text/mine/a", "results/a", "data/x/raw/a", "elsewhere/a"):
        Path(path).parent.mkdir(parents=True)
        Path(path).touch()
    Path("empty").mkdir()
    wrong = ("text", "text/mine", "results", "data", ".", "data/../elsewhere", str(here / "elsewhere"))
    for folder in (*wrong, "data/x/raw", str(here / "data/x/raw"), "empty", "text/new"):
        with refused("holds files, and the stage would replace it") if folder in wrong else contextlib.nullcontext():
            stage.require_replaceable(Path(folder))
    shutil.copy(ROOT / "params.yaml", here)
    with pytest.raises(in_process.Refused, match="text/mine holds files"):  # nor does the second folder of a stage
        in_process.run(["pipeline.download", "demo", "--out", "new", "--test", "text/mine", "--report", "report.json"])


# Snakemake's options, signals to its process alone, and git


def test_make_kill_makes_a_stage_run_again(project, tmp_path):
    (kept := tmp_path / "kept").mkdir()
    kill_everything.copy(project.root, kept)
    built = kill_everything.Built(project, kept, {"code": ["work/code"], **outputs(project.root)})
    built.restore("score@demo-tiny")
    project.run("dvc", "repro", "--single-item", "score@demo-tiny")
    assert built.differing("score@demo-tiny") == ([], []) and project.ran() == ["score@demo-tiny"]


def test_a_part_that_is_up_to_date_does_not_speak_for_the_rest(project):
    assert "Nothing to do: every stage is up to date." in project.run("snakemake", "--cores", "2", "train@demo-tiny")
    project.edit("params.yaml", *BOOTSTRAP)
    for options in (["train@demo-tiny"], ["--until", "decode@demo-tiny"]):
        printed = project.run("snakemake", "--cores", "2", *options)
        assert "Nothing to do: the targets are up to date; 4 other stages are stale." in printed
        assert "BLEU" not in printed and project.ran() == []


def test_a_stage_is_run_by_its_name_and_not_forced(project):
    printed = project.run("snakemake", "--forceall", "--cores", "2", "download@demo")
    lines = [line for line in printed.splitlines() if line.startswith("[") and " code " not in line]
    assert lines and all(line.endswith("(not run: DVC has its result)") for line in lines) and project.ran() == []
    said = project.run("snakemake", "--touch", "--cores", "2", status=1)
    assert said.splitlines()[-1].startswith("snakemake: --touch would call stages done that did not run")
    assert "--config steps changes no setting" in project.run("snakemake", "--dry-run", "--config", "steps=5", status=1)
    project.run("snakemake", "--lint")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_snakemakes_process_alone_stops_the_stages_too(project, number):
    project.edit("params.yaml", *BOOTSTRAP)
    with project.at_work("snakemake", "--cores", "2", forks=False) as process:
        below = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, number)
        time.sleep(termination.PAUSE / 2)
        os.kill(process.pid, number)  # by a user who is impatient
        printed = process.communicate(timeout=120)[1]
        assert psutil.wait_procs(below, timeout=30)[1] == [], "no stage outlives its workflow"
    assert process.returncode == 1 and "Traceback" not in printed and printed.count("Stopping what is running.") == 1
    assert "score@demo-tiny stopped after " in printed and "score@demo-tiny failed" not in printed


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN], ids=["", "nohup"])
def test_sighup_is_handled_as_sigint_unless_it_is_ignored(monkeypatch, handler):
    monkeypatch.setattr(termination, "PAUSE", 10**6)
    with in_process.inside(Path()):
        signal.signal(signal.SIGHUP, handler)
        termination.install(SimpleNamespace())
        assert signal.getsignal(signal.SIGINT) == signal.getsignal(signal.SIGTERM) == termination.stop
        with contextlib.nullcontext() if handler == signal.SIG_IGN else pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)


def test_a_reader_that_leaves_ends_a_listing_without_a_word(project):
    listing = "python -m snakemake --dry-run | true; echo ${PIPESTATUS[0]}"
    printed = project.run("bash", "-c", listing, PATH=forked.with_program(os.environ)["PATH"])
    assert printed.splitlines()[-1] == str(128 + signal.SIGPIPE)


def test_without_git_one_line_says_what_to_do_and_a_repository_around_the_folder_is_enough(built, tmp_path):
    project = built.clone(tmp_path / "repository/part")
    shutil.rmtree(project.root / ".git")
    said = project.run("snakemake", "--dry-run", status=1)
    what = f"{project.root} is not a git repository; clone the project with git, or run `git init` in this folder"
    assert said.splitlines()[-1].endswith(what)
    assert what in project.run("python", "-m", "pipeline.commands.status", status=1)
    subprocess.run(["git", "init", "--quiet", "--separate-git-dir", tmp_path / "git", project.root.parent], check=True)
    assert (project.root.parent / ".git").is_file()
    project.run("snakemake", "--cores", "2", "download@demo")
    assert project.ran() == ["download@demo"]


def test_a_user_without_a_name_has_the_number_as_name(monkeypatch):
    """As in `docker run --user 12345`. DVC and Snakemake ask Python for the name, which then raises an error."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    importlib.reload(pipeline)
    assert getpass.getuser() == str(os.getuid())


def test_a_commit_that_git_does_not_name_is_missed_in_one_line(built, monkeypatch, capsys):
    monkeypatch.chdir(built.root)
    assert len(hardware.commit() or "") == 40 and not capsys.readouterr().err
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert hardware.commit() is None
    said = capsys.readouterr().err
    assert said.startswith("warning: the commit of the code is not recorded: git rev-parse HEAD: fatal: ")
    assert said.count("\n") == 1
    assert "git config --global --add safe.directory" in said
