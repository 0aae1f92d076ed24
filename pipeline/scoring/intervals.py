"""The intervals and the p-values of all differences between scores: 95% intervals and two-sided p-values.

Two trainings that differ only in the seed have different scores. A difference between trainings therefore has two
variances: between seeds, and between the sentences of the set. With few seeds, the variance between seeds is pooled over
all groups of trainings in a table, and the difference has a t distribution (`between`). The scores of two decodings of one
training differ by the sentences only (`within`). A verdict about trainings needs SEEDS seeds on both sides.

Shapes: K seeds, R resamples. Scores have R + 1 columns: first the score of the whole set, then those of the resamples of
its sentences. The resamples are equal for all systems, so differences are paired.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.scoring.bleu import PUBLISHED, measures
from pipeline.scoring.of_sets import aligned
from pipeline.text.evaluation import EvaluationSet

# The measures of the statistics, by preference. Results from before a measure existed lack it, so a comparison with one of
# these uses the next measure.
MEASURES = {
    PUBLISHED: "BLEU as the paper computes it",
    "bleu-raw-reference": "BLEU as the paper computes it, but with the typographic quotes of the reference",
}
SEEDS = 3  # at least so many of both sides of a difference, for an interval and a verdict
LEVEL = 0.05  # a difference with a smaller p, after Holm's correction, is not chance


class Score(NamedTuple):
    """A score or a difference of scores, with its 95% interval if it has one.

    `p` is the two-sided p-value of a difference, before a correction for several tests.
    """

    score: float
    low: float | None = None
    high: float | None = None
    p: float | None = None


class Spread(NamedTuple):
    """The pooled variances of trainings that differ only in the seed, in squared points.

    `seeds` is the variance of their scores, with `freedom` degrees of freedom. `resampled` is the part of it that appears
    in a bootstrap over the sentences, too, because each sentence is translated by each seed in its own way.
    """

    seeds: float
    resampled: float
    freedom: int


def statistics(translation: Path, dev: EvaluationSet) -> dict[str, list[str]]:
    """What BLEU is computed from, by measure: one text per statistic, which holds its value for each sentence in order.

    The statistics are the lengths of hypothesis and reference, the number of matching n-grams of each order, and the
    number of all n-grams of each order. A language without these measures has none.
    """
    hypotheses, references = aligned(translation, dev.path("raw", "target"))
    known = {name: of for name, of in measures(dev.languages[1]).items() if name in MEASURES}
    counts = {name: of.statistics(hypotheses, references) for name, of in known.items()}
    return {name: [" ".join(f"{number:.0f}" for number in column) for column in of.T] for name, of in counts.items()}


def spread(groups: Sequence[np.ndarray]) -> Spread:
    """The pooled variances of groups of seeds, each [K, 1 + R]. At least one group has two seeds or more."""
    freedom = sum(len(group) - 1 for group in groups)
    deviations = np.concatenate([group - group.mean(axis=0) for group in groups])
    seeds, resampled = np.square(deviations[:, 0]).sum(), deviations[:, 1:].var(axis=1).sum()
    return Spread(seeds / freedom, resampled / freedom, freedom)


def between(runs: np.ndarray, bases: np.ndarray, pooled: Spread | None = None) -> Score:
    """The mean of the seeds `runs` minus the mean of the seeds `bases`, each [K, 1 + R], of two trainings.

    Without a `pooled` spread, each training has that of its own seeds, two or more, and the test is Welch's.
    The bootstrap over sentences also contains a part of the variance between seeds. This part is not counted twice.
    """
    change, sides = runs.mean(axis=0) - bases.mean(axis=0), [(pooled or spread([of]), len(of)) for of in (runs, bases)]
    seeds = [of.seeds / number for of, number in sides]
    sentences = max(0.0, change[1:].var() - sum(of.resampled / number for of, number in sides))
    variance, freedom = sum(seeds) + sentences, float("inf")
    if pooled:
        freedom = pooled.freedom
    elif spent := sum(share**2 / of.freedom for share, (of, _) in zip(seeds, sides)):
        freedom = variance**2 / spent
    return tested(change[0], variance, freedom)


class Seeds:
    """The scores of trainings, [1 + R] by run, and the spread of `groups` of runs that differ only in the seed.

    The spread is None if no group has two seeds. Runs without a score are left out.
    """

    def __init__(self, scores: Mapping[str, np.ndarray], groups: Iterable[Sequence[str]]) -> None:
        self.scores = scores
        known = [found for group in dict.fromkeys(map(tuple, groups)) if len(found := self.of(group))]
        self.spread = spread(known) if any(len(group) > 1 for group in known) else None

    @classmethod
    def of_values(cls, values: Mapping[Any, float], groups: Iterable[Sequence[str]]) -> "Seeds":
        """The seeds of a quantity that has one value for each run, and no sentences."""
        return cls({str(run): np.full(2, value, float) for run, value in values.items()}, groups)

    def of(self, runs: Sequence[str]) -> np.ndarray:
        return np.array([self.scores[run] for run in runs if run in self.scores])

    def difference(self, runs: Sequence[str], bases: Sequence[str], *, pooled: bool = True) -> Score | None:
        """The mean of `runs` minus the mean of `bases`, with an interval and a p-value if both have SEEDS seeds.

        If not `pooled`, the test is Welch's, which does not assume that all trainings vary equally.
        """
        ours, others = self.of(runs), self.of(bases)
        if not len(ours) or not len(others):
            return None
        if self.spread is None or min(len(ours), len(others)) < SEEDS:
            return Score(float(ours[:, 0].mean() - others[:, 0].mean()))
        return between(ours, others, self.spread if pooled else None)


def within(one: np.ndarray, base: np.ndarray) -> Score:
    """The score of `one` minus that of `base`, each [1 + R], of two translations by one training."""
    change = one - base
    return tested(change[0], change[1:].var(), float("inf"))


def tested(score: float, variance: float, freedom: float) -> Score:
    """A difference whose ratio to its standard error has a t distribution, with infinite `freedom` a normal one."""
    from scipy.special import stdtr, stdtrit  # the t distribution and its inverse

    error = float(np.sqrt(variance) or np.finfo(float).tiny)  # 0 if all scores are equal
    half = stdtrit(freedom, 1 - LEVEL / 2) * error
    return Score(*map(float, (score, score - half, score + half, 2 * stdtr(freedom, -abs(float(score)) / error))))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """The p-values of one table after Holm's correction, in their order. None stands for a row without a test."""
    corrected, largest = list(values), 0.0
    tested = sorted((value, place) for place, value in enumerate(values) if value is not None)
    for number, (value, place) in enumerate(tested):
        corrected[place] = largest = max(largest, min(1.0, value * (len(tested) - number)))
    return corrected


def seeds_named(number: int) -> str:
    """What a table says in place of a verdict if one of the sides has fewer than SEEDS seeds."""
    return "one seed" if number == 1 else f"{number} seeds"
