"""Runs that differ only in the seed, and the means of their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import pandas as pd

from pipeline.reporting.results import SAME, Results


def alike(runs: pd.DataFrame, names: Iterable[str] | None = None) -> list[list[str]]:
    """Group runs that differ only in the seed, or in the seed and the precision.

    Of runs with equal seeds and precisions, keep the first. Two precisions are in one group only if they have no seed in
    common.
    """
    compared = [key for key in SAME if key not in ("seed", "precision")] + ["bpe_dropout", "data"]
    groups: dict[str, list[dict]] = {}
    for name, row in runs.loc[list(names) if names is not None else list(runs.index)].iterrows():
        by_precision = groups.setdefault(repr(list(row[compared])), [])
        same = next((each for each in by_precision if row["precision"] in {precision for _, precision in each}), None)
        if same is None:
            by_precision.append(same := {})
        same.setdefault((row["seed"], row["precision"]), name)
    return [list(group.values()) for of in groups.values() for group in merged(of)]


def merged(by_precision: Sequence[dict]) -> list[dict]:
    """Merge the groups of precisions without a seed in common."""
    found: list[dict] = []
    for group in by_precision:
        seeds = {seed for seed, _ in group}
        into = next((each for each in found if seeds.isdisjoint(seed for seed, _ in each)), None)
        if into is None:
            found.append(into := {})
        into.update(group)
    return found


@dataclass(frozen=True)
class Mean:
    """The mean score of runs of `alike`, and the range of their scores. It is not a 95% interval."""

    score: float
    low: float
    high: float
    seeds: int
    precisions: tuple[str, ...] = ()  # those that the trainings used

    def __str__(self) -> str:
        mixed = f", in {' and '.join(self.precisions)}" if len(self.precisions) > 1 else ""
        return f"mean of {self.seeds} seeds ({self.low:.2f} to {self.high:.2f}){mixed}"


def over_seeds(results: Results, runs: Sequence[str], *place: str) -> Mean | None:
    """The mean of a score (arguments of `Results.score`); None if a run does not have it, or if there is only one run."""
    scores = [score.score for run in runs if (score := results.score(run, *place))]
    if len(scores) < max(2, len(runs)):
        return None
    precisions = sorted(set(results.runs.loc[list(runs), "trained in"]) - {None})
    return Mean(sum(scores) / len(scores), min(scores), max(scores), len(scores), tuple(precisions))


def shared(names: Sequence[str]) -> str:
    """The first words that all names share, or the first name if they share none. Words are separated by hyphens."""
    words = zip(*(name.split("-") for name in names))
    return "-".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, words)) or names[0]
