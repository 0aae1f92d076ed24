"""The files in scores/ as runs of MLflow: one run a training or search, with its decodings or trials nested under it.

The name of the run, the settings and the data identify a training, so mirroring twice changes nothing.

    python -m pipeline.extras.tracking.trainings RUN LOG DESCRIPTION

mirrors a training until its standard input ends. `following` in client.py starts it.
"""

import json
import logging
import math
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.extras.tracking.client import warn
from pipeline.extras.tracking.store import Curve, opened, record
from pipeline.running.times import read_times, training_times
from pipeline.settings.score_files import content
from transformer.config.reading import UserError
from transformer.files import digest, read_json

INTERVAL = 15  # seconds between two reads of a training's log
PARENT = "mlflow.parentRunId"  # the tag by which MLflow nests runs


def follow(run: str, log: Path, description: str, until: Any) -> None:
    """Mirror a training every INTERVAL seconds, and once more when the stream `until` ends. Prints only the first error."""
    warned = last = False
    while not last:
        last = bool(select.select([until], [], [], INTERVAL)[0])
        try:
            with opened():
                mirror_live(run, json.loads(description), log, last)
        except UserError as error:
            if not warned:
                warn(str(error))
            warned = True


def mirror_live(run: str, training: Mapping[str, Any], log: Path, last: bool) -> None:
    """Mirror a training, which has these `settings` and this `data_sum`, up to the end of its log.

    An empty log creates no run. `last` means that no further call follows; an unfinished training is then KILLED.
    """
    if curve := read_curve(log):
        finished = max(step for _, step in curve) >= training["settings"]["training"]["steps"]
        mirror_training(run, training, curve, "RUNNING" if not last else "FINISHED" if finished else "KILLED")


def mirror_training(run: str, training: Mapping[str, Any], curve: Curve, status: str, **facts: Mapping[str, Any]) -> str:
    settings = training["settings"]
    known = {key: value for key, value in training.items() if key != "settings"}
    identity = {"run": run, "key": digest([settings, training["data_sum"]])}
    return record(run, identity, status, settings, {"training": known, **facts}, curve)


def mirror_trained(folder: Path) -> str:
    """Mirror the training of a run, scores/RUN, without its decoding. Returns the identifier of its run in MLflow."""
    run, training, curve = folder.name, read_json(folder / "training.json"), read_curve(folder / "training.jsonl")
    facts = {"timing": training_times(run), "flops": content(folder / "flops.json") or {}}
    return mirror_training(run, training, curve, "FINISHED", **facts)


def mirror_run(folder: Path) -> None:
    """Mirror the score files of a trained run, scores/RUN, and those of its decoding if they exist."""
    run, path, parent = folder.name, folder / "translations/translations.json", mirror_trained(folder)
    if (decoding := content(path)) is None:
        return
    settings = decoding.pop("settings")  # the settings of this decoding; params.yaml may have changed since
    timing = read_times(Path("work/times", run, "decoding.json"), path) or {}
    facts = {"decoding": decoding, "timing": timing, "score": content(folder / "score.json") or {}}
    record(f"{run}: decoding", {PARENT: parent, "run": run, "key": digest(settings)}, "FINISHED", settings, facts, {})


def mirror_search(path: Path) -> None:
    """Mirror the file of a search: a run, and one nested in it for each trial."""
    found = read_json(path)
    name, trials = found["name"], found["trials"]
    settings = {key: value for key, value in found["search"].items() if key != "trials"}
    best = {"best": trials[found["best"]["trial"]]["value"]} if found["best"] else {}
    # By the settings alone, a search after a change of the code would be the run of the search before it.
    identity = {"run": name, "key": digest([settings, found["data_sum"], trials[0]])}
    parent = record(name, identity, "FINISHED", settings, {"search": best}, {})
    for trial in trials:
        curve = {("dev_loss", int(step)): loss for step, loss in trial["dev_losses"]}
        ended = {key: trial[key] for key in ("state", "why", "value") if trial[key] not in (None, "")}
        identity = {PARENT: parent, "run": name, "trial": str(trial["trial"]), "key": digest(trial)}
        record(f"{name}: trial {trial['trial']}", identity, "FINISHED", trial["settings"], {"trial": ended}, curve)


def read_curve(log: Path) -> Curve:
    """The points in the complete lines of training.jsonl. The last line may be half written."""
    curve: dict[tuple[str, int], float] = {}
    for line in log.read_bytes().split(b"\n")[:-1] if log.exists() else []:
        values = json.loads(line)
        step = values.pop("step")
        curve |= {(name, step): float(value) for name, value in values.items() if math.isfinite(value)}
    return curve


if __name__ == "__main__":
    logging.disable()  # MLflow and Alembic log to standard error
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a stop, Snakemake interrupts all processes; standard input ends later
    follow(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.stdin)
