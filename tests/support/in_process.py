"""Run stages and commands of the pipeline in this process and in the current folder. This saves a process for each."""

import contextlib
import io
import logging
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.projects import ROOT, without_git


def commands() -> dict[str, list[str]]:
    """The module and the arguments of each stage, in the order of the graph, as DVC reads dvc.yaml."""
    from dvc.repo import Repo  # these two take a second, also in each worker of a training
    from networkx import topological_sort

    for name in ("dvc.yaml", "studies.yaml"):
        shutil.copy(ROOT / name, ".")
    without_git(Path())
    with Repo() as repo:
        stages = [stage for stage in reversed(list(topological_sort(repo.index.graph))) if stage.name != "code"]
    return {stage.name: shlex.split(stage.cmd)[2:] for stage in stages}


class Refused(Exception):
    """A command ended with an error. The message is the last line that it printed to standard error."""


def started(command: list[str]) -> tuple[int, str, str]:
    """Run a command as a script. `command` is the module and its arguments.

    Returns its exit status, and what it prints to standard output and to standard error.
    """
    module, *arguments = command
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        patch.setattr(sys, "argv", [module.rpartition(".")[2], *arguments])
        patch.setattr(logging, "disable", lambda: None)  # by `track`, for the whole process
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
    return ended.value.code or 0, out.getvalue(), errors.getvalue()


def run(command: list[str]) -> None:
    """Run a command, which must succeed. Raises Refused if it does not."""
    status, _, errors = started(command)
    if status:
        assert status == 1
        raise Refused(errors.splitlines()[-1])


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in `folder`. At the end, restore the signal handlers, which a training replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def command(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, as `python -m MODULE ARGUMENTS` would."""
    with inside(folder):
        return subprocess.CompletedProcess([module, *arguments], *started([module, *arguments]))
