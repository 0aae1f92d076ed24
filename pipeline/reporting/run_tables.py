"""Tables of our own runs: results, all scores, the BLEU matrix, means over seeds, and what trainings cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pipeline.reporting.published import SUSTAINED_TFLOPS, TABLE2, TRAININGS, utilisation
from pipeline.reporting.results import Results
from pipeline.reporting.seeds import alike, over_seeds
from pipeline.reporting.tables import Table
from pipeline.scoring.bleu import PUBLISHED
from pipeline.workflow.times import duration

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
}
COMPONENTS = {
    "encoder_self_attention_projections": "encoder projections",
    "encoder_self_attention": "encoder attention",
    "encoder_feed_forward": "encoder feed-forward",
    "decoder_self_attention_projections": "decoder projections",
    "decoder_self_attention": "decoder attention",
    "cross_attention_projections": "cross projections",
    "cross_attention": "cross attention",
    "decoder_feed_forward": "decoder feed-forward",
    "softmax_projection": "softmax projection",
}


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the names of its runs as its first column."""
    return frame.rename_axis("run").reset_index()


def described(differences: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in differences.items())


def all_runs(results: Results) -> Table:
    """One row for each run, with the hashes of its data and settings, which identify the origin of its numbers."""
    runs = results.runs
    frame = runs[["corpus", "model"]].assign(differences=runs["differences"].map(described))
    frame["selected"] = runs["selected"].map({True: "yes", False: "no"})
    facts = ["parameters", "trained steps", "dev PPL, last", "dev PPL, average", "FLOPs, counted", "data", "settings"]
    frame = frame.join(results.columns(RESULTS)).join(runs[facts]).rename(columns={"trained steps": "steps"})
    frame["sacreBLEU signature"] = results.at("bleu-13a", *TEST)["signature"].reindex(frame.index)
    note = "Selected runs are those of params.yaml; the others were recorded earlier in results/."
    return Table("runs", "All runs", named(frame), [note])


def all_scores(results: Results) -> Table:
    """Every score with its signature, which is the same for all sets."""
    parts = []
    for place, (measure, label) in enumerate(MEASURES.items()):
        part = results.columns({head: (measure, *where) for head, where in TRANSLATIONS.items()})
        part.insert(0, "measure", label)
        signatures = results.scores[results.scores["measure"] == measure].groupby("run")["signature"].first()
        part["signature"] = signatures.reindex(part.index)
        parts.append(part.assign(order=range(len(part)), place=place))
    frame = pd.concat(parts).sort_values(["order", "place"]).drop(columns=["order", "place"])
    return Table("scores", "All scores", named(frame), grouped=True)


def bleu_matrix(results: Results) -> Table:
    """Every measure of each run on the test set, and on the filtered part of the test set if there is one."""
    parts = []
    for label in ("test", "test, filtered"):
        part = results.columns({name: (measure, *TRANSLATIONS[label]) for measure, name in MEASURES.items()})
        parts.append(part.assign(set=label) if label == "test" else part.assign(set=label).dropna(thresh=2))
    frame = pd.concat(parts).loc[results.runs.index]
    frame = frame if frame["set"].nunique() > 1 else frame.drop(columns="set")
    note = "The same translations, scored by each measure; 95% intervals by bootstrap."
    return Table("bleu-matrix", "BLEU matrix", named(frame), [note])


def means(results: Results) -> Table | None:
    """Means over runs of `alike`, or None if there are no such runs."""
    rows = []
    for same in alike(results.runs, results.scored):
        if len(same) > 1:
            found = {MEASURES[name]: over_seeds(results, same, name, *TEST) for name in MEASURES if name != "chrf"}
            row = results.runs.loc[same[0]]
            head = {"corpus": row["corpus"], "model": row["model"], "runs": ", ".join(same), "seeds": len(same)}
            rows.append(head | {label: mean and mean.score for label, mean in found.items()})
    note = "Means of BLEU on the test set over runs that differ only in the seed, or in the seed and the precision."
    return Table("seeds", "Means over seeds", pd.DataFrame(rows, dtype=object), [note]) if rows else None


def operations(results: Results) -> Table:
    """The counted operations of each training, in total and by component."""
    frame = results.runs[["FLOPs, counted", "causal half"]].rename(columns={"FLOPs, counted": "total"})
    for key, label in COMPONENTS.items():
        frame[label] = [counted.get(key) if counted else None for counted in results.runs["components"]]
    note = (
        "The counts are of the whole training: all matrix products on tokens without padding, forward and backward, as "
        "torch.utils.flop_counter counts them. The total includes the masked half of the decoder's self-attention; the "
        "next column leaves it out."
    )
    return Table("operations", "FLOPs, counted", named(frame), [note])


def costs(results: Results) -> Table:
    """The time, the hardware and the estimated operations of the paper's two trainings, then of ours."""
    rows = [published_cost(model) for model in TRAININGS] + [own_cost(name, run) for name, run in results.runs.iterrows()]
    notes = [
        "The FLOPs are estimated by the paper's formula: time x GPUs x sustained TFLOPS of one GPU (footnote 5; "
        "params.yaml: hardware). The MFU of the paper's trainings is that of this rate.",
        "MFU and HFU are the counted operations divided by the operations of the GPUs at their peak rate in the training "
        "time. HFU counts the masked half of the decoder's self-attention, MFU does not. A training on a CPU has neither, "
        "and no estimate. The energy is what the GPU reports.",
    ]
    places = {"MFU (%)": 1, "HFU (%)": 1, "energy (kWh)": 3}
    frame = pd.DataFrame(rows, dtype=object)
    return Table("flops", "What the trainings cost", frame, notes, places, given=["sustained TFLOPS"])


def published_cost(model: str) -> dict[str, Any]:
    training = TRAININGS[model]
    (row,) = [row for row in TABLE2 if row.model == model]
    head = {"run": f"{row.name}, the paper's", "hardware": training.hardware, "precision": "float32"}
    rate = SUSTAINED_TFLOPS[training.hardware]
    tail = {"sustained TFLOPS": rate, "FLOPs, estimated": row.flops_en_de, "MFU (%)": 100 * utilisation(training)}
    return head | {"GPUs": training.gpus, "training": duration(training.seconds), **tail}


def own_cost(name: str, run: pd.Series) -> dict[str, Any]:
    percent = {f"{key.upper()} (%)": run[f"cost {key}"] and 100 * run[f"cost {key}"] for key in ("mfu", "hfu")}
    joules, seconds = run["cost energy_joules"], run["seconds"]
    return {
        "run": name,
        "hardware": run["hardware"],
        "precision": run["trained in"],
        "GPUs": run["GPUs"],
        "training": duration(seconds) if seconds else None,
        "sustained TFLOPS": run["cost sustained_tflops"],
        "FLOPs, estimated": run["cost flops"],
        **percent,
        "energy (kWh)": joules and joules / 3.6e6,
    }


def scored_tables(results: Results) -> Sequence[Table]:
    """The tables of measures and costs."""
    return [bleu_matrix(results), costs(results), operations(results)]
