"""Tracking: mirrors scores/ in MLflow. A stage never fails because of MLflow and waits for it at most PATIENCE seconds.

    with tracking.following(run, log, description):      the training.jsonl of a training and its changes
    with tracking.mirroring(Path("scores") / run):       the files of a run, its training.json or the file of a search,
                                                         as the block leaves them

MLFLOW_TRACKING_URI names the store, or is `off`. The default is mlflow.db in the current folder. A separate process
writes to the store, because importing MLflow takes seconds and a store can hang. Without an installation of MLflow, or
with `off`, these functions do nothing.
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

from pipeline.running import launcher, progress

PATIENCE = 60  # seconds that a stage, at its end, waits for the process


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[None]:
    """Run the command `tracking` while the block runs. Its standard input then closes, also if this process is killed.

    Never raises an error of its own. Kills the process PATIENCE seconds after the block.
    """
    if os.environ.get("MLFLOW_TRACKING_URI") == "off" or not importlib.util.find_spec("mlflow"):
        yield
        return
    command = [sys.executable, "-W", "ignore", "-m", "pipeline.extras.tracking.__main__", *arguments]
    # In a session of its own, which a signal to the process group of the stage does not reach.
    how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "start_new_session": True}
    try:
        started = subprocess.Popen(command, env=os.environ | dict.fromkeys(launcher.SET, ""), **how)
    except OSError as error:  # for example no memory for another process
        warn(str(error))
        yield
        return
    try:
        yield
    finally:
        try:
            started.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            warn(f"MLflow took more than {PATIENCE} seconds")
        if started.returncode > 0:
            warn(f"MLflow's process ended with status {started.returncode}")


def following(run: str, log: Path, description: Mapping[str, Any]) -> contextlib.AbstractContextManager:
    """`description` holds `settings` and `data_sum`. If resumed, a training continues the MLflow run of its first start."""
    return process("--follow", run, str(log), json.dumps(description, default=str))


def mirroring(path: Path) -> contextlib.AbstractContextManager:
    """The process imports MLflow while the block runs."""
    return process("--after-input", str(path))


def warn(reason: str) -> None:
    remedy = "the stage continues; run `python -m pipeline.extras.tracking` later to mirror its results"
    progress.warn(f"tracking: {reason}; {remedy}")
