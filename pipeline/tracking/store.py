"""Writes to an MLflow store. A lock serialises the writers, tags identify the runs, and nothing is written twice.

Without MLFLOW_TRACKING_URI the store is `mlflow.db` in the current folder, where `make ui` looks for it.
"""

import contextlib
import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.config.reading import UserError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

# MLflow reads these variables at import. They turn telemetry off. They limit the time that MLflow waits for a server
# that does not answer; the default is minutes. They close a database after use, so that a removed file is noticed.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
for name, value in {"TIMEOUT": "5", "MAX_RETRIES": "1", "BACKOFF_FACTOR": "1"}.items():
    os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

LOCK_SECONDS = 5  # how long to wait while another program locks the database
METRICS_AT_ONCE, TAGS_AT_ONCE = 1000, 100  # MLflow's limits for one batch

Curve = dict[tuple[str, int], float]  # the value of a metric (name) at a step


@dataclass(frozen=True)
class Entry:
    """A run as the store should show it."""

    name: str
    identity: Mapping[str, str]  # the tags by which the run is found
    status: str  # RUNNING, FINISHED or KILLED
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]  # values without a step
    curve: Curve
    reopens: bool = False  # whether its status replaces FINISHED
    started: int | None = None  # milliseconds since 1970, as MLflow counts
    ended: int | None = None


class Store:
    """One experiment of an open store."""

    def __init__(self, client: "MlflowClient", experiment: str) -> None:
        self.client, self.experiment = client, experiment

    def write(self, entry: Entry, fits: Callable[["Run"], bool] = lambda run: True) -> str:
        """Write the parts of `entry` that are missing in the store or have changed. Returns the identifier of the run.

        Of the runs with the identity of `entry`, only those that `fits` accepts are considered.
        """
        from mlflow.entities import Metric, Param, RunTag

        run, curve = self.find_or_create(entry, fits)
        there, run_id, now = run.data, run.info.run_id, int(time.time() * 1000)
        metrics = [Metric(k, v, now, step) for (k, step), v in sorted(entry.curve.items()) if (k, step) not in curve]
        metrics += [Metric(k, v, now, 0) for k, v in entry.metrics.items() if there.metrics.get(k) != v]
        # MLflow refuses to change the value of a parameter.
        params = [Param(k, str(v)) for k, v in entry.params.items() if k not in there.params]
        tags = [RunTag(k, v) for k, v in entry.tags.items() if there.tags.get(k) != v]
        for start in range(0, len(metrics), METRICS_AT_ONCE):
            self.client.log_batch(run_id, metrics=metrics[start : start + METRICS_AT_ONCE])
        for start in range(0, max(len(params), len(tags)), TAGS_AT_ONCE):
            part = slice(start, start + TAGS_AT_ONCE)
            self.client.log_batch(run_id, params=params[part], tags=tags[part])
        if run.info.status != entry.status and (entry.reopens or run.info.status != "FINISHED"):
            if entry.status == "RUNNING":
                self.client.update_run(run_id, entry.status)
            else:
                self.client.set_terminated(run_id, entry.status, entry.ended)
        return run_id

    def find_or_create(self, entry: Entry, fits: Callable[["Run"], bool]) -> tuple["Run", Curve]:
        """Return a run and its curve: the run of this identity whose curve agrees with `entry`, or else a new run.

        If values at the same steps differ, the run is of another training: the code was edited, or an attempt was
        killed and its repetition was not exact. The other run is kept. Its status becomes KILLED if it was RUNNING.
        """
        tags = " and ".join(f"tags.`{key}` = '{value}'" for key, value in entry.identity.items())
        for run in filter(fits, self.client.search_runs([self.experiment], tags)):
            curve = self.curve(run.info.run_id, {name for name, _ in entry.curve})
            if all(curve[point] == entry.curve[point] for point in curve.keys() & entry.curve.keys()):
                return run, curve
            if run.info.status == "RUNNING":
                self.client.set_terminated(run.info.run_id, "KILLED")
        return self.client.create_run(self.experiment, entry.started, dict(entry.identity), entry.name), {}

    def nested(self, run_id: str) -> list["Run"]:
        return list(self.client.search_runs([self.experiment], f"tags.`mlflow.parentRunId` = '{run_id}'"))

    def curve(self, run_id: str, names: set[str]) -> Curve:
        return {(m.key, m.step): m.value for name in names for m in self.client.get_metric_history(run_id, name)}


@contextlib.contextmanager
def opened() -> Iterator[Store]:
    """Yield the store that MLFLOW_TRACKING_URI names. Creates a missing store. One process at a time has it open.

    Raises any error of MLflow, SQLite or the system.
    """
    path = database(uri())
    with locked(path.with_name(f"{path.name}.lock") if path else Path("work/mlflow.lock")):
        if path:
            prepare(path)
        from mlflow import MlflowClient

        client = MlflowClient(uri())
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "transformer")
        experiment = client.get_experiment_by_name(name)
        yield Store(client, experiment.experiment_id if experiment else client.create_experiment(name))


def uri() -> str:
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def require_store() -> None:
    """Raise UserError if MLflow is turned off."""
    if uri() == "off":
        raise UserError("MLFLOW_TRACKING_URI is off; the address of a store is expected, or none for mlflow.db")


def shown_uri() -> str:
    """`uri()` without user name and password."""
    return re.sub(r"//[^/@]*@", "//...@", uri())


def database(uri: str) -> Path | None:
    """The file of an SQLite store, or None for a store in memory or of another kind."""
    match = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", uri)
    return Path(match[1]) if match and match[1] != ":memory:" else None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare(path: Path) -> None:
    """Create the database if it does not exist. Raises if it cannot be written; MLflow would retry for minutes."""
    if not exists(path):
        create(path)
    with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def create(path: Path) -> None:
    """Create the database under another name, then rename it. MLflow cannot use or repair a partly created database.

    The other name is new each time, because MLflow creates the tables of a database name only once per process.
    """
    from mlflow import MlflowClient

    for left in path.parent.glob(f".{path.name}.*.partial*"):
        left.unlink()
    partial = path.with_name(f".{path.name}.{time.time_ns()}.partial")
    try:
        MlflowClient(f"sqlite:///{partial.absolute()}").search_experiments()
        if not exists(path):  # `mlflow ui`, which does not take the lock, may have created it meanwhile
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
