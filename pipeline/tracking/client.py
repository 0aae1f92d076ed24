"""Tracking: mirrors scores/ in MLflow. A stage never fails because of MLflow and waits for it at most PATIENCE seconds.

    with tracking.following("training", run, log, description):   a training, live
    with tracking.following("search", name, file):                a search for settings, live
    tracking.mirror_scores(run, Path("scores") / run)             the files of a run: its training and its decoding

MLFLOW_TRACKING_URI names the store, or is `off`. The default is mlflow.db in the current folder. A separate process,
pipeline/tracking/follower.py, writes to the store, because importing MLflow takes seconds and a store can hang.
Without an installation of MLflow, or with `off`, these functions do nothing.
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

PATIENCE = 60  # seconds that a stage, at its end, waits for the follower
ROOT = Path(__file__).parent.parent.parent


@contextlib.contextmanager
def following(kind: str, name: str, path: Path, description: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Mirror `path` and its changes while the block runs. Never raises an error of its own.

    For the kind `training`, `path` is the training.jsonl of the run `name`. `description` holds `settings` and `data_sum`,
    which identify the training: if resumed, it continues the MLflow run of its first start. For `search`, `path` is the
    search.json. The follower ends once its standard input closes, also if this process is killed.
    """
    process = None
    if os.environ.get("MLFLOW_TRACKING_URI") != "off" and importlib.util.find_spec("mlflow"):
        arguments = [kind, name, str(path), json.dumps(description, default=str)]
        command = [sys.executable, "-W", "ignore", "-m", "pipeline.tracking.follower", *arguments]
        streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
        try:  # in a session of its own, which a signal to the process group of the training does not reach
            process = subprocess.Popen(command, env=environment(), **streams, start_new_session=True)
        except OSError as error:
            warn(str(error))
    try:
        yield
    finally:
        if process:
            end(process)


def mirror_scores(run: str, scores: Path) -> None:
    """Mirror the files of `run` in the folder `scores`. Never raises."""
    with following("run", run, scores):
        pass


def end(process: subprocess.Popen) -> None:
    """Close the follower's standard input and wait for its end. Kills the follower after PATIENCE seconds."""
    assert process.stdin is not None  # a pipe
    process.stdin.close()
    try:
        if status := process.wait(PATIENCE):
            warn(f"the follower exited with status {status}")
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        warn(f"MLflow took more than {PATIENCE} seconds")


def environment() -> dict[str, str]:
    """The environment of this process, with the project on PYTHONPATH: the working directory may be outside it."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


def warn(reason: str) -> None:
    remedy = "the stage continues; run `python -m pipeline.commands.track` later to mirror its results"
    print(f"tracking: {reason}; {remedy}", file=sys.stderr, flush=True)
