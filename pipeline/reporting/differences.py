"""Differences between trainings in the BLEU of Table 3, with intervals that contain the seeds and the sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.evidence import Evidence
from pipeline.scoring.bleu import PUBLISHED, measures
from pipeline.scoring.intervals import SEEDS, Difference, Spread, between, resampled, spread
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

SET, WEIGHTS = "dev", "last"  # those of Table 3
# The measures of Table 3's differences by preference. Trainings that were recorded before a measure existed lack it, so
# records have the statistics of each: a comparison with an old record uses what both have.
MEASURES = {
    PUBLISHED: "BLEU as the paper computes it",
    "bleu-raw-reference": "BLEU as the paper computes it, but with the typographic quotes of the reference",
}


def measure_of(runs: Sequence[Evidence]) -> str:
    """The first of MEASURES that all scored runs have."""
    scored = [run for run in runs if run.scores]
    return next((name for name in MEASURES if all(run.measure(name, SET, WEIGHTS) for run in scored)), PUBLISHED)


def statistics(measure: str, translation: Path, chosen: EvaluationSet) -> np.ndarray:
    """The statistics of each sentence from which BLEU is computed, [sentences, statistics] whole numbers.

    They are the lengths of hypothesis and reference, the number of matching n-grams of each order, and the number of all
    n-grams of each order.
    """
    hypotheses, references = aligned(translation, chosen.path("raw", "target"))
    return measures(chosen.languages[1])[measure].statistics(hypotheses, references)


def recorded(translation: Path, chosen: EvaluationSet) -> dict[str, list[str]]:
    """The `statistics` of each measure as a record holds them: a string per statistic, with its value for each sentence."""
    columns = {name: statistics(name, translation, chosen).T for name in MEASURES}
    return {name: [" ".join(f"{number:.0f}" for number in column) for column in each] for name, each in columns.items()}


@dataclass(frozen=True)
class Resampled:
    """The scores of trainings on resamples of a set, [K, 1 + R]. `references` are the lengths, which identify the set."""

    references: bytes
    scores: np.ndarray


class Bootstrap:
    """Scores trainings on resamples of the dev set. `sets` has the dev sets of runs that are not recorded."""

    def __init__(self, sets: Path, settings: ScoringConfig) -> None:
        self.sets, self.settings = sets, settings
        self.known: dict[tuple[str, str], Resampled | None] = {}  # by measure and the name of the run

    def scores(self, measure: str, runs: Sequence[Evidence]) -> Resampled | None:
        """The scores of the seeds of a training, or None without resamples or statistics, or if the dev sets differ."""
        found = [one for run in runs if (one := self.of_run(measure, run))]
        if len(found) < len(runs) or len({one.references for one in found}) > 1:
            return None
        return Resampled(found[0].references, np.concatenate([one.scores for one in found]))

    def of_run(self, measure: str, run: Evidence) -> Resampled | None:
        key = measure, run.name
        if key not in self.known:
            counts = self.statistics(measure, run) if self.settings.bootstrap else None
            self.known[key] = None if counts is None else self.scored(measure, counts)
        return self.known[key]

    def statistics(self, measure: str, run: Evidence) -> np.ndarray | None:
        """The statistics of a run, from its record or its translation; None if it has neither."""
        if measure in run.statistics:
            return np.array([column.split() for column in run.statistics[measure]], dtype=float).T
        folder = self.sets / f"{run.corpus}-{SET}"
        if run.dev_translation is None or not folder.exists():
            return None
        return statistics(measure, run.dev_translation, EvaluationSet.open(folder))

    def scored(self, measure: str, counts: np.ndarray) -> Resampled:
        return Resampled(counts[:, 1].tobytes(), resampled(measures("")[measure], counts, self.settings)[None])


def differences(
    measure: str,
    pairs: Sequence[tuple[Sequence[Evidence], Sequence[Evidence]]],
    failed: Sequence[bool],
    bootstrap: Bootstrap,
) -> tuple[Spread | None, list[Difference | None]]:
    """The difference of each pair (seeds of a change, seeds of its base), and the spread of the seeds.

    The spread is pooled over the runs of all pairs on one dev set, without those of a change that has `failed`. A pair
    with fewer than SEEDS seeds on one side has no difference.
    """
    scored = [(bootstrap.scores(measure, runs), bootstrap.scores(measure, bases)) for runs, bases in pairs]
    base = scored[0][1]
    groups: dict[str, np.ndarray] = {}
    for pair, both, has_failed in zip(pairs, scored, failed):
        for group, found in list(zip(pair, both))[has_failed:]:
            if base and found and found.references == base.references:
                groups[group[0].name] = found.scores
    if not any(len(group) > 1 for group in groups.values()):
        return None, [None] * len(pairs)
    pooled, results = spread(list(groups.values())), list[Difference | None]()
    for ours, others in scored:
        if ours and others and base and ours.references == others.references == base.references:
            enough = min(len(ours.scores), len(others.scores)) >= SEEDS
            results.append(between(ours.scores, others.scores, pooled) if enough else None)
        else:
            results.append(None)
    return pooled, results
