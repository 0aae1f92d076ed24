"""MLflow shows each value of the score files once, and failures of MLflow stop no stage. Its client reads the store."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline.extras.tracking import __main__ as trainings
from pipeline.extras.tracking import client as tracking
from pipeline.extras.tracking import store
from pipeline.extras.tracking.__main__ import mirror_live, mirror_run, read_curve
from pipeline.running.times import write_times
from tests.support import in_process
from tests.support.projects import ENVIRONMENT, ROOT
from tests.support.searches import SEARCH, result
from transformer.config.reading import UserError
from transformer.files import write_json, write_lines

SETTINGS = {"model": {"N": 2, "dropout": 0.1}, "training": {"steps": 40, "seed": 1, "lr_scale": 1.0, "patience": 0}}
DESCRIPTION = {"settings": SETTINGS, "data_sum": "0a1b"}
pytestmark = pytest.mark.slow


def records(steps: int, scale: float = 1.0) -> list[dict]:
    """The log of a training: a loss every ten steps and a dev loss every twenty."""
    log = []
    for step in range(10, steps + 1, 10):
        log.append({"step": step, "loss": scale / step, "learning_rate": 1e-7 * step, "tokens": 321 * step})
        if step % 20 == 0:
            log.append({"step": step, "dev_loss": scale / step, "dev_perplexity": 1 + scale / step})
    return log


def decoded(beam: int) -> dict:
    settings = {"decoding": {"beam": beam, "alpha": 0.6}, "averaging": {"checkpoints": 5}}
    return {"dev": {"last": {"perplexity": 4.5}}, "settings": settings}


def write_scores(folder: Path) -> None:
    """Write small versions of the files that the stages of a run write."""
    (folder / "translations").mkdir(parents=True)
    write_lines(folder / "training.jsonl", map(json.dumps, records(40)))
    measure = {"score": 61.5, "low": 60.0, "high": 63.0, "signature": "nrefs:1|case:mixed|tok:13a"}
    times = {"started": "2030-01-02T03:00:00+00:00", "ended": "2030-01-02T03:04:05+00:00"}
    summary = {"steps": 40, "dev_loss": 0.025, "settings": SETTINGS, "settings_sha256": "ffee", "data_sum": "0a1b"}
    for name, content in {
        "training.json": summary,
        "flops.json": {"estimate": 3.3e18},
        "translations/translations.json": decoded(beam=4),
        "score.json": {"test": {"average": {"pairs": 9, "metrics": {"bleu-13a": measure}}}},
    }.items():
        (folder / name).write_text(json.dumps(content))
    of_run = folder.parent.parent / "work/times" / folder.name
    training = {"tokens_per_second": 5000.5, "hardware": "abacus", "commit": "c0ffee", **times}
    write_times(of_run / "training.json", folder / "training.json", training)
    decoding = {"seconds": {"test.average": 12.5}}
    write_times(of_run / "decoding.json", folder / "translations/translations.json", decoding)


# Two trainings at once. The second one is killed.
TRAININGS = f"""
import os, sys
from pathlib import Path
import pipeline.extras.tracking.__main__
from pipeline.extras.tracking import client
client.PATIENCE = 300  # the machine may be busy
print("mlflow" in sys.modules, os.environ["MLFLOW_DISABLE_TELEMETRY"], flush=True)
with client.following("one", Path("one.jsonl"), {DESCRIPTION}):
    if os.fork() == 0:
        with client.following("two", Path("two.jsonl"), {DESCRIPTION}):
            os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess]:
    """A folder with a store, and the process of TRAININGS, which created it. Creating a store is slow."""
    folder = tmp_path_factory.mktemp("first")
    for name, steps in (("one", 40), ("two", 20)):
        write_lines(folder / f"{name}.jsonl", map(json.dumps, records(steps)))
    environment = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("MLFLOW_")}
    # A follower inherits the pipe of standard error, so this call also waits for that of the killed training.
    how: Any = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 300}
    return folder, subprocess.run([sys.executable, "-c", TRAININGS], check=False, **how)


@pytest.fixture
def project(here: Path, first: tuple, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store, which does not have the run `tiny` yet."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    use_store(shutil.copy(first[0] / "mlflow.db", here), monkeypatch)
    return here


def use_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")


def content(*names: str) -> list[dict]:
    """The content of the store for the runs `names`, or for `tiny`, without identifiers and times."""
    from mlflow import MlflowClient

    client = MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
    runs = client.search_runs([experiment.experiment_id])
    runs = [run for run in runs if run.data.tags["run"] in (names or ["tiny"])]
    called = {run.info.run_id: run.info.run_name for run in runs}
    found = []
    for run in runs:
        histories = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
        points = sorted((key, m.step, m.value) for key, history in histories.items() for m in history)
        tags = {key: called.get(value, value) for key, value in run.data.tags.items()}
        kept = {"name": run.info.run_name, "status": run.info.status, "params": run.data.params}
        found.append(kept | {"tags": tags, "points": points})
    return sorted(found, key=lambda run: (run["name"], run["points"]))


def end_times() -> dict[str, int]:
    """The ends of all runs of the store, by their identifiers."""
    import mlflow

    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    return {run.info.run_id: run.info.end_time for run in runs}


def points_of(log: list[dict]) -> list[tuple]:
    return sorted((key, record["step"], record[key]) for record in log for key in record if key != "step")


def live(log: Path, last: bool = False) -> None:
    with store.opened():
        mirror_live("tiny", DESCRIPTION, log, last)


def mirror(folder: Path) -> None:
    with store.opened():
        mirror_run(folder)


def test_a_run_shows_its_files(project):
    write_scores(project / "scores/tiny")
    in_process.run(["pipeline.extras.tracking.__main__", "scores/tiny/training.json"])
    assert [run["name"] for run in content()] == ["tiny"], "the scores beside a new training may be of the one before"
    mirror(project / "scores/tiny")
    training, decoding = content()
    assert training["name"] == "tiny" and training["status"] == "FINISHED"
    assert training["params"]["model.dropout"] == "0.1" and training["params"]["training.steps"] == "40"
    expected = {"run": "tiny", "data_sum": "0a1b", "settings_sha256": "ffee"}
    expected |= {"hardware": "abacus", "commit": "c0ffee"}
    assert expected.items() <= training["tags"].items()
    once = {("training/dev_loss", 0, 0.025), ("timing/tokens_per_second", 0, 5000.5), ("flops/estimate", 0, 3.3e18)}
    assert set(training["points"]) == {*points_of(records(40)), *once, ("training/steps", 0, 40)}
    assert decoding["tags"]["mlflow.parentRunId"] == "tiny"
    assert decoding["params"] == {"decoding.beam": "4", "decoding.alpha": "0.6", "averaging.checkpoints": "5"}
    assert ("score/test.average.metrics.bleu-13a.score", 0, 61.5) in decoding["points"]
    assert ("decoding/dev.last.perplexity", 0, 4.5) in decoding["points"]
    assert ("timing/seconds.test.average", 0, 12.5) in decoding["points"]
    assert decoding["tags"]["test.average.metrics.bleu-13a.signature"] == "nrefs:1|case:mixed|tok:13a"
    ends = end_times()
    mirror(project / "scores/tiny")
    assert (content(), end_times()) == ([training, decoding], ends), "mirroring again changes nothing"
    path = project / "scores/tiny/score.json"
    path.write_text(path.read_text().replace("61.5", "60.5"))
    mirror(project / "scores/tiny")
    assert ("score/test.average.metrics.bleu-13a.score", 0, 60.5) in content()[1]["points"], "but a changed score is added"
    (project / "scores/tiny/translations/translations.json").write_text(json.dumps(decoded(beam=8)))
    mirror(project / "scores/tiny")
    _, *decodings = content()
    assert sorted(run["params"]["decoding.beam"] for run in decodings) == ["4", "8"]
    assert [run["tags"]["mlflow.parentRunId"] for run in decodings] == ["tiny"] * 2


def test_a_resumed_training_continues_its_run_without_repeated_points(project):
    log = project / "training.jsonl"
    write_lines(log, map(json.dumps, records(30)))
    live(log)
    (running,) = content()
    assert running["status"] == "RUNNING" and running["points"] == points_of(records(30))
    live(log, last=True)
    assert content()[0]["status"] == "KILLED"
    write_lines(log, map(json.dumps, records(20)))  # resuming from step 20 truncates the log
    live(log)
    assert content()[0]["status"] == "RUNNING"
    write_lines(log, map(json.dumps, records(40)))
    live(log, last=True)
    (finished,) = content()
    assert finished["status"] == "FINISHED" and finished["points"] == points_of(records(40))


def test_other_losses_with_the_same_settings_are_another_run(project):
    log = project / "training.jsonl"
    for scale in (1.0, 1.5, 1.0):
        write_lines(log, map(json.dumps, records(40, scale)))
        live(log, last=True)
    first, second = content()
    assert {tuple(run["points"]) for run in (first, second)} == {tuple(points_of(records(40, s))) for s in (1.0, 1.5)}


def test_a_store_rebuilt_from_the_files_equals_the_live_one(project, first, monkeypatch):
    write_scores(project / "scores/tiny")
    with open(os.devnull) as ended:
        trainings.follow("tiny", project / "scores/tiny/training.jsonl", json.dumps(DESCRIPTION), ended)
    mirror(project / "scores/tiny")
    mirrored_live = content()
    use_store(shutil.copy(first[0] / "mlflow.db", project / "rebuilt.db"), monkeypatch)
    write_json(project / "scores/searches/small.json", result())
    status, said, _ = in_process.started(["pipeline.extras.tracking.__main__"])
    assert (status, said) == (0, f"sqlite:///{project}/rebuilt.db now has 2 runs and searches\n")
    assert content("small")[0]["name"] == "small" and content() == mirrored_live
    (project / "scores/tiny/training.json").write_text("{")
    _, _, said = in_process.started(["pipeline.extras.tracking.__main__"])
    assert "scores/tiny/training.json is damaged" in said.splitlines()[-1] and "MLflow" not in said.splitlines()[-1]


def test_two_trainings_that_create_the_store_at_once_share_it_and_the_follower_of_a_killed_one_ends(first, monkeypatch):
    folder, process = first
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "False true\n", "telemetry is off before MLflow is imported"
    assert sorted(path.name for path in folder.iterdir()) == ["mlflow.db", "one.jsonl", "two.jsonl", "work"]
    use_store(folder / "mlflow.db", monkeypatch)
    runs = [(run["name"], run["status"], run["points"]) for run in content("one", "two")]
    assert runs == [("one", "FINISHED", points_of(records(40))), ("two", "KILLED", points_of(records(20)))]


def test_a_store_that_fails_repeatedly_is_reported_once(project, monkeypatch, capsys):
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.1)
    monkeypatch.setattr(trainings, "INTERVAL", 0.1)
    log, (reading, writing) = project / "training.jsonl", os.pipe()
    write_lines(log, map(json.dumps, records(40)))
    holder = sqlite3.connect(project / "mlflow.db")
    holder.execute("BEGIN EXCLUSIVE")
    threading.Timer(1, os.close, [writing]).start()
    trainings.follow("tiny", log, json.dumps(DESCRIPTION), reading)
    os.close(reading)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "database is locked" in said and "`python -m pipeline.extras.tracking`" in said
    holder.rollback()
    live(log, last=True)
    assert content()[0]["points"] == points_of(records(40))


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("sqlite:///{folder}/file/mlflow.db", "file"),  # the parent is a file
        ("sqlite:///{folder}/file", "not a database"),
        ("sqlite:////proc/mlflow.db", "No such file"),
        ("http://alice:secret@localhost:1", "refused"),
        ("nonsense://store", "nonsense"),
    ],
)
def test_a_store_that_cannot_be_written_is_named_with_the_reason(project, monkeypatch, place, reason):
    (project / "file").write_text("no database, but long enough to look like one")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", place.format(folder=project))
    write_scores(project / "scores/tiny")
    with pytest.raises(UserError) as refused, store.opened():
        mirror_run(project / "scores/tiny")
    error = str(refused.value)
    shown = place.format(folder=project).replace("alice:secret", "...")
    assert error.startswith(f"MLflow, {shown}: ") and reason in error and "\n" not in error and "secret" not in error


def test_a_stage_continues_if_the_store_fails_and_its_own_error_passes_through(project, monkeypatch, capfd):
    (project / "file").write_text("no database, but long enough to look like one")
    use_store(project / "file", monkeypatch)
    write_scores(project / "scores/tiny")
    with pytest.raises(ZeroDivisionError), tracking.mirroring(project / "scores/tiny"):
        raise ZeroDivisionError
    said = capfd.readouterr().err
    assert said.startswith(f"track: {project}/scores/tiny: MLflow, sqlite:///") and "the stage continues" in said


def test_a_process_that_takes_too_long_is_given_up(project, monkeypatch, capfd):
    """As with a server that never answers."""
    monkeypatch.setattr(tracking, "PATIENCE", 0.1)
    with tracking.following("tiny", project / "training.jsonl", DESCRIPTION):
        pass
    assert capfd.readouterr().err.startswith("warning: tracking: MLflow took more than 0.1 seconds; the stage continues")


@pytest.mark.parametrize("off", ["by the environment", "by not being installed"])
def test_no_process_is_started_if_tracking_is_off(project, monkeypatch, capfd, off):
    if off == "by the environment":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    else:
        monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tracking.subprocess, "Popen", None)
    with tracking.following("tiny", project / "training.jsonl", DESCRIPTION), tracking.mirroring(project / "scores/tiny"):
        pass
    assert capfd.readouterr().err == ""


def test_a_half_written_line_and_nan_are_skipped(tmp_path):
    log = tmp_path / "training.jsonl"
    log.write_text('{"step": 1, "loss": 2.5, "tokens": NaN}\n{"step": 2, "lo')
    assert read_curve(log) == {("loss", 1): 2.5}
    assert read_curve(tmp_path / "none.jsonl") == {}


def test_a_stage_continues_if_no_process_can_be_started(monkeypatch, capsys):
    def refused(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking.subprocess, "Popen", refused)
    with tracking.process("any"):
        pass
    assert "Cannot allocate memory; the stage continues" in capsys.readouterr().err


# Searches


def add(found: dict) -> None:
    Path("small.json").write_text(json.dumps(found))
    with store.opened():
        trainings.mirror_search(Path("small.json"))


def test_each_trial_is_a_run_of_mlflow_nested_in_that_of_its_search(project):
    for _ in range(2):  # again, as `pipeline.extras.tracking` does
        add(result())
    parent, *trials = content("small")
    assert [run["name"] for run in trials] == [f"small: trial {number}" for number in range(4)]
    assert parent["name"] == "small" and parent["points"] == [("search/best", 0, 2.5)]
    assert {run["tags"]["mlflow.parentRunId"] for run in trials} == {"small"}
    assert {run["status"] for run in [parent, *trials]} == {"FINISHED"}
    assert trials[2]["tags"]["state"] == "pruned" and trials[2]["params"]["dropout"] == "0.3"
    assert trials[1]["points"] == [("dev_loss", 5, 4.0), ("dev_loss", 20, 2.5), ("trial/value", 0, 2.5)]


def test_a_search_of_other_settings_or_code_is_another_run_of_mlflow_and_one_with_more_trials_is_not(project):
    failed = {"state": "pruned", "why": "the loss is no longer a number at step 5", "value": None, "dev_losses": []}
    *same, ending = result()["trials"]
    partly = result(trials=[*same, {**ending, **failed}])
    other = result(trials=[{**trial, **failed} for trial in result()["trials"]], best=None)
    longer = result(search={**SEARCH, "trials": 4, "steps": 30})
    for found in (result(), other, longer, partly, other, result()):  # `other` and `partly` are by other code
        add(found)
    runs = content("small")
    parents = [run for run in runs if run["name"] == "small"]
    assert len(parents) == 3 and {("search/best", 0, 2.5)} == {point for run in parents for point in run["points"]}
    assert len(runs) == 3 + 3 * 4 + 1, "the changed last trial of `partly` is a run of its own"
