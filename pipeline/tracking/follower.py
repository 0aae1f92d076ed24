"""The process that mirrors score files in MLflow while a stage runs. `following` in client.py starts it.

python -m pipeline.tracking.follower training|search|run NAME PATH DESCRIPTION      until standard input ends
"""

import json
import logging
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pipeline.tracking.client import PATIENCE, warn
from pipeline.tracking.store import attempt
from pipeline.tracking.trainings import mirror_live, mirror_run, mirror_search

INTERVAL = 15  # seconds between two reads of a log or of search.json


def until(ended: threading.Event, mirror: Callable[[bool], None]) -> None:
    """Call `mirror(last)` every INTERVAL seconds. `last` is True in the last call, once `ended` is set.

    An error ends only the call in which it occurs. Only the first error is printed.
    """
    errors, last = 0, ended.is_set()
    while True:
        if error := attempt(mirror, last):
            errors += 1
            warn(error) if errors == 1 else None
        if last:
            return
        last = ended.wait(INTERVAL)


def main(kind: str, name: str, place: str, description: str) -> None:
    logging.disable()  # MLflow and Alembic log to standard error
    ended, path = threading.Event(), Path(place)

    def wait_for_end() -> None:  # then SIGALRM ends the process, should the store hang
        sys.stdin.read()
        signal.alarm(PATIENCE + 1)
        ended.set()

    if kind == "run":
        wait_for_end()
    else:
        threading.Thread(target=wait_for_end, daemon=True).start()
    mirrors: dict[str, Callable[[bool], None]] = {
        "training": partial(mirror_live, name, json.loads(description), path),
        "search": partial(mirror_search, path, set()),
        "run": lambda last: mirror_run(name, path),
    }
    until(ended, mirrors[kind])


if __name__ == "__main__":
    main(*sys.argv[1:])
