"""An MLflow store that may be written at any time: made without a race, found by tags, nothing written twice.

Without MLFLOW_TRACKING_URI it is `mlflow.db` in the folder this runs in, which is what `mlflow ui` shows there.
"""

import contextlib
import fcntl
import math
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

# Read while MLflow is imported. It is to send nothing home, and without this it would wait for minutes for a server
# that is gone, and go on writing to a database whose file was removed.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
for name, value in {"TIMEOUT": "5", "MAX_RETRIES": "1", "BACKOFF_FACTOR": "1"}.items():
    os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

LOCK_SECONDS = 5  # what another program may hold a database that we write
POINTS_AT_ONCE, TAGS_AT_ONCE = 1000, 100  # MLflow's limits

Curve = dict[tuple[str, int], float]  # a metric's name and a step: the value there


class Store:
    """One experiment of an open store. Whatever is there already is not written again."""

    def __init__(self, client: "MlflowClient", experiment: str) -> None:
        self.client, self.experiment = client, experiment

    def find_or_create(self, name: str, identity: Mapping[str, str], curve: Curve, started: int | None = None) -> str:
        """The run tagged with all of `identity` (`key` is one) whose points are none but `curve`'s; a new one else.

        Points that differ are another training's: the same settings after an edit of the code, or an attempt that
        was killed and did not repeat itself exactly. That run stays as it is, and is said to run no longer.
        """
        runs = self.client.search_runs([self.experiment], f"tags.key = '{identity['key']}'")
        for run in runs:
            if not identity.items() <= run.data.tags.items():
                continue
            if self.agrees(run, curve):
                return run.info.run_id
            if run.info.status == "RUNNING":
                self.client.set_terminated(run.info.run_id, "KILLED")
        return self.client.create_run(self.experiment, started, dict(identity), name).info.run_id

    def agrees(self, run: "Run", curve: Curve) -> bool:
        there = self.curve(run.info.run_id, curve)
        return all(there[place] == curve[place] for place in there.keys() & curve.keys())

    def curve(self, run_id: str, like: Curve) -> Curve:
        """What the run has of the metrics of `like`."""
        names = sorted({name for name, _ in like})
        return {(m.key, m.step): m.value for name in names for m in self.client.get_metric_history(run_id, name)}

    def log_curve(self, run_id: str, curve: Curve) -> None:
        from mlflow.entities import Metric

        there, now = self.curve(run_id, curve), milliseconds()
        new = [Metric(name, curve[name, step], now, step) for name, step in sorted(curve.keys() - there.keys())]
        for start in range(0, len(new), POINTS_AT_ONCE):
            self.client.log_batch(run_id, metrics=new[start : start + POINTS_AT_ONCE])

    def log(
        self, run_id: str, metrics: Mapping[str, float], params: Mapping[str, Any], tags: Mapping[str, str]
    ) -> None:
        """Numbers without a step, parameters (which MLflow never changes) and tags."""
        from mlflow.entities import Metric, Param, RunTag

        there, now = self.client.get_run(run_id).data, milliseconds()
        new = [Metric(k, v, now, 0) for k, v in metrics.items() if math.isfinite(v) and there.metrics.get(k) != v]
        new += [Param(k, str(v)) for k, v in params.items() if k not in there.params]
        new += [RunTag(k, v) for k, v in tags.items() if there.tags.get(k) != v]
        for start in range(0, len(new), TAGS_AT_ONCE):
            part: dict[type, list] = {Metric: [], Param: [], RunTag: []}
            for one in new[start : start + TAGS_AT_ONCE]:
                part[type(one)].append(one)
            self.client.log_batch(run_id, *part.values())

    def set_status(self, run_id: str, status: str, ended: int | None = None) -> None:
        """RUNNING, FINISHED or KILLED; what is finished stays so."""
        before = self.client.get_run(run_id).info.status
        if before in (status, "FINISHED"):
            return
        if status == "RUNNING":
            self.client.update_run(run_id, status)
        else:
            self.client.set_terminated(run_id, status, ended)


@contextlib.contextmanager
def opened() -> Iterator[Store]:
    """The store that MLFLOW_TRACKING_URI names, made if it is not there, and this process its only writer.

    Raises what MLflow, SQLite or the system raises where it cannot be written.
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


def shown_uri() -> str:
    """`uri()` without a password."""
    return re.sub(r"//[^/@]*@", "//...@", uri())


def database(uri: str) -> Path | None:
    """The file of an SQLite store."""
    match = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", uri)
    return Path(match[1]) if match and match[1] != ":memory:" else None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare(path: Path) -> None:
    """Make the database if it is not there, and see that it can be written, which MLflow would try for minutes."""
    if not exists(path):
        create(path)
    with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def create(path: Path) -> None:
    """Under another name first: a kill half-way would leave tables that MLflow can neither use nor complete.

    A new name each time: in one process, MLflow takes a name that it knows for a database that it has made.
    """
    from mlflow import MlflowClient

    partial = path.with_name(f".{path.name}.{milliseconds()}.partial")
    for left in path.parent.glob(f".{path.name}.*.partial*"):
        left.unlink()
    try:
        MlflowClient(f"sqlite:///{partial.absolute()}").search_experiments()
        if not exists(path):  # `mlflow ui` may have made it meanwhile
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def milliseconds() -> int:
    return int(time.time() * 1000)
