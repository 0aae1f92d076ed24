"""Copy the scores of runs and searches to MLflow, for example to fill a new store.

    python -m pipeline.extras.tracking [PATH...]

PATH is the folder of a run or the file of a search in scores/. Without a PATH, all of scores/ is copied. In MLflow, a
training or search is a run, with its decodings or trials nested under it. The name of the run, the settings and the data
identify a training, so copying twice changes nothing.
"""

import argparse
import contextlib
import json
import logging
import math
import select
import signal
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.extras.tracking.client import warn
from pipeline.extras.tracking.store import Curve, opened, record, uri, without_user
from pipeline.running import stage
from pipeline.running.times import read_times, training_times
from pipeline.settings.score_files import content
from transformer.config.reading import UserError, placed
from transformer.files import digest, read_json

SCORES, TRAINING = Path("scores"), "training.json"
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
    run, training, curve = folder.name, read_json(folder / TRAINING), read_curve(folder / "training.jsonl")
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


def main(arguments: argparse.Namespace) -> None:
    logging.disable()  # MLflow and Alembic log to standard error
    warnings.simplefilter("ignore")
    if arguments.follow:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a stop, Snakemake interrupts all processes; the input ends later
        return follow(arguments.follow[0], Path(arguments.follow[1]), arguments.follow[2], sys.stdin)
    if arguments.after_input:
        with contextlib.suppress(Exception):  # `opened` says what is wrong
            import mlflow  # noqa: F401  takes seconds
        sys.stdin.read()
    runs = [path.parent for path in SCORES.glob(f"*/{TRAINING}")]
    paths = arguments.paths or sorted([*runs, *SCORES.glob("searches/*.json")])
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; the folder of a run or the file of a search in scores/ is expected")
        with placed(str(path), ": "), opened():
            if path.name == TRAINING:  # for `flops`: the scores beside it may be of the training before
                mirror_trained(path.parent)
            else:
                (mirror_search if path.is_file() else mirror_run)(path)
    print(f"{without_user(uri())} now has {len(paths)} runs and searches")


if __name__ == "__main__":
    parser, names = stage.parser("track", __doc__), ("RUN", "LOG", "DESCRIPTION")
    parser.add_argument("--after-input", action="store_true", help="read the files once standard input has ended")
    parser.add_argument("--follow", nargs=3, metavar=names, help="mirror a training until standard input ends")
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="scores/RUN or scores/searches/NAME.json")
    stage.run(main, parser, checked=False)
