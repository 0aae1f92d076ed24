"""Differences between runs in the BLEU of Table 3, with intervals by paired bootstrap over the sentences of the dev set."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.evidence import Evidence, Score
from pipeline.scoring.bleu import interval, measures, resampling
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

MEASURE, SET, WEIGHTS = OF_TABLE3 = ("bleu-paper", "dev", "last")  # arguments of `Evidence.measure`


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


class Bootstrap:
    """Draws the same sentences for all runs on a corpus, so that the scores of two runs are paired by resample."""

    def __init__(self, sets: Path, settings: ScoringConfig) -> None:
        self.sets, self.settings = sets, settings

    def statistics(self, run: Evidence) -> np.ndarray | None:
        """The statistics of a run, from its record or its translation; None if it has neither."""
        if run.statistics:
            return np.array([column.split() for column in run.statistics], dtype=float).T
        folder = self.sets / f"{run.corpus}-{SET}"
        if run.dev_translation is None or not folder.exists():
            return None
        return statistics(run.dev_translation, EvaluationSet.open(folder))

    def difference(self, run: Evidence, bases: Sequence[Evidence]) -> Score | None:
        """BLEU of the run minus the mean BLEU of `bases`, with its 95% interval.

        Returns None if a run has no statistics, or if the lengths of the references differ, because the runs then have
        different dev sets.
        """
        counts = [self.statistics(each) for each in (run, *bases)]
        known = [each for each in counts if each is not None]
        same = len(known) == len(counts) and all(np.array_equal(each[:, 1], known[0][:, 1]) for each in known)
        if not same or not self.settings.bootstrap:
            return None
        weights = resampling(len(known[0]), self.settings.bootstrap, self.settings.seed).astype(float)
        weights = np.vstack([np.ones(len(known[0])), weights])  # the first row is the whole set
        measure = measures("")[MEASURE]
        own, *others = (np.array([measure.score(row) for row in weights @ each]) for each in known)
        differences = own - np.mean(others, axis=0)
        return Score(differences[0], *interval(differences[1:]), signature="")
