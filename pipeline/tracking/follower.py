"""The process that mirrors score files in MLflow while a stage works; pipeline/tracking/client.py starts it.

python -m pipeline.tracking.follower follow RUN LOG   a training, from its description on a line of standard input
                                                    until standard input ends
python -m pipeline.tracking.follower run RUN FOLDER   the files of one run
python -m pipeline.tracking.follower all SCORES       the files of every run in the folder SCORES
"""

import argparse
import json
import logging
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.tracking.client import PATIENCE, warn
from pipeline.tracking.store import opened, shown_uri
from pipeline.tracking.trainings import Sources, mirror_live, mirror_run
from pipeline.workflow import stage
from transformer.config.reading import UserError

INTERVAL = 15  # seconds between two looks at a training's log


def follow(run: str, log: Path, description: Mapping[str, Any], ended: threading.Event) -> None:
    """Mirror a training until it has `ended`, in spite of any error, of which the first is said."""
    training = {**Sources.read().live(run), **description}
    mirrored, last, warned = None, ended.is_set(), False
    while True:
        seen = log.stat().st_size if log.exists() else 0
        if last or seen != mirrored:
            error = attempt(mirror_live, run, training, log, last)
            if error and not warned:
                warn(error)
            mirrored, warned = None if error else seen, warned or bool(error)
        if last:
            return
        last = ended.wait(INTERVAL)


def attempt(action: Callable[..., None], *arguments: Any) -> str | None:
    """Call `action` with the store and `arguments`; where that fails, by whatever a store or a file raises, why."""
    try:
        with opened() as store:
            action(store, *arguments)
    except Exception as error:  # noqa: BLE001
        return f"MLflow, {shown_uri()}: {reason(error)}"
    return None


def reason(error: BaseException) -> str:
    """One line on what went wrong: what the system or the database said, where the error comes from there."""
    origin = error
    while origin.__cause__ or origin.__context__:
        origin = origin.__cause__ or origin.__context__
    said = origin if isinstance(origin, (OSError, sqlite3.Error)) else error
    return " ".join(str(said).split())[:200] or type(said).__name__


def wait_for_end(ended: threading.Event) -> None:
    """Read standard input to its end; from then on there is as much time as the stage waits."""
    sys.stdin.read()
    signal.alarm(PATIENCE + 1)
    ended.set()


def follow_input(run: str, log: Path) -> None:
    description, ended = json.loads(sys.stdin.readline() or "null"), threading.Event()
    if description:  # else the stage was killed before it said it
        threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
        follow(run, log, description, ended)


def mirror_one(run: str, folder: Path) -> None:
    signal.alarm(PATIENCE + 1)
    if error := attempt(mirror_run, run, folder, Sources.read()):
        warn(error)


def mirror_all(scores: Path) -> None:
    folders = sorted(path.parent for path in scores.glob("*/training.json"))
    sources = Sources.read()
    for folder in folders:
        if error := attempt(mirror_run, folder.name, folder, sources):
            raise UserError(f"{folder}: {error}")
    print(f"{len(folders)} runs of {scores} are mirrored in {shown_uri()}")


def main(arguments: argparse.Namespace) -> None:
    logging.disable()  # MLflow's and Alembic's
    {"follow": follow_input, "run": mirror_one, "all": mirror_all}[arguments.action](*arguments.run, arguments.path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tracking", description=__doc__.split("\n\n")[0])
    parser.add_argument("action", choices=["follow", "run", "all"])
    parser.add_argument("run", nargs="*")
    parser.add_argument("path", type=Path)
    stage.run(main, parser, checked=False)
