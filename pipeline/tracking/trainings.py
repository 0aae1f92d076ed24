"""What stands in scores/ as MLflow's runs: one a training, by its settings and data, its decodings nested under it.

Mirroring twice changes nothing. The other sources are work/times/, params.yaml (names of corpus and model, settings of
a decoding) and dvc.lock (the data's hash).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

from pipeline.settings.digest import digest
from pipeline.settings.params import load
from pipeline.tracking.store import Curve, Store
from pipeline.workflow.times import read_times
from transformer.config.reading import UserError
from transformer.files import read_json

TRANSLATIONS = Path("translations/translations.json")
TIMES = Path("work/times")


@dataclass(frozen=True)
class Sources:
    """What is known of a run beside its score files: params.yaml and dvc.lock, each empty where it cannot be read."""

    params: Mapping[str, Any]
    lock: Mapping[str, Any]

    @classmethod
    def read(cls) -> "Sources":
        try:
            params = load()
        except UserError:
            params = {}
        try:
            lock = YAML(typ="safe").load(Path("dvc.lock").read_text(encoding="utf-8"))
        except (OSError, ValueError, YAMLError):  # no DVC here, or it is writing the file
            lock = {}
        return cls(params, lock)

    def names(self, run: str) -> dict[str, str]:
        """The run's corpus and model, also where no more than a study names it."""
        for runs in (self.params.get("runs", {}), *self.params.get("studies", {}).values()):
            if run in runs:
                return {key: runs[run][key] for key in ("corpus", "model")}
        return {}

    def dvc_sum(self, run: str, stage: str, side: str) -> dict[str, str]:
        """DVC's hash of the run's binarised data, where it is among the `side` (deps or outs) of a stage."""
        path = f"data/{self.names(run).get('corpus')}/binarised"
        try:
            sums = {item["path"]: item["md5"] for item in self.lock["stages"][stage][side]}
        except (KeyError, TypeError):  # the stage has not run, or the file was half written
            return {}
        return {"data_dvc": sums[path]} if path in sums else {}

    def live(self, run: str) -> dict[str, str]:
        """While it is trained, on the data as they are."""
        corpus = self.names(run).get("corpus")
        return {**self.names(run), **self.dvc_sum(run, f"binarise@{corpus}", "outs")}

    def trained(self, run: str) -> dict[str, str]:
        """After that: the data it was trained on."""
        return {**self.names(run), **self.dvc_sum(run, f"train@{run}", "deps")}


def mirror_live(store: Store, run: str, training: Mapping[str, Any], log: Path, last: bool) -> None:
    """A training as far as it has come; with its first line it becomes a run."""
    curve = read_curve(log)
    if not curve:
        return
    run_id = mirror_training(store, run, training, curve)
    finished = max(step for _, step in curve) >= training["settings"]["training"]["steps"]
    store.set_status(run_id, "RUNNING" if not last else "FINISHED" if finished else "KILLED")


def mirror_training(
    store: Store, run: str, training: Mapping[str, Any], curve: Curve, started: int | None = None
) -> str:
    """A training by its description, or by training.json: the identifier of its run."""
    settings = training["settings"]
    identity = {"run": run, "key": digest([settings, training["data_sum"]])}
    run_id = store.find_or_create(run, identity, curve, started)
    known = {key: value for key, value in training.items() if key != "settings"}
    store.log(run_id, numbers("training", known), dict(leaves(settings)), texts(known))
    store.log_curve(run_id, curve)
    return run_id


def mirror_run(store: Store, run: str, folder: Path, sources: Sources) -> None:
    """The files of a run that is trained, and of its decoding if there is one."""
    timing = read_times(TIMES / run / "training.json", folder / "training.json") or {}
    training = {**sources.trained(run), **read_json(folder / "training.json")}
    curve = read_curve(folder / "training.jsonl")
    run_id = mirror_training(store, run, training, curve, moment(timing.get("started")))
    measured = numbers("timing", timing) | numbers("flops", optional(folder / "flops.json"))
    commit = {"mlflow.source.git.commit": timing["commit"]} if timing.get("commit") else {}
    store.log(run_id, measured, {}, texts(timing) | commit)
    store.set_status(run_id, "FINISHED", moment(timing.get("ended")))
    if (folder / TRANSLATIONS).exists():
        mirror_decoding(store, run, run_id, folder, sources)


def mirror_decoding(store: Store, run: str, parent: str, folder: Path, sources: Sources) -> None:
    """A decoding of the training `parent`, with its perplexities, scores and signatures."""
    made = read_json(folder / TRANSLATIONS)
    settings = made.pop("settings")  # what the translations were made with, whatever params.yaml says now
    beam, alpha = (settings.get("decoding", {}).get(key) for key in ("beam", "alpha"))
    identity = {"mlflow.parentRunId": parent, "run": run, "key": digest(settings)}
    run_id = store.find_or_create(f"{run}: beam {beam}, alpha {alpha}", identity, {})
    timing = read_times(TIMES / run / "decoding.json", folder / TRANSLATIONS) or {}
    scores, signatures = scores_of(optional(folder / "score.json"))
    measured = numbers("decoding", made) | numbers("timing", timing) | scores
    store.log(run_id, measured, dict(leaves(settings)), sources.names(run) | texts(timing) | signatures)
    store.set_status(run_id, "FINISHED")


def scores_of(table: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """The scores of score.json and their signatures, by set, checkpoint and measure."""
    cells = {
        f"score/{name}.{checkpoint}.{measure}": cell
        for name, checkpoints in table.items()
        for checkpoint, scored in checkpoints.items()
        for measure, cell in scored["metrics"].items()
    }
    return {k: cell["score"] for k, cell in cells.items()}, {k: cell["signature"] for k, cell in cells.items()}


def read_curve(log: Path) -> Curve:
    """The points in the whole lines of training.jsonl, of which the last may be half written."""
    curve: Curve = {}
    for line in log.read_bytes().split(b"\n")[:-1] if log.exists() else []:
        record = json.loads(line)
        step = record.pop("step")
        curve |= {(name, step): float(value) for name, value in record.items() if math.isfinite(value)}
    return curve


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What stands in nested mappings, by dotted names."""
    if not isinstance(value, Mapping):
        yield re.sub(r"[^\w./ -]", "_", name), value
    else:
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}" if name else str(key))


def numbers(group: str, values: Mapping[str, Any]) -> dict[str, float]:
    found = {name: value for name, value in leaves(values) if isinstance(value, (int, float))}
    return {f"{group}/{name}": float(value) for name, value in found.items() if not isinstance(value, bool)}


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in leaves(values) if isinstance(value, str)}


def optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def moment(text: str | None) -> int | None:
    """An ISO 8601 time in MLflow's milliseconds."""
    return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None
