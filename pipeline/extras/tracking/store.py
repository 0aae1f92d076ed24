"""The MLflow store: `opened` selects it for one process at a time, `record` writes a run without repeating a value.

Without MLFLOW_TRACKING_URI the store is `mlflow.db` in the current folder, where `make ui` looks for it.
"""

import contextlib
import math
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from transformer.config.reading import UserError

# MLflow reads these variables at import. They turn telemetry off. They limit the time that MLflow waits for a server
# that does not answer; the default is minutes. They close a database after use, so that a removed file is noticed.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for name, value in {"TIMEOUT": "5", "MAX_RETRIES": "1", "BACKOFF_FACTOR": "1"}.items():
    os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")

EXPERIMENT = os.environ.get("MLFLOW_EXPERIMENT_NAME", "transformer")
LOCK = Path("work/mlflow.lock")
LOCK_SECONDS = 5  # how long to wait while another program locks the database

Curve = Mapping[tuple[str, int], float]  # the value of a metric (name) at a step


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Select the store that MLFLOW_TRACKING_URI names, and its experiment. Creates what is missing.

    One process at a time has it open. Raises UserError if MLflow is turned off, and with one line for any error of MLflow,
    SQLite or the system.
    """
    if uri() == "off":
        raise UserError("MLFLOW_TRACKING_URI is off; the address of a store is expected, or none for mlflow.db")
    try:
        LOCK.parent.mkdir(exist_ok=True)
        with FileLock(LOCK):
            if file := re.match(r"sqlite(?:\+\w+)?:///(?!:memory:)([^?]+)", uri()):
                prepare(Path(file[1]))
            import mlflow

            mlflow.set_tracking_uri(uri())
            mlflow.set_experiment(EXPERIMENT)
            yield
    except UserError:  # the fault of a file that is mirrored
        raise
    except Exception as error:  # stores and their drivers raise errors of many libraries
        raise UserError(without_user(f"MLflow, {uri()}: {' '.join(str(error).split())}")) from None


def uri() -> str:
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def without_user(text: str) -> str:
    """Return a text without the user names and passwords in its URLs."""
    return re.sub(r"//[^/\s]*@", "//...@", text)


def prepare(path: Path) -> None:
    """Create the database if it does not exist. Raises if it cannot be written; MLflow would retry for minutes.

    It is created in another folder, because MLflow can neither use nor repair a partly created database.
    """
    if not path.exists() or not path.stat().st_size:
        from mlflow import MlflowClient

        with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
            MlflowClient(f"sqlite:///{Path(folder).absolute()}/new.db").search_experiments()
            os.replace(Path(folder, "new.db"), path)
    with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def record(
    name: str,
    identity: Mapping[str, str],
    status: str,
    settings: Mapping[str, Any],
    facts: Mapping[str, Mapping[str, Any]],
    curve: Curve,
) -> str:
    """Write what the run with the tags `identity` lacks, and its status. Returns the identifier of the run.

    `facts` has groups of values, which may be nested: the finite numbers become metrics, and the texts tags.
    A run whose curve has other values at the same steps is of another training: the code was edited, or an attempt was
    killed and its repetition was not exact. It is kept, and a new run is written.
    """
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    client, keys = mlflow.MlflowClient(), {key for key, _ in curve}
    asked = " and ".join(f"tags.`{key}` = '{value}'" for key, value in identity.items())
    for run in mlflow.search_runs(filter_string=asked, output_format="list"):
        known = {(m.key, m.step): m.value for key in keys for m in client.get_metric_history(run.info.run_id, key)}
        if all(known[point] == curve[point] for point in known.keys() & curve.keys()):
            break
    else:  # `start_run` would add tags of its own, with paths of this machine and git's remote
        experiment = mlflow.set_experiment(EXPERIMENT).experiment_id
        run, known = client.create_run(experiment, tags=dict(identity), run_name=name), {}
    run_id, now = run.info.run_id, int(time.time() * 1000)
    points = [Metric(key, value, now, step) for (key, step), value in curve.items() if (key, step) not in known]
    found = [(group, *leaf) for group, values in facts.items() for leaf in leaves(values)]
    numbers = {f"{group}/{key}": float(value) for group, key, value in found if type(value) in (int, float)}
    metrics = {key: value for key, value in numbers.items() if math.isfinite(value)}
    points += [Metric(key, value, now, 0) for key, value in metrics.items() if run.data.metrics.get(key) != value]
    tags = {key: value for _, key, value in found if isinstance(value, str)}
    params = [Param(key, str(value)) for key, value in leaves(settings)]
    client.log_batch(run_id, points, params, [RunTag(*each) for each in tags.items()])
    if status == "RUNNING":
        client.update_run(run_id, status)
    elif run.info.status != "FINISHED":
        client.set_terminated(run_id, status)
    return run_id


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested mappings, with dotted names. `_` replaces each character that MLflow does not allow."""
    if not isinstance(value, Mapping):
        yield re.sub(r"[^\w./ -]", "_", name), value
    else:
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}" if name else str(key))
