"""Differences between trainings in the BLEU of Table 3, with intervals that contain the seeds and the sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.evidence import Evidence
from pipeline.scoring.bleu import measures
from pipeline.scoring.intervals import SEEDS, Difference, Spread, between, resampled, spread
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

MEASURE, SET = "bleu-paper", "dev"
OF_TABLE3 = (MEASURE, SET, "last")  # arguments of `Evidence.measure`


def statistics(translation: Path, chosen: EvaluationSet) -> np.ndarray:
    """The statistics of each sentence from which BLEU is computed, [sentences, statistics] whole numbers.

    They are the lengths of hypothesis and reference, the number of matching n-grams of each order, and the number of all
    n-grams of each order.
    """
    hypotheses, references = aligned(translation, chosen.path("raw", "target"))
    return measures(chosen.languages[1])[MEASURE].statistics(hypotheses, references)


def recorded(counts: np.ndarray) -> list[str]:
    """The form of `statistics` in a record: one string per statistic, which holds its value for each sentence in order."""
    return [" ".join(f"{number:.0f}" for number in column) for column in counts.T]


@dataclass(frozen=True)
class Resampled:
    """The scores of trainings on resamples of a set, [K, 1 + R]. `references` are the lengths, which identify the set."""

    references: bytes
    scores: np.ndarray


class Bootstrap:
    """Scores trainings on resamples of the dev set. `sets` has the dev sets of runs that are not recorded."""

    def __init__(self, sets: Path, settings: ScoringConfig) -> None:
        self.sets, self.settings = sets, settings
        self.known: dict[str, Resampled | None] = {}  # of one run, by its name

    def scores(self, runs: Sequence[Evidence]) -> Resampled | None:
        """The scores of the seeds of a training, or None without resamples or statistics, or if the dev sets differ."""
        found = [one for run in runs if (one := self.of_run(run))]
        if len(found) < len(runs) or len({one.references for one in found}) > 1:
            return None
        return Resampled(found[0].references, np.concatenate([one.scores for one in found]))

    def of_run(self, run: Evidence) -> Resampled | None:
        if run.name not in self.known:
            counts = self.statistics(run) if self.settings.bootstrap else None
            self.known[run.name] = None if counts is None else self.scored(counts)
        return self.known[run.name]

    def statistics(self, run: Evidence) -> np.ndarray | None:
        """The statistics of a run, from its record or its translation; None if it has neither."""
        if run.statistics:
            return np.array([column.split() for column in run.statistics], dtype=float).T
        folder = self.sets / f"{run.corpus}-{SET}"
        if run.dev_translation is None or not folder.exists():
            return None
        return statistics(run.dev_translation, EvaluationSet.open(folder))

    def scored(self, counts: np.ndarray) -> Resampled:
        return Resampled(counts[:, 1].tobytes(), resampled(measures("")[MEASURE], counts, self.settings)[None])


def differences(
    pairs: Sequence[tuple[Sequence[Evidence], Sequence[Evidence]]], failed: Sequence[bool], bootstrap: Bootstrap
) -> tuple[Spread | None, list[Difference | None]]:
    """The difference of each pair (seeds of a change, seeds of its base), and the spread of the seeds.

    The spread is pooled over the runs of all pairs on one dev set, without those of a change that has `failed`. A pair
    with fewer than SEEDS seeds on one side has no difference.
    """
    scored = [(bootstrap.scores(runs), bootstrap.scores(bases)) for runs, bases in pairs]
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
