"""Facts about decodings besides their scores: log-probabilities, length, search errors, significance and others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.bleu import HEADLINE, measure, measures
from pipeline.scoring.intervals import resampled, within
from pipeline.scoring.of_sets import aligned
from pipeline.settings import score_files
from pipeline.settings.scoring import scoring
from pipeline.workflow.text import content

SAME = 1e-3  # log-probabilities closer than this count as equal, because rounding varies between computations
PAPERS = ("beam", "penalty", "alpha", "extra_length", "regulariser", "ends", "no_repeat_ngram")


@dataclass(frozen=True)
class Facts:
    """Facts about a decoding. None means that a fact is not known."""

    log_prob: float | None  # the mean log-probability of a translation by the model
    length_ratio: float | None  # tokens of the translations / tokens of the references, as sacreBLEU counts them
    empty: int | None  # empty translations
    unfinished: int | None  # sentences in which the search used up its budget
    calls: float | None  # prefixes that the model scored, per sentence
    search_errors: float | None  # of the sentences that exact search finished: the share with a more probable translation
    source_log_prob: float | None  # the mean log-probability of a source given its translation, by `reverse_scores`
    p: float | None  # two-sided, of the difference from `base`'s beam search; None also if all translations are equal


@dataclass(frozen=True)
class Made:
    """The content of a decoding's files. `sentences` has the columns `log_prob` and `finished`."""

    group: tuple[str, str]  # the model and the set
    settings: Mapping[str, Any]
    calls: int
    sentences: pd.DataFrame
    lines: list[str]

    @property
    def is_exact(self) -> bool:
        return self.settings.get("decoder") == "exact"


def facts(params: Mapping[str, Any], scores: Path, sets: Path) -> dict[str, Facts]:
    """The facts of the decodings of params.yaml whose files and sets exist, by name."""
    of_names = {name: of_folder(scores / "decodings" / name, sets) for name in params["decodings"]}
    made = {name: each for name, each in of_names.items() if each}
    found: dict[str, Facts] = {}
    reverse = source_log_probs(params, scores)
    for group in dict.fromkeys(each.group for each in made.values()):
        systems = {name: each for name, each in made.items() if each.group == group}
        found |= of_group(params, systems, EvaluationSet.open(sets / group[1]), reverse)
    return {name: found[name] for name in made}


def source_log_probs(params: Mapping[str, Any], scores: Path) -> dict[str, float]:
    """The mean log p(source | translation) of each decoding for which `reverse_scores` has been made."""
    paths = [scores / "reverse_scores" / f"{name}.json" for name in params["reverse_scores"]]
    known = [found for path in paths for found in ((content(path) or {}).get("decodings") or {}).items()]
    return {decoding: sum(values) / len(values) for decoding, values in known}


def of_folder(folder: Path, sets: Path) -> Made | None:
    """Read the files of a decoding. Returns None if one of them or the set is missing."""
    decoding, sentences = content(folder / "decoding.json"), content(folder / "sentences.json")
    translation, chosen = folder / "translation.txt", sets / str(score_files.within(decoding, "set"))
    if decoding is None or sentences is None or not translation.exists() or not chosen.exists():
        return None
    return Made(
        group=(decoding["model"], decoding["set"]),
        settings=decoding["settings"]["decoding"],
        calls=decoding["calls"],
        sentences=pd.DataFrame(sentences),
        lines=aligned(translation, EvaluationSet.open(chosen).path("raw", "target"))[0],
    )


def of_group(
    params: Mapping[str, Any], systems: Mapping[str, Made], chosen: EvaluationSet, reverse: Mapping[str, float]
) -> dict[str, Facts]:
    """The facts of decodings of one set by one model. `reverse` has the source log-probabilities that are known."""
    sources, references = chosen.lines("raw")
    exact = exact_log_probs(list(systems.values()), sources)
    metric = measure(chosen.languages[1], HEADLINE)
    statistics = {name: metric.statistics(each.lines, references) for name, each in systems.items()}
    p_values = significance(params, systems, statistics)
    found = {}
    for name, each in systems.items():
        ours, theirs = statistics[name].sum(axis=0)[:2]
        log_probs = each.sentences["log_prob"]
        errors = None if each.is_exact or exact.empty else (exact > log_probs[exact.index] + SAME).mean()
        found[name] = Facts(
            log_prob=rounded(log_probs.mean()),
            length_ratio=rounded(ours / theirs) if theirs else None,
            empty=each.lines.count(""),
            unfinished=int((~each.sentences["finished"]).sum()),
            calls=rounded(each.calls / len(each.lines)),
            search_errors=rounded(errors),
            source_log_prob=rounded(reverse.get(name)),
            p=rounded(p_values.get(name)),
        )
    return found


def rounded(value: float | None) -> float | None:
    """Round a fact to four decimals, as the log-probabilities in sentences.json are rounded."""
    return None if value is None else round(float(value), 4)


def exact_log_probs(systems: Sequence[Made], sources: Sequence[str]) -> pd.Series:
    """The log-probabilities of the sentences that an exact search finished, by line number. Empty sources are left out."""
    there = [place for place, source in enumerate(sources) if source]
    kept = [each.sentences.loc[there].query("finished")["log_prob"] for each in systems if each.is_exact]
    return pd.concat(kept).groupby(level=0).last() if kept else pd.Series(dtype=float)


def significance(
    params: Mapping[str, Any], systems: Mapping[str, Made], statistics: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """The p-values of the other systems against the beam search of `base`. They have one model, so the seed is the same."""
    base, settings = next((name for name, each in systems.items() if is_base(params, each.settings)), None), scoring(params)
    if base is None or not settings.bootstrap or len(systems) == 1:
        return {}
    scores = {name: resampled(measures("")[HEADLINE], rows, settings) for name, rows in statistics.items()}
    others = [name for name in systems if not np.array_equal(scores[name], scores[base])]
    return {name: within(scores[name], scores[base]).p for name in others}


def is_base(params: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether these are the settings of `base`: beam search with the paper's values."""
    base = {"regulariser": 0.0, "ends": "beam", "no_repeat_ngram": 0, **params["base"]["decoding"]}
    of_earlier = {"ends": "beam"} | dict(settings)  # a decoding that was made before this setting existed
    return settings.get("decoder") == "beam" and all(of_earlier.get(key) == base[key] for key in PAPERS)


def shown_settings(params: Mapping[str, Any], settings: Mapping[str, Any], left_out: Sequence[str]) -> str:
    """The settings that differ from those of `base`, as text: `beam 8, alpha 1.0`."""
    own = score_files.within(params, "base", "decoders", settings.get("decoder", "beam")) or {}
    base, parts = {**params["base"]["decoding"], **own}, []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            more = shown_settings(params, {k: v for k, v in value.items() if k != "number"}, left_out)
            parts.append(f"{key} {value['number']} {value['decoder']}" + (f" ({more})" if more else ""))
        elif key not in (*left_out, "decoder") and value != base.get(key):
            parts.append(f"{key} {value}")
    return ", ".join(parts)
