"""Snakemake's options, signals to its process alone, and folders in which a project may lie."""

import os
import shutil
import signal
import subprocess

import psutil
import pytest

from pipeline.workflow import hardware
from tests.stubs import StubProject

BOOTSTRAP = ("    bootstrap: 1000 ", "    bootstrap: 500 ")  # score, result, collect and report depend on it


def test_touch_is_refused_because_it_would_call_stages_done(project):
    project.edit("params.yaml", *BOOTSTRAP)
    printed = project.run("snakemake", "--touch", "--cores", "2", status=1)
    assert "--touch would call stages done that did not run" in printed and "Traceback" not in printed
    assert project.ran() == [] and "score@demo-tiny" in project.planned()


@pytest.mark.parametrize(
    "options",
    ["train@demo-tiny", "--until decode@demo-tiny", "--omit-from score@demo-tiny"],
    ids=lambda text: text.split()[0],
)
def test_a_part_that_is_up_to_date_does_not_speak_for_the_rest(project, options):
    assert "Nothing to do: every stage is up to date." in project.run("snakemake", "--cores", "2", *options.split())
    project.edit("params.yaml", *BOOTSTRAP)
    printed = project.run("snakemake", "--cores", "2", *options.split())
    assert "Nothing to do: the targets are up to date; 4 other stages are stale." in printed
    assert "BLEU" not in printed and project.ran() == []


def test_a_stage_runs_by_its_name_and_only_dvc_forces_it(project):
    printed = project.run("snakemake", "--forceall", "--cores", "2", "normalise@demo")
    lines = [line for line in printed.splitlines() if line.startswith("[")]
    assert lines and all(line.endswith("(not run: DVC has its result)") for line in lines) and project.ran() == []
    project.run("dvc", "repro", "-f", "-s", "normalise@demo")
    assert project.ran() == ["normalise@demo"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_snakemakes_process_alone_stops_the_stages_too(project, number):
    project.edit("params.yaml", *BOOTSTRAP)
    with project.at_work("snakemake", "--cores", "2") as process:
        below = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, number)
        printed = process.communicate(timeout=120)[1]
        assert psutil.wait_procs(below, timeout=30)[1] == [], "no stage outlives its workflow"
    assert process.returncode == 1 and printed.count("Stopping what is running.") == 1
    assert "score@demo-tiny stopped after " in printed and "score@demo-tiny failed" not in printed


def test_without_git_one_line_says_what_to_do_and_a_repository_around_the_folder_is_enough(tmp_path):
    (tmp_path / "repository/part").mkdir(parents=True)
    project = StubProject.new(tmp_path / "repository/part")
    shutil.rmtree(project.root / ".git")
    said = project.run("snakemake", "--dry-run", status=1)
    what = f"{project.root} is not a git repository; clone the project with git, or run `git init` in this folder"
    assert said.splitlines()[-1].endswith(what)
    assert what in project.run("python", "-m", "pipeline.commands.status", status=1)
    subprocess.run(["git", "init", "--quiet", "--separate-git-dir", tmp_path / "git", project.root.parent], check=True)
    assert (project.root.parent / ".git").is_file()
    project.run("snakemake", "--cores", "2", "download@demo")
    assert project.ran() == ["download@demo"]
    wrong = project.run("snakemake", "--config", "x=1", "--dry-run", "nothing", status=1)
    assert "git" not in wrong


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ({"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}, "git config --global --add safe.directory"),
        ({"GIT_DIR": "/nowhere"}, "not a git repository"),
    ],
)
def test_a_commit_that_git_does_not_name_is_missed_in_one_line(project, monkeypatch, capsys, variable, says):
    monkeypatch.chdir(project.root)
    assert len(hardware.commit() or "") == 40 and not capsys.readouterr().err
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert hardware.commit() is None
    said = capsys.readouterr().err
    assert said.startswith("the commit of the code is not recorded: fatal: ") and says in said and said.count("\n") == 1
