"""Tables of decodings. A decoding is one translation of a set by a model with a decoder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pipeline.reporting.published import LOWER_CASED, TOKENISED
from pipeline.reporting.results import named_measures
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.bleu import HEADLINE, PUBLISHED
from pipeline.scoring.intervals import Score, holm
from pipeline.settings.score_files import within

NO_RESULT = ("threads", "batch_tokens", "attention_sentences", "arithmetic")  # settings that change at most rounding
LOWER = "BLEU of lower-cased text"
SCORES = {"sacreBLEU": HEADLINE, "BLEU, published measure": PUBLISHED, "chrF": "chrf", LOWER: TOKENISED}  # by label
FACTS = {
    "log-probability": "log_prob",
    "source log-probability": "source_log_prob",
    "length ratio": "length_ratio",
    "empty": "empty",
    "search errors": "search_errors",
    "unfinished": "unfinished",
    "prefixes": "calls",
}
PLACES = {"p, Holm": 4, "length ratio": 3, "search errors": 3, "prefixes": 1}
NOTES = [
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


def decodings_table(params: Mapping[str, Any], decodings: Mapping[str, Mapping]) -> Table:
    """A row for each decoding. `decodings` has the contents of their files in results/."""
    precisions = {each["decoding"]["settings"]["decoding"].get("precision") for each in decodings.values()}
    left_out = NO_RESULT if len(precisions) > 1 else (*NO_RESULT, "precision")
    rows = list[dict[str, Any]]()
    for name, each in decodings.items():
        settings, facts = each["decoding"]["settings"]["decoding"], each.get("facts", {})
        oracle = ", uses the references" if str(settings.get("objective", "")).startswith("oracle") else ""
        measures = named_measures(each["score"]["set"]["metrics"], each["set"].startswith(LOWER_CASED))
        row: dict[str, Any] = {"decoding": name}
        for label, measure in SCORES.items():
            cell = measures.get(measure)
            row |= with_ends(label, cell and Score(*(cell[key] for key in ("score", "low", "high"))))
        row |= {"model": each["model"], "set": each["set"], "decoder": settings.get("decoder", "beam") + oracle}
        row |= {"settings": shown_settings(params, settings, left_out), "p, Holm": facts.get("p")}
        rows.append(row | {label: facts.get(key) for label, key in FACTS.items()})
    frame = pd.DataFrame(rows, dtype=object)
    for _, group in frame.groupby(["model", "set"]):
        frame.loc[group.index, "p, Holm"] = pd.Series(holm(list(group["p, Holm"])), group.index, dtype=object)
    return table("decoding", "Decodings", frame, NOTES, places=PLACES)


def decodings_tables(params: Mapping[str, Any], decodings: Mapping[str, Mapping]) -> Iterator[Table]:
    """The tables of the pages: one for each model and set, best decoding first, without empty columns."""
    if not decodings:
        return
    whole = decodings_table(params, decodings)
    for (model, chosen), frame in whole.frame.groupby(["model", "set"]):
        best = LOWER if chosen.startswith(LOWER_CASED) else "sacreBLEU"
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
