"""The process that mirrors score files in MLflow while a stage runs. pipeline/tracking/client.py starts it.

python -m pipeline.tracking.follower follow RUN LOG DESCRIPTION   a training, until standard input ends
python -m pipeline.tracking.follower search NAME FILE             a search for settings, until standard input ends
python -m pipeline.tracking.follower run RUN FOLDER               the files of one run
"""

import json
import logging
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.tracking.client import PATIENCE, warn
from pipeline.tracking.store import opened, shown_uri
from pipeline.tracking.trainings import mirror_live, mirror_run, mirror_search
from transformer.config.reading import UserError

INTERVAL = 15  # seconds between two reads of the log or of search.json


def until(ended: threading.Event, action: Callable[..., None], *arguments: Any) -> None:
    """Call `action(*arguments, last)` every INTERVAL seconds. `last` is True in the last call, once `ended` is set.

    An error ends only the call in which it occurs. Only the first error is printed.
    """
    errors, last = 0, ended.is_set()
    while True:
        if error := attempt(action, *arguments, last):
            errors += 1
            warn(error) if errors == 1 else None
        if last:
            return
        last = ended.wait(INTERVAL)


def attempt(action: Callable[..., None], *arguments: Any) -> str | None:
    """Call `action` with the store open. Returns None, or one line that says what failed."""
    try:
        with opened():
            action(*arguments)
    except UserError as error:  # the fault of a file that is mirrored
        return str(error)
    except Exception as error:  # stores and their drivers raise errors of many libraries
        return f"MLflow, {shown_uri()}: {reason(error)}"
    return None


def reason(error: BaseException) -> str:
    """Return one line: the message of the root cause if that is an OSError or SQLite error, else that of `error`."""
    origin = error
    while cause := origin.__cause__ or origin.__context__:
        origin = cause
    said = origin if isinstance(origin, (OSError, sqlite3.Error)) else error
    return " ".join(str(said).split())[:200] or type(said).__name__


def main(action: str, run: str, path: str, description: str = "") -> None:
    logging.disable()  # MLflow and Alembic log to standard error
    ended = threading.Event()

    def wait_for_end() -> None:  # then SIGALRM ends the process, should the store hang
        sys.stdin.read()
        signal.alarm(PATIENCE + 1)
        ended.set()

    if action == "run":
        signal.alarm(PATIENCE + 1)
        if error := attempt(mirror_run, run, Path(path)):
            warn(error)
        return
    threading.Thread(target=wait_for_end, daemon=True).start()
    if action == "follow":
        until(ended, mirror_live, run, json.loads(description), Path(path))
    else:
        until(ended, mirror_search, Path(path), set())


if __name__ == "__main__":
    main(*sys.argv[1:])
