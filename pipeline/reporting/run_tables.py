"""Tables of our own runs: results, all scores, means over seeds, and what the trainings cost and were made from."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.reporting.published import LOWER, LOWER_CASED, TOKENISED
from pipeline.reporting.results import Results
from pipeline.reporting.tables import Table, table
from pipeline.running.times import duration
from pipeline.scoring.bleu import PUBLISHED

TEST = ("test", "average")
TRANSLATIONS = {
    "dev, last": ("dev", "last"),
    "dev, average": ("dev", "average"),
    "test": TEST,
    "test, filtered": ("test_filtered", "average"),
}
MEASURES = {
    "bleu-13a": "sacreBLEU 13a",
    "bleu-13a-lc": "sacreBLEU 13a, lower-cased",
    "bleu-intl": "sacreBLEU intl",
    "bleu-intl-lc": "sacreBLEU intl, lower-cased",
    "bleu-published": "published measure",
    "bleu-raw-reference": "the same, raw reference",
    "bleu-normalised": "the same, normalised reference",
    "bleu-tokenised": "on spaces, lower-cased",
    "chrf": "chrF",
}
RESULTS = {  # columns of runs.csv; each has a measure, a set and weights
    "dev sacreBLEU, last": ("bleu-13a", "dev", "last"),
    "dev sacreBLEU, average": ("bleu-13a", "dev", "average"),
    "test sacreBLEU": ("bleu-13a", *TEST),
    "test BLEU, published measure": (PUBLISHED, *TEST),
    "test chrF": ("chrf", *TEST),
    "test BLEU of lower-cased text": (TOKENISED, *TEST),
}


def described(differences: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in differences.items())


def all_runs(results: Results) -> Table:
    """One row for each run, with the hashes of its data and settings, which identify the origin of its numbers."""
    runs = results.runs
    frame = runs[["corpus", "model"]].assign(differences=runs["differences"].map(described))
    frame["selected"] = runs["selected"].map({True: "yes", False: "no"})
    facts = ["parameters", "trained steps", "dev PPL, last", "dev PPL, average", "accuracy", "calibration error"]
    facts += ["FLOPs, counted", "data", "settings"]
    frame = frame.join(results.columns(RESULTS)).join(runs[facts]).rename(columns={"trained steps": "steps"})
    frame["sacreBLEU signature"] = results.at("bleu-13a", *TEST)["signature"].reindex(frame.index)
    note = "Selected runs are those of params.yaml; the others were recorded earlier in results/."
    return table("runs", "All runs", frame.reset_index(), [note])


def all_scores(results: Results) -> Table:
    """Every score with its signature, which is the same for all sets."""
    lower = {LOWER + name: f"{label}, of lower-cased text" for name, label in MEASURES.items()}
    signatures, parts = results.scores.groupby(["measure", "run"])["signature"].first(), []
    for name, label in {**MEASURES, **lower}.items():
        part = results.columns({head: (name, *where) for head, where in TRANSLATIONS.items()})
        part.insert(0, "measure", label)
        part["signature"] = [signatures.get((name, run)) for run in part.index]
        parts.append(part[(results.runs["corpus"] == LOWER_CASED) == (name in lower)])
    frame = pd.concat(parts).loc[results.runs.index]
    # The headline of a language without spaces has a tokeniser of its own.
    tokenisers = frame["signature"].astype(str).str.extract(r"tok:(zh|ja-mecab|ko-mecab|char|flores200)\b")[0].fillna("13a")
    frame["measure"] = [measure.replace(" 13a", f" {own}") for measure, own in zip(frame["measure"], tokenisers)]
    return table("scores", "All scores", frame.reset_index(), grouped=True)


def means(results: Results) -> Table:
    """Means over runs of `alike`."""
    rows, measures = [], {**MEASURES, TOKENISED: "lower-cased text, on spaces"}
    for same in results.alike(results.scored):
        if len(same) > 1:
            head = results.runs.loc[same[0], ["corpus", "model"]].to_dict() | {"runs": ", ".join(same), "seeds": len(same)}
            found = {label: results.over_seeds(same, name, *TEST) for name, label in measures.items()}
            rows.append(head | {label: mean and mean.score for label, mean in found.items()})
    note = "Means on the test set over runs that differ only in the seed, or in the seed and the precision."
    return table("seeds", "Means over seeds", pd.DataFrame(rows, dtype=object).dropna(axis=1, how="all"), [note])


def origins(results: Results) -> Table:
    """Where the numbers of each run come from, and what its training cost. Versions that are equal are left out."""
    signatures = results.at("bleu-13a", *TEST)["signature"]
    versions = [library for library in ("torch", "numpy") if results.runs[library].nunique() > 1]
    rows = [
        {
            "run": name,
            "corpus": run["corpus"],
            "model": ", ".join(filter(None, (run["model"], described(run["differences"])))),
            "steps": run["trained steps"],
            "training": run["seconds"] and duration(run["seconds"]),
            "tokens/s": run["tokens/s"],
            "hardware": run["hardware"],
            "GPUs": run["GPUs"],
            "precision": run["trained in"],
            "FLOPs, counted": run["FLOPs, counted"],
            "sustained TFLOPS": run["cost sustained_tflops"],
            "FLOPs, estimated": run["cost flops"] or run["cost reason"],
            "MFU (%)": run["cost mfu"] and 100 * run["cost mfu"],
            "HFU (%)": run["cost hfu"] and 100 * run["cost hfu"],
            "commit": run["commit"],
            **run[versions],
            "data": run["data"],
            "settings": run["settings"],
            "sacreBLEU signature": signatures.get(name),
        }
        for name, run in results.runs.iterrows()
    ]
    notes = [
        "The FLOPs are estimated by the paper's formula: time x GPUs x sustained TFLOPS of one GPU (footnote 5; "
        "params.yaml: hardware).",
        "MFU and HFU are the counted operations divided by the operations of the GPUs at their peak rate in the training "
        "time. HFU counts the masked half of the decoder's self-attention, MFU does not. A training on a CPU has neither, "
        "and no estimate.",
    ]
    places = {"MFU (%)": 1, "HFU (%)": 1, "tokens/s": 0}
    return table("origins", "Costs and origins of the runs", rows, notes, places=places, given=["sustained TFLOPS"])
