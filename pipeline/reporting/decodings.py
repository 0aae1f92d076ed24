"""Tables of decodings. A decoding is one translation of a set by a model with a decoder."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from pipeline.reporting.decoder_facts import shown_settings
from pipeline.reporting.paper_tables import with_ends
from pipeline.reporting.results import Score
from pipeline.reporting.tables import Table
from pipeline.scoring.bleu import HEADLINE, PUBLISHED
from pipeline.scoring.intervals import holm

NO_RESULT = ("threads", "batch_tokens", "attention_sentences")  # settings that change no translation
SCORES = {"sacreBLEU": HEADLINE, "BLEU, published measure": PUBLISHED, "chrF": "chrf"}  # measures by label
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
    "of one set by one model. The log-probability is the mean of log p(translation | source) by the model. The source "
    "log-probability is the mean of log p(source | translation) by the run in `reverse_scores`. Search errors are the "
    "share of the sentences finished by exact search for which it found a more probable translation. Prefixes are the mean "
    "number of prefixes that the model scored for a sentence.",
]


def table(params: Mapping[str, Any], decodings: Mapping[str, Mapping]) -> Table:
    """A row for each decoding. `decodings` has the contents of their files in results/."""
    precisions = {each["decoding"]["settings"]["decoding"].get("precision") for each in decodings.values()}
    left_out = NO_RESULT if len(precisions) > 1 else (*NO_RESULT, "precision")
    corrected, rows = corrected_p(decodings), []
    for name, each in decodings.items():
        metrics, settings = each["score"]["set"]["metrics"], each["decoding"]["settings"]["decoding"]
        row: dict[str, Any] = {"decoding": name}
        for label, measure in SCORES.items():
            found = metrics.get(measure) or (next(iter(metrics.values())) if measure == HEADLINE else None)
            row |= with_ends(label, found and Score(*(found[key] for key in ("score", "low", "high"))))
        oracle = ", uses the references" if str(settings.get("objective", "")).startswith("oracle") else ""
        row |= {"model": each["model"], "set": each["set"], "decoder": settings.get("decoder", "beam") + oracle}
        row |= {"settings": shown_settings(params, settings, left_out), "p, Holm": corrected[name]}
        facts = each.get("facts", {})
        rows.append(row | {label: facts.get(key) for label, key in FACTS.items()})
    return Table("decoding", "Decodings", pd.DataFrame(rows, dtype=object), NOTES, PLACES, drawn=True)


def corrected_p(decodings: Mapping[str, Mapping]) -> dict[str, float | None]:
    """The p-values, after Holm's correction over the decodings of one set by one model."""
    found: dict[str, float | None] = {}
    for _, names in by_model_and_set(decodings):
        found |= dict(zip(names, holm([decodings[name].get("facts", {}).get("p") for name in names])))
    return found


def by_model_and_set(decodings: Mapping[str, Mapping]) -> Iterator[tuple[tuple[str, str], Sequence[str]]]:
    def key(name: str) -> tuple[str, str]:
        return decodings[name]["model"], decodings[name]["set"]

    for of, names in groupby(sorted(decodings, key=key), key):
        yield of, list(names)


def tables(params: Mapping[str, Any], decodings: Mapping[str, Mapping]) -> list[Table]:
    """The tables of the pages: one for each model and set, best decoding first, without empty columns."""
    found = []
    for (model, chosen), names in by_model_and_set(decodings):
        whole = table(params, {name: decodings[name] for name in names})
        frame = whole.frame.sort_values("sacreBLEU", ascending=False, kind="stable").drop(columns=["model", "set"])
        empty = [label for label in frame if frame[label].isin([None, ""]).all()]
        title, file = f"Decodings of {chosen} by {model}", f"decodings-{model.replace('/', '-')}-{chosen}"
        found.append(Table(file, title, frame.drop(columns=empty), NOTES, PLACES, drawn=True))
    return found
