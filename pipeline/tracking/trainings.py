"""The files in scores/ as runs of MLflow: one run per training or search, with its decodings or trials nested under it.

The name of the run, the settings and the data identify a training, so mirroring twice changes nothing. The names of the
corpus and the model and DVC's hash of the data are from dvc.lock. The names of a training that DVC has not recorded yet
are from params.yaml or studies.yaml.
"""

import contextlib
import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML, YAMLError

from pipeline.settings.params import load
from pipeline.settings.score_files import within
from pipeline.settings.studies import with_studies
from pipeline.tracking.store import Curve, Entry, Store
from pipeline.workflow.text import content
from pipeline.workflow.times import read_times
from transformer.config.reading import UserError
from transformer.files import digest, read_json

if TYPE_CHECKING:
    from mlflow.entities import Run

TRANSLATIONS = Path("translations/translations.json")
TIMES = Path("work/times")
ENDED = ("complete", "pruned")  # states of a trial


@dataclass(frozen=True)
class Sources:
    """The contents of params.yaml, studies.yaml and dvc.lock. The content of a file that cannot be read is empty."""

    params: Mapping[str, Any]
    lock: Mapping[str, Any]

    @classmethod
    def read(cls) -> "Sources":
        params, lock = {}, {}
        with contextlib.suppress(UserError):
            params = load()
            params = with_studies(params)
        with contextlib.suppress(OSError, ValueError, YAMLError):  # DVC is not in use here, or is writing the file
            lock = YAML(typ="safe").load(Path("dvc.lock").read_text(encoding="utf-8"))
        return cls(params, lock)

    def names(self, run: str) -> dict[str, str]:
        """The corpus and the model of a run in `runs` or in a study. {} for any other run."""
        studies = self.params.get("studies", {}).values()
        for runs in (self.params.get("runs"), *(study.get("runs") for study in studies)):
            if run in (runs or {}):
                return {key: runs[run][key] for key in ("corpus", "model")}
        return {}

    def trained(self, run: str) -> dict[str, str]:
        """The corpus and the model of a training that DVC has recorded, and DVC's hash of the data; otherwise `names`."""
        entry = within(self.lock, "stages", f"train@{run}")
        settings = within(entry, "params", "params.yaml", f"runs.{run}")
        recorded = settings and "outs" in entry  # `outs` follows the settings; without it, these may be half written
        names = {key: settings[key] for key in ("corpus", "model")} if recorded else self.names(run)
        try:
            sums = {item["path"]: item["md5"] for item in entry["deps"]}
            return names | {"data_dvc": sums[f"data/{names['corpus']}/binarised"]}
        except (KeyError, TypeError):  # train has not run, or dvc.lock is half written
            return names


def mirror_live(store: Store, run: str, training: Mapping[str, Any], log: Path, last: bool) -> None:
    """Mirror the training that `training` describes, up to the end of its log. An empty log creates no run."""
    if curve := read_curve(log):
        config = training["settings"]["training"]
        finished = max(step for _, step in curve) >= config["steps"] or impatient(curve, config)
        status = "RUNNING" if not last else "FINISHED" if finished else "KILLED"
        store.write(dataclasses.replace(training_entry(run, training, curve, status), reopens=True))


def impatient(curve: Curve, config: Mapping[str, Any]) -> bool:
    """Return whether `patience` has ended the training: at a checkpoint, after `patience` dev losses without a new best.

    Checkpoints are counted back from the last step.
    """
    losses = sorted((step, loss) for (name, step), loss in curve.items() if name == "dev_loss")
    patience = config["patience"]
    if not 0 < patience < len(losses) or (config["steps"] - losses[-1][0]) % config["checkpoint_every"]:
        return False
    return min(loss for _, loss in losses[:-patience]) <= min(loss for _, loss in losses[-patience:])


def mirror_run(store: Store, run: str, folder: Path, sources: Sources) -> None:
    """Mirror the score files of a trained run, and those of its decoding if they exist."""
    timing = read_times(TIMES / run / "training.json", folder / "training.json") or {}
    names = sources.trained(run)
    training = {**names, **read_json(folder / "training.json")}
    entry = training_entry(run, training, read_curve(folder / "training.jsonl"), "FINISHED")
    commit = {"mlflow.source.git.commit": timing["commit"]} if timing.get("commit") else {}
    entry = dataclasses.replace(
        entry,
        tags={**entry.tags, **texts(timing), **commit},
        metrics={
            **entry.metrics,
            **numbers("timing", timing),
            **numbers("flops", content(folder / "flops.json") or {}),
        },
        started=moment(timing.get("started")),
        ended=moment(timing.get("ended")),
    )
    parent = store.write(entry)
    if (folder / TRANSLATIONS).exists():
        decoding = read_json(folder / TRANSLATIONS)
        timing = read_times(TIMES / run / "decoding.json", folder / TRANSLATIONS) or {}
        scores = content(folder / "score.json") or {}
        store.write(
            decoding_entry(
                run, parent, decoding, timing, scores, {key: names[key] for key in ("corpus", "model") if key in names}
            )
        )


def training_entry(run: str, training: Mapping[str, Any], curve: Curve, status: str) -> Entry:
    """`training` holds the names from `Sources` and the content of training.json, as far as it is known."""
    settings = training["settings"]
    known = {key: value for key, value in training.items() if key != "settings"}
    identity = {"run": run, "key": digest([settings, training["data_sum"]])}
    return Entry(run, identity, status, dict(leaves(settings)), texts(known), numbers("training", known), curve)


def decoding_entry(run: str, parent: str, decoding: dict, timing: dict, scores: dict, names: dict[str, str]) -> Entry:
    """A decoding of the training `parent`: perplexities, times, and scores with their signatures."""
    settings = decoding.pop("settings")  # the settings of this decoding; params.yaml may have changed since
    beam, alpha = (settings.get("decoding", {}).get(key) for key in ("beam", "alpha"))
    identity = {"mlflow.parentRunId": parent, "run": run, "key": digest(settings)}
    cells = {
        f"score/{name}.{checkpoint}.{measure}": cell
        for name, checkpoints in scores.items()
        for checkpoint, scored in checkpoints.items()
        for measure, cell in scored["metrics"].items()
    }
    tags = names | texts(timing) | {key: cell["signature"] for key, cell in cells.items()}
    metrics = numbers("decoding", decoding) | numbers("timing", timing)
    metrics |= {key: cell["score"] for key, cell in cells.items()}
    name = f"{run}: beam {beam}, alpha {alpha}"
    return Entry(name, identity, "FINISHED", dict(leaves(settings)), tags, metrics, curve={})


def mirror_search(store: Store, path: Path, written: set[int], last: bool, place: str | None = None) -> None:
    """Mirror the search.json at `path` in MLflow.

    `place` is the name of the folder of a running search. A search with other settings, data or code has another folder
    and is another run of MLflow. Without `place`, the run is the one with equal trials.

    Trials whose numbers are in `written` are skipped. The numbers of all trials that have ended are added to `written`.
    `last` means that no further call follows. An unfinished search or trial then gets the status KILLED.
    """
    if not path.exists():
        return
    content = read_json(path)
    trials, name = content["trials"], content["name"]
    ended = [trial for trial in trials if trial["state"] in ENDED]
    finished = len(ended) >= content["search"]["trials"]
    best = [trial["value"] for trial in trials if content["best"] and trial["trial"] == content["best"]["trial"]]
    settings = {key: value for key, value in content["search"].items() if key != "trials"}
    parent = Entry(
        name,
        {"run": name, "key": digest([settings, content["data_sum"]])},
        "FINISHED" if finished else "KILLED" if last else "RUNNING",
        dict(leaves(settings)),
        {"place": place} if place else {},
        {"search/trials": float(len(ended)), **({"search/best": best[0]} if best else {})},
        curve={},
        reopens=bool(place),  # after an increase of `trials`
    )

    def same(run: "Run") -> bool:
        known = run.data.tags.get("place")
        return known == place if place and known else has_trials(store, run, ended)

    parent_id = store.write(parent, same)
    for trial in trials:
        # A trial without a dev loss could not be told from the trial of this number in an earlier search.
        if trial["trial"] not in written and (trial["dev_losses"] or trial["state"] in ENDED):
            store.write(trial_entry(name, parent_id, trial, last))
    written.update(trial["trial"] for trial in ended)


def has_trials(store: Store, run: "Run", ended: list[dict[str, Any]]) -> bool:
    """Return whether ended trials are nested in `run`, and none of them with a result other than in `ended`."""
    trials = {one.data.tags.get("trial"): one for one in store.nested(run.info.run_id)}
    nested = {number: one for number, one in trials.items() if one.data.tags.get("state") in ENDED}
    common = [(nested[str(trial["trial"])], trial) for trial in ended if str(trial["trial"]) in nested]
    return bool(common) and all(
        one.data.tags.get("state") == trial["state"] and one.data.metrics.get("trial/value") == trial["value"]
        for one, trial in common
    )


def trial_entry(name: str, parent: str, trial: Mapping[str, Any], last: bool) -> Entry:
    ended = trial["state"] in ENDED
    return Entry(
        f"{name}: trial {trial['trial']}",
        {"mlflow.parentRunId": parent, "run": name, "trial": str(trial["trial"])},
        "FINISHED" if ended else "KILLED" if last else "RUNNING",
        trial["settings"],
        {key: trial[key] for key in ("state", "why") if trial[key]},
        {} if trial["value"] is None else {"trial/value": trial["value"]},
        {("dev_loss", int(step)): loss for step, loss in trial["dev_losses"]},
    )


def read_curve(log: Path) -> Curve:
    """The points in the complete lines of training.jsonl. The last line may be half written."""
    curve: Curve = {}
    for line in log.read_bytes().split(b"\n")[:-1] if log.exists() else []:
        record = json.loads(line)
        step = record.pop("step")
        curve |= {(name, step): float(value) for name, value in record.items() if math.isfinite(value)}
    return curve


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested mappings, with dotted names. `_` replaces each character that MLflow does not allow."""
    if not isinstance(value, Mapping):
        yield re.sub(r"[^\w./ -]", "_", name), value
    else:
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}" if name else str(key))


def numbers(group: str, values: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers in `values`, named GROUP/NAME."""
    found = {name: value for name, value in leaves(values) if type(value) in (int, float)}
    return {f"{group}/{name}": float(value) for name, value in found.items() if math.isfinite(value)}


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in leaves(values) if isinstance(value, str)}


def moment(text: str | None) -> int | None:
    """An ISO 8601 time in milliseconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None
