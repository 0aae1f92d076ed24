"""Facts about decodings besides their scores: log-probabilities, length, search errors, significance and others."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.bleu import HEADLINE, measure, measures, resampled
from pipeline.scoring.intervals import within
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import scoring
from transformer.files import read_json

SAME = 1e-3  # log-probabilities closer than this count as equal, because rounding varies between computations
PAPERS = ("beam", "penalty", "alpha", "extra_length", "regulariser", "ends", "no_repeat_ngram")
Facts = dict[str, Any]
"""Facts about a decoding, as results/ keeps them. None means that a fact is not known.

`log_prob`          the mean log-probability of a translation by the model
`length_ratio`      tokens of the translations / tokens of the references, as sacreBLEU counts them
`empty`             empty translations
`unfinished`        sentences in which the search used up its budget
`calls`             prefixes that the model scored, per sentence
`search_errors`     of the sentences that exact search finished: the share with a more probable translation
`source_log_prob`   the mean log-probability of a source given its translation, by `reverse_scores`
`p`                 two-sided, of the difference from `base`'s beam search; None also if all translations are equal
"""


class Made(NamedTuple):
    """The content of a decoding's files. `sentences` has the columns `log_prob` and `finished`."""

    group: tuple[str, str]  # the model and the set
    settings: Mapping[str, Any]
    calls: int
    sentences: pd.DataFrame
    lines: list[str]


def facts(params: Mapping[str, Any], scores: Path, sets: Path) -> dict[str, Facts]:
    """The facts of the decodings of params.yaml, by name."""
    made = {name: of_folder(scores / "decodings" / name, sets) for name in params["decodings"]}
    files = [read_json(scores / "reverse_scores" / f"{name}.json") for name in params["reverse_scores"]]
    reverse = {name: fmean(values) for file in files for name, values in file["decodings"].items()}
    found = dict[str, Facts]()
    for group in dict.fromkeys(each.group for each in made.values()):
        systems = {name: each for name, each in made.items() if each.group == group}
        found |= of_group(params, systems, EvaluationSet.open(sets / group[1]), reverse)
    return {name: found[name] for name in made}


def of_folder(folder: Path, sets: Path) -> Made:
    decoding, sentences = read_json(folder / "decoding.json"), pd.DataFrame(read_json(folder / "sentences.json"))
    group, settings = (decoding["model"], decoding["set"]), decoding["settings"]["decoding"]
    reference = EvaluationSet.open(sets / decoding["set"]).path("raw", "target")
    return Made(group, settings, decoding["calls"], sentences, aligned(folder / "translation.txt", reference)[0])


def of_group(
    params: Mapping[str, Any], systems: Mapping[str, Made], chosen: EvaluationSet, reverse: Mapping[str, float]
) -> dict[str, Facts]:
    """The facts of decodings of one set by one model. `reverse` has the source log-probabilities that are known."""
    sources, references = chosen.lines("raw")
    finished = [
        each.sentences[list(map(bool, sources))].query("finished")["log_prob"]
        for each in systems.values()
        if each.settings.get("decoder") == "exact"
    ]
    exact = pd.concat(finished).groupby(level=0).last() if finished else pd.Series(dtype=float)  # by line number
    metric = measure(chosen.languages[1], HEADLINE)
    statistics = {name: metric.statistics(each.lines, references) for name, each in systems.items()}
    p_values = significance(params, systems, statistics)
    found = {}
    for name, each in systems.items():
        ours, theirs = statistics[name].sum(axis=0)[:2]
        log_probs, is_exact = each.sentences["log_prob"], each.settings.get("decoder") == "exact"
        found[name] = {
            "log_prob": rounded(log_probs.mean()),
            "length_ratio": rounded(ours / theirs) if theirs else None,
            "empty": each.lines.count(""),
            "unfinished": int((~each.sentences["finished"]).sum()),
            "calls": rounded(each.calls / len(each.lines)),
            "search_errors": None if is_exact or exact.empty else rounded((exact > log_probs[exact.index] + SAME).mean()),
            "source_log_prob": rounded(reverse.get(name)),
            "p": rounded(p_values.get(name)),
        }
    return found


def rounded(value: float | None) -> float | None:
    """Round a fact to four decimals, as the log-probabilities in sentences.json are rounded."""
    return None if value is None else round(float(value), 4)


def significance(
    params: Mapping[str, Any], systems: Mapping[str, Made], statistics: Mapping[str, np.ndarray]
) -> dict[str, float | None]:
    """The p-values of the other systems against the beam search of `base`. They have one model, so the seed is the same."""
    base, settings = next((name for name, each in systems.items() if is_base(params, each.settings)), None), scoring(params)
    if base is None or not settings.bootstrap or len(systems) == 1:
        return {}
    scores = {name: resampled(measures("")[HEADLINE], rows, settings) for name, rows in statistics.items()}
    others = [name for name in systems if not np.array_equal(scores[name], scores[base])]
    return {name: within(scores[name], scores[base]).p for name in others}


def is_base(params: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether these are the settings of `base`: beam search with the paper's values."""
    base = {"decoder": "beam", **params["base"]["decoders"]["beam"], **params["base"]["decoding"]}
    return all(settings.get(key) == base[key] for key in ("decoder", *PAPERS))
