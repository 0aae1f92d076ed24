"""The MLflow store: `opened` selects it for one process at a time, `record` writes a run without repeating a value.

Without MLFLOW_TRACKING_URI the store is `mlflow.db` in the current folder, where `make ui` looks for it.
"""

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from transformer.config.reading import UserError

# MLflow reads these variables at import. They turn telemetry off. They limit the time that MLflow waits for a server
# that does not answer; the default is minutes. They close a database after use, so that a removed file is noticed.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
for name, value in {"TIMEOUT": "5", "MAX_RETRIES": "1", "BACKOFF_FACTOR": "1"}.items():
    os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

LOCK_SECONDS = 5  # how long to wait while another program locks the database
AT_ONCE = 100  # MLflow's limit for the parameters and for the tags of one batch

Curve = Mapping[tuple[str, int], float]  # the value of a metric (name) at a step


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Select the store that MLFLOW_TRACKING_URI names, and its experiment. Creates what is missing.

    One process at a time has it open. Raises UserError if MLflow is turned off, and with one line for any error of MLflow,
    SQLite or the system.
    """
    if uri() == "off":
        raise UserError("MLFLOW_TRACKING_URI is off; the address of a store is expected, or none for mlflow.db")
    match = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", uri())
    path = Path(match[1]) if match and match[1] != ":memory:" else None
    lock = path.with_name(f"{path.name}.lock") if path else Path("work/mlflow.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()  # raises where filelock would wait for ever
        with FileLock(lock):
            if path:
                prepare(path)
            select()
            yield
    except UserError:  # the fault of a file that is mirrored
        raise
    except Exception as error:  # stores and their drivers raise errors of many libraries
        raise UserError(f"MLflow, {shown_uri()}: {reason(error)}") from None


def select() -> Any:
    """Select the store and return its experiment, which is created if it is missing."""
    import mlflow

    mlflow.set_tracking_uri(uri())
    return mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", "transformer"))


def reason(error: BaseException) -> str:
    """Return one line: the message of the root cause if that is an OSError or SQLite error, else that of `error`."""
    origin = error
    while cause := origin.__cause__ or origin.__context__:
        origin = cause
    said = origin if isinstance(origin, (OSError, sqlite3.Error)) else error
    return " ".join(str(said).split())[:200] or type(said).__name__


def uri() -> str:
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def shown_uri() -> str:
    """`uri()` without user name and password."""
    return re.sub(r"//[^/@]*@", "//...@", uri())


def prepare(path: Path) -> None:
    """Create the database if it does not exist. Raises if it cannot be written; MLflow would retry for minutes.

    It is created under another name, new each time, because MLflow can neither use nor repair a partly created database.
    """
    if not path.exists() or not path.stat().st_size:
        from mlflow import MlflowClient

        for left in path.parent.glob(f".{path.name}.*.partial*"):
            left.unlink()
        partial = path.with_name(f".{path.name}.{time.time_ns()}.partial")
        MlflowClient(f"sqlite:///{partial.absolute()}").search_experiments()
        os.replace(partial, path)
    with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def record(
    name: str,
    identity: Mapping[str, str],
    status: str,
    params: Mapping[str, Any],
    tags: Mapping[str, str],
    metrics: Mapping[str, float],
    curve: Curve,
) -> str:
    """Write what the run with the tags `identity` lacks, and its status. Returns the identifier of the run.

    A run whose curve has other values at the same steps is of another training: the code was edited, or an attempt was
    killed and its repetition was not exact. It is kept, and a new run is written.
    """
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    client, found, known = mlflow.MlflowClient(), None, {}
    asked = " and ".join(f"tags.`{key}` = '{value}'" for key, value in identity.items())
    for run in mlflow.search_runs(filter_string=asked, output_format="list"):
        keys = {key for key, _ in curve}
        known = {(m.key, m.step): m.value for key in keys for m in client.get_metric_history(run.info.run_id, key)}
        if all(known[point] == curve[point] for point in known.keys() & curve.keys()):
            found = run
            break
    if not found:  # `start_run` would add tags of its own, with paths of this machine and git's remote
        known = {}
        found = client.create_run(select().experiment_id, tags=dict(identity), run_name=name)
    run_id, now = found.info.run_id, int(time.time() * 1000)
    points = [Metric(key, value, now, step) for (key, step), value in curve.items() if (key, step) not in known]
    points += [Metric(key, value, now, 0) for key, value in metrics.items() if found.data.metrics.get(key) != value]
    labels = [RunTag(key, value) for key, value in tags.items()]
    settings = [Param(key, str(value)) for key, value in params.items()]
    for start in range(0, max(map(len, (points, labels, settings))), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        client.log_batch(run_id, points[part], settings[part], labels[part])
    if status == "RUNNING":
        client.update_run(run_id, status)
    elif found.info.status != "FINISHED":
        client.set_terminated(run_id, status)
    return run_id
