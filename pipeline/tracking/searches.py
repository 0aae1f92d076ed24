"""A search for settings as runs of MLflow: one run per search, with its trials nested under it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.tracking.store import Entry, Store
from pipeline.tracking.trainings import leaves
from transformer.files import digest, read_json

ENDED = ("complete", "pruned")


def mirror_search(store: Store, path: Path, written: set[int], last: bool) -> None:
    """Mirror the search.json at `path` in MLflow.

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
        {},
        {"search/trials": float(len(ended)), **({"search/best": best[0]} if best else {})},
        curve={},
    )
    parent_id = store.write(parent)
    for trial in trials:
        if trial["trial"] not in written:
            store.write(trial_entry(name, parent_id, trial, last))
    written.update(trial["trial"] for trial in ended)


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
