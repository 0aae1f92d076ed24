"""Tables of our own runs and decodings: results, all scores, means over seeds, and costs and origins of trainings.

A decoding is one translation of a set by a model with a decoder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pipeline.reporting.published import LOWER, LOWER_CASED, TOKENISED
from pipeline.reporting.results import LAST, TEST, TEST_FILTERED, Results, named_measures
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.running.times import duration
from pipeline.scoring.bleu import HEADLINE, PUBLISHED
from pipeline.scoring.costs import COSTS
from pipeline.scoring.intervals import Score, holm
from pipeline.settings.score_files import within

TRANSLATIONS = {"dev, last": LAST, "dev, average": ("dev", "average"), "test": TEST, "test, filtered": TEST_FILTERED}
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
    "dev sacreBLEU, last": ("bleu-13a", *LAST),
    "dev sacreBLEU, average": ("bleu-13a", "dev", "average"),
    "test sacreBLEU": ("bleu-13a", *TEST),
    "test BLEU, published measure": (PUBLISHED, *TEST),
    "test chrF": ("chrf", *TEST),
    "test BLEU of lower-cased text": (TOKENISED, *TEST),
}


def differences_of(run: Mapping[str, Any]) -> str:
    differences, model = (f"{key} {value}" for key, value in run["differences"].items()), run["begins with"]
    return ", ".join(differences) + f"; begins with {model}" * isinstance(model, str)


def all_runs(results: Results) -> Table:
    """One row for each run, with the hashes of its data and settings, which identify the origin of its numbers."""
    runs = results.runs
    frame = runs[["corpus", "model"]].assign(differences=[differences_of(run) for _, run in runs.iterrows()])
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
            "model": ", ".join(filter(None, (run["model"], differences_of(run)))),
            "steps": run["trained steps"],
            "training": run["seconds"] and duration(run["seconds"]),
            **run[["tokens/s", "hardware", "GPUs"]],
            "precision": run["trained in"],
            **run[["FLOPs, counted", *COSTS, "commit", *versions, "data", "settings"]],
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


LOWER_BLEU = "BLEU of lower-cased text"
NO_RESULT = ("threads", "batch_tokens", "attention_sentences", "arithmetic")  # settings that change at most rounding
# The measures and the facts of a decoding, by label
DECODING_SCORES = {"sacreBLEU": HEADLINE, "BLEU, published measure": PUBLISHED, "chrF": "chrf", LOWER_BLEU: TOKENISED}
DECODING_FACTS = {
    "log-probability": "log_prob",
    "source log-probability": "source_log_prob",
    "length ratio": "length_ratio",
    "empty": "empty",
    "search errors": "search_errors",
    "unfinished": "unfinished",
    "prefixes": "calls",
}
DECODING_NOTES = [
    "A decoding is one line of `decodings` in params.yaml, with the settings that differ from `base`; 95% intervals by "
    "bootstrap.",
    "p tests the difference in sacreBLEU from the beam search of `base` by the same model on the same set: two-sided, by "
    "bootstrap over the sentences (the training is one, so no seed varies), corrected by Holm's method over the decodings "
    "of one set by one model. Decodings before 28 November 2026 were tested by another bootstrap, of 1,000 resamples, "
    "whose p is at least 0.002 before the correction. The log-probability is the mean of log p(translation | source) by "
    "the model. The source log-probability is the mean of log p(source | translation) by the run in `reverse_scores`. "
    "Search errors are the share of the sentences finished by exact search for which it found a more probable translation. "
    "Prefixes are the mean number of prefixes that the model scored for a sentence.",
]


def decodings_table(params: Mapping[str, Any], decodings: Mapping[str, Mapping]) -> Table | None:
    """A row for each decoding. `decodings` has the contents of their files in results/. None without decodings."""
    if not decodings:
        return None
    precisions = {each["decoding"]["settings"]["decoding"].get("precision") for each in decodings.values()}
    left_out = NO_RESULT if len(precisions) > 1 else (*NO_RESULT, "precision")
    rows = list[dict[str, Any]]()
    for name, each in decodings.items():
        settings, facts = each["decoding"]["settings"]["decoding"], each.get("facts", {})
        oracle = ", uses the references" if str(settings.get("objective", "")).startswith("oracle") else ""
        measures = named_measures(each["score"]["set"]["metrics"], each["set"].startswith(LOWER_CASED))
        row: dict[str, Any] = {"decoding": name}
        for label, measure in DECODING_SCORES.items():
            cell = measures.get(measure)
            row |= with_ends(label, cell and Score(*(cell[key] for key in ("score", "low", "high"))))
        row |= {"model": each["model"], "set": each["set"], "decoder": settings.get("decoder", "beam") + oracle}
        row |= {"settings": shown_settings(params, settings, left_out), "p, Holm": facts.get("p")}
        rows.append(row | {label: facts.get(key) for label, key in DECODING_FACTS.items()})
    frame = pd.DataFrame(rows, dtype=object)
    for _, group in frame.groupby(["model", "set"]):
        frame.loc[group.index, "p, Holm"] = pd.Series(holm(list(group["p, Holm"])), group.index, dtype=object)
    places = {"p, Holm": 4, "length ratio": 3, "search errors": 3, "prefixes": 1}
    return table("decoding", "Decodings", frame, DECODING_NOTES, places=places)


def decodings_tables(params: Mapping[str, Any], decodings: Mapping[str, Mapping], selected: bool) -> Iterator[Table]:
    """The tables of a page: one for each model and set, best decoding first, without empty columns.

    They show the decodings of params.yaml, or the others. Their p is corrected over both, as in `decodings_table`.
    """
    if not (whole := decodings_table(params, decodings)):
        return
    shown = whole.frame[whole.frame["decoding"].isin(list(params["decodings"])) == selected]
    for (model, chosen), frame in shown.groupby(["model", "set"]):
        best = LOWER_BLEU if chosen.startswith(LOWER_CASED) else "sacreBLEU"
        frame = frame.sort_values(best, ascending=False, kind="stable").drop(columns=["model", "set"])
        empty = [label for label in frame if frame[label].isin([None, ""]).all()]
        title, file = f"Decodings of {chosen} by {model}", f"decodings-{model.replace('/', '-')}-{chosen}"
        yield replace(whole, name=file, title=title, frame=frame.drop(columns=empty))


def shown_settings(params: Mapping[str, Any], settings: Mapping[str, Any], left_out: Sequence[str]) -> str:
    """The settings that differ from those of `base`, as text: `beam 8, alpha 1.0`."""
    own = within(params, "base", "decoders", settings.get("decoder", "beam")) or {}
    base, parts = {**params["base"]["decoding"], **own}, []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            more = shown_settings(params, {k: v for k, v in value.items() if k != "number"}, left_out)
            parts.append(f"{key} {value['number']} {value['decoder']}" + (f" ({more})" if more else ""))
        elif key not in (*left_out, "decoder") and value != base.get(key):
            parts.append(f"{key} {value}")
    return ", ".join(parts)
