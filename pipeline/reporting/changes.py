"""Changes of one setting: the differences between trainings, beside those of Table 3's rows from the paper's base model.

A study names in studies.yaml the row of Table 3 for which a run stands. The seeds of a run are compared with the seeds of
the study's first run, or of the run that the study names for it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd

from pipeline.reporting.paper_tables import EN_DE, LAST, on, stated
from pipeline.reporting.published import BASE, SETTINGS, TABLE3, Table3Row
from pipeline.reporting.results import Results, Score
from pipeline.reporting.seeds import alike, over_seeds
from pipeline.reporting.studies import Study
from pipeline.scoring.bleu import PUBLISHED, measures
from pipeline.scoring.intervals import SEEDS, Spread, between, resampled, spread
from pipeline.scoring.statistics import MEASURES
from pipeline.settings.scoring import ScoringConfig

FAILED = 10.0  # BLEU; a run further below its base has failed: it has not learnt to translate
ROWS = {row.key: row for row in TABLE3 if row.group in tuple("ABCDE")}


@dataclass(frozen=True)
class Change:
    """The differences of some seeds from those with which they are compared, by their means.

    `row` is the row of Table 3, if the study names one. `bleu` is in points of the paper's BLEU, with its 95% interval
    where it is known, and `p` its p-value before a correction. `perplexity` is in per cent of the base's.
    """

    runs: Sequence[str]
    bases: Sequence[str]
    row: Table3Row | None
    new: Mapping[str, Any]
    old: Mapping[str, Any]
    bleu: Score
    perplexity: float | None
    failed: bool
    p: float | None = None

    @property
    def seeds(self) -> int:
        """The number of seeds of the side with fewer."""
        return min(len(self.runs), len(self.bases))

    @property
    def text(self) -> str:
        """The change, for example `h 8 → 1`. In a row of Table 3, the first setting stands for the others."""
        seeds = f", {len(self.runs)} seeds" if len(self.runs) > 1 else ""
        return described(self.new, self.old, first=self.row is not None) + seeds

    @property
    def same_ratio(self) -> bool:
        """Whether the setting changes by the ratio of the paper's row, or to the same value if that is no number."""
        if self.row is None:
            return False
        key = differing(self.new, self.old)[0]
        values = [self.new[key], self.old[key], self.row.settings[key], BASE[key]]
        if all(isinstance(value, int | float) and value for value in values):
            return math.isclose(values[0] / values[1], values[2] / values[3])
        return bool(values[0] == values[2])


@dataclass(frozen=True)
class Comparison:
    """The changes of one study, those of Table 3 first and in its order, by one measure of MEASURES.

    `spread` is that of all seeds, or None if no difference has an interval.
    """

    study: Study
    measure: str
    changes: Sequence[Change]
    spread: Spread | None

    def sample(self) -> str:
        """A text that names the number of seeds and the base."""
        base = self.study.seeds(self.study.runs[0])
        seeds = over_seeds(self.study.results, base, self.measure, *LAST) or base[0]
        return f"one seed per change unless stated; base: {seeds}"


def comparison(studies: Sequence[Study], settings: ScoringConfig) -> Comparison | None:
    """The changes of the study on the paper's corpus, or of that with most rows of Table 3. None if no study has one."""
    found = [(study, changes_of(study)) for study in studies if study.rows]
    if not (found := [(study, changes) for study, changes in found if changes]):
        return None

    def rank(of: tuple[Study, list[Change]]) -> tuple[bool, bool, int]:
        corpus = of[0].results.runs["corpus"].iloc[0]
        return on(corpus, EN_DE), len(of[1][0].bases) > 1, len({change.row.key for change in of[1] if change.row})

    study, changes = max(found, key=rank)
    order = list(ROWS)
    changes.sort(key=lambda change: order.index(change.row.key) if change.row else len(order))
    measure = measure_of(study.results)
    if not settings.bootstrap:
        return Comparison(study, measure, changes, None)
    spread, changes = tested(study.results, measure, changes, settings)
    return Comparison(study, measure, changes, spread)


def measure_of(results: Results) -> str:
    """The first of MEASURES that all scored runs have."""
    known = {name: set(results.at(name, *LAST).index) for name in MEASURES}
    return next((name for name in MEASURES if set(results.scored) <= known[name]), PUBLISHED)


def changes_of(study: Study) -> list[Change]:
    """The changes of a study whose runs on both sides have the BLEU of Table 3, without intervals."""
    results, found = study.results, []
    known = results.at(measure_of(results), *LAST)["score"]
    base, settings = study.seeds(study.runs[0]), {name: stated(run) for name, run in results.runs.iterrows()}
    for runs in alike(results.runs):
        bases = study.seeds(study.against[runs[0]]) if study.against.get(runs[0]) in study.runs else base
        if runs == bases or not {*runs, *bases} <= set(known.index):
            continue
        losses = [results.runs.loc[part, "dev PPL, last"] for part in (runs, bases)]
        found.append(
            Change(
                runs=runs,
                bases=bases,
                row=ROWS.get(study.rows.get(runs[0], "")),
                new=settings[runs[0]],
                old=settings[bases[0]],
                bleu=Score(mean(known[runs]) - mean(known[bases])),
                perplexity=None if any(map(any, map(pd.isna, losses))) else 100 * (mean(losses[0]) / mean(losses[1]) - 1),
                failed=min(known[runs]) < mean(known[bases]) - FAILED,
            )
        )
    return found


def tested(
    results: Results, measure: str, changes: Sequence[Change], settings: ScoringConfig
) -> tuple[Spread | None, list[Change]]:
    """The spread of the seeds, and the changes with intervals and p-values where both sides have SEEDS seeds.

    The spread is pooled over all seeds on one dev set, without those of a change that has failed.
    """
    sides = [run for change in changes for run in (*change.bases, *change.runs)]
    known = {run: of[measure] for run in sides if measure in (of := results.statistics.get(run, {}))}
    references = [counts[:, 1] for counts in known.values()][:1]  # their lengths, which are equal on the same set
    same = {run: counts for run, counts in known.items() if np.array_equal([counts[:, 1]], references)}
    scores = {run: resampled(measures("")[measure], counts, settings) for run, counts in same.items()}
    groups = [*(change.bases for change in changes), *(change.runs for change in changes if not change.failed)]
    complete = {
        group: np.array([scores[run] for run in group])
        for group in dict.fromkeys(map(tuple, groups))
        if scores.keys() >= set(group)
    }
    if not any(len(group) > 1 for group in complete):
        return None, list(changes)
    pooled, found = spread(list(complete.values())), []
    for change in changes:
        if change.seeds >= SEEDS and scores.keys() >= {*change.runs, *change.bases}:
            ours, others = (np.array([scores[run] for run in side]) for side in (change.runs, change.bases))
            result = between(ours, others, pooled)
            change = replace(change, bleu=Score(result.score, result.low, result.high), p=result.p)
        found.append(change)
    return pooled, found


def differing(settings: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """The settings that differ: first those of Table 3's columns, in their order, then the others."""
    order = [*SETTINGS.values(), *(key for key in settings if key not in SETTINGS.values())]
    return [key for key in order if settings[key] != base[key]]


def described(settings: Mapping[str, Any], base: Mapping[str, Any], first: bool = True) -> str:
    labels = {key: label for label, key in SETTINGS.items()}
    keys = differing(settings, base)[: 1 if first else None]
    changes = ", ".join(f"{labels.get(key, key)} {base[key]} → {settings[key]}" for key in keys)
    return changes.replace("sinusoidal → ", "")


def published_difference(row: Table3Row) -> tuple[float, float]:
    """The difference of a row from the paper's base model: in BLEU, and in per cent of the perplexity."""
    return row.bleu - TABLE3[0].bleu, 100 * (row.perplexity / TABLE3[0].perplexity - 1)


def note(compared: Comparison) -> str:
    intervals, pooled = "", compared.spread
    if pooled and any(change.p is not None for change in compared.changes):
        intervals = (
            " The 95% intervals contain the variance between seeds and that between sentences: t distribution, pooled "
            f"standard deviation of a seed {math.sqrt(pooled.seeds):.2f} BLEU, {pooled.freedom} degrees of freedom; paired "
            f"bootstrap. A change with fewer than {SEEDS} seeds has no interval."
        )
    return (
        f"Differences from the base model on dev, last checkpoint: {MEASURES[compared.measure]}; perplexity in per cent of "
        f"the base model's. Ours: {compared.sample()}.{intervals}"
    )
