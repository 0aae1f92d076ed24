"""Tracking: MLflow shows what the stages do, as a mirror of the files in scores/. No stage fails or waits by it.

    with tracking.following(run, log, description):     a training, live
    tracking.mirror_scores(run, Path("scores") / run)   a run's files as they are, trainings and decodings

MLFLOW_TRACKING_URI names the store, or `off`; by default it is mlflow.db here, shown by `mlflow ui`. The work is done
by a process of its own (pipeline/tracking/follower.py, which reads scores/, work/times/, params.yaml and dvc.lock): importing MLflow
takes seconds and a store can hang. Where MLflow is not installed nothing is done.
"""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds that a stage gives the mirror at its end
ROOT = Path(__file__).parent.parent.parent


@contextlib.contextmanager
def following(run: str, log: Path, description: Mapping[str, Any]) -> Iterator[None]:
    """While the block runs, mirror what is appended to `log`, the training.jsonl of `run`; never raises.

    `description` holds `settings` and `data_sum`, by which the training is known, and any text or number that
    training.json could hold. The log must be there until the block ends; lines that an earlier start of the same
    training has mirrored are not mirrored again.
    """
    process = start("follow", run, str(log), text=json.dumps(description, default=str))
    try:
        yield
    finally:
        end(process)


def mirror_scores(run: str, scores: Path) -> None:
    """Mirror the files of `run` in the folder `scores`; never raises."""
    end(start("run", run, str(scores)))


def start(*arguments: str, text: str = "") -> subprocess.Popen | None:
    """Start the mirror on a line of `text`. It ends once its input does, which the death of this process sees to."""
    if os.environ.get("MLFLOW_TRACKING_URI") == "off" or importlib.util.find_spec("mlflow") is None:
        return None
    try:
        # A session of its own: a signal to the training's group is for the training.
        process = subprocess.Popen(
            command(*arguments),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return warn(str(error))
    with contextlib.suppress(OSError):  # it died; `end` will say so
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()
    return process


def end(process: subprocess.Popen | None) -> None:
    """Let the mirror finish, but not for ever."""
    if process is None:
        return
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        status = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return warn(f"MLflow took more than {PATIENCE} seconds")
    if status:
        warn(f"the mirror ended with status {status}")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "pipeline.tracking.follower", *arguments]


def environment() -> dict[str, str]:
    """This environment, with the project's modules to be found from any folder."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


def warn(reason: str) -> None:
    print(
        f"tracking: {reason}; the stage goes on, `python -m pipeline.commands.track` mirrors it later",
        file=sys.stderr,
        flush=True,
    )
