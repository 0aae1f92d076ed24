"""Run a module like `python -m`, and kill it with SIGKILL just before a change of a file.

    python -m tests.support.killed NUMBER FOLDER MODULE ARGUMENTS

NUMBER counts the changes of files in FOLDER from 0. If the module makes fewer changes, it runs to its end.
"""

import itertools
import os
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.support import forked
from tests.support.projects import ROOT


def at_change(number: int, folder: Path, act: Callable[[], None]) -> None:
    """Let `act` be called just before change `number` of a file in `folder`: an open for writing, rename or removal.

    The files that Python compiles do not count.
    """
    changes, inside = itertools.count(), f"{folder}{os.sep}"

    def hook(event: str, arguments: tuple) -> None:
        if event in ("os.rename", "os.remove") or (event == "open" and arguments[1] not in ("r", "rb", None)):
            path = os.path.abspath(os.fsdecode(arguments[0])) if not isinstance(arguments[0], int) else ""
            if path.startswith(inside) and ".pyc" not in path and next(changes) == number:
                act()

    sys.addaudithook(hook)


def kill(module: str, arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a module in `folder` and kill it at one of its first changes. Which one depends on the module."""
    number, status = 2 ** Random(module).randrange(6), 0
    while status != -signal.SIGKILL:
        command = [str(number), str(folder), module, *arguments]
        status, said = forked.run("tests.support.killed", command, folder, {**environment, "PYTHONPATH": str(ROOT)})
        assert status == -signal.SIGKILL or (status == 0 and number), f"{module} failed or changed no file: {said}"
        number //= 2  # if it ended before


def main() -> None:
    number, folder, module, *arguments = sys.argv[1:]
    os.setsid()
    sys.argv = [module, *arguments]
    at_change(int(number), Path(folder), lambda: os.killpg(0, signal.SIGKILL))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
