"""Differences between runs in the BLEU of Table 3, with intervals by paired bootstrap over the sentences of the dev set."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.evidence import Evidence, Score
from pipeline.scoring.bleu import interval, measures, resampling
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
    """BLEU of one run on the whole set (first) and on each resample. `lengths` are those of the references."""

    lengths: np.ndarray
    scores: np.ndarray


class Bootstrap:
    """Draws the same sentences for all runs on a corpus, so that the scores of two runs are paired by resample."""

    def __init__(self, sets: Path, settings: ScoringConfig) -> None:
        self.sets, self.settings = sets, settings
        self.known: dict[str, Resampled | None] = {}  # by the name of the run

    def difference(self, runs: Sequence[Evidence], bases: Sequence[Evidence]) -> Score | None:
        """Mean BLEU of `runs` minus mean BLEU of `bases`, with its 95% interval.

        Returns None if a run has no statistics, or if the lengths of the references differ, because the runs then have
        different dev sets.
        """
        if not self.settings.bootstrap:
            return None
        found = [one for each in (*runs, *bases) if (one := self.resampled(each))]
        same = [one for one in found if np.array_equal(one.lengths, found[0].lengths)]
        if len(same) < len(runs) + len(bases):
            return None
        ours, others = (np.mean([one.scores for one in part], axis=0) for part in (same[: len(runs)], same[len(runs) :]))
        differences = ours - others
        return Score(differences[0], *interval(differences[1:]), signature="")

    def resampled(self, run: Evidence) -> Resampled | None:
        """The scores of a run, computed once. None if the run has no statistics."""
        if run.name not in self.known:
            counts = self.statistics(run)
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
        measure = measures("")[MEASURE]
        drawn = weights(len(counts), self.settings.bootstrap, self.settings.seed)
        return Resampled(counts[:, 1], np.array([measure.score(row) for row in drawn @ counts]))


@cache
def weights(sentences: int, resamples: int, seed: int) -> np.ndarray:
    """How often each sentence counts, [1 + resamples, sentences]. The first row is the whole set."""
    return np.vstack([np.ones(sentences), resampling(sentences, resamples, seed).astype(float)])
