"""Runs that differ only in the seed, and the means of their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean

import pandas as pd

from pipeline.reporting.results import SAME, Results


def alike(runs: pd.DataFrame, names: Iterable[str] | None = None) -> list[list[str]]:
    """Group runs that differ only in the seed, or in the seed and the precision.

    Of runs with equal seeds and precisions, keep the first. Two precisions are in one group only if they have no seed in
    common.
    """
    runs = runs if names is None else runs.loc[list(names)]
    compared = [key for key in SAME if key not in ("seed", "precision")] + ["bpe_dropout", "data"]
    settings = [repr(row) for row in runs[compared].values.tolist()]
    runs = runs.assign(settings=settings).drop_duplicates(["settings", "seed", "precision"])
    groups: list[list[str]] = []
    for _, same in runs.groupby("settings", sort=False):
        found: list[pd.DataFrame] = []
        for _, part in same.groupby("precision", sort=False, dropna=False):
            free = (place for place, group in enumerate(found) if set(group["seed"]).isdisjoint(part["seed"]))
            place = next(free, len(found))
            found[place:] = [pd.concat([*found[place : place + 1], part]), *found[place + 1 :]]
        groups += [list(group.index) for group in found]
    return groups


@dataclass(frozen=True)
class Mean:
    """The mean score of runs of `alike`, and the range of their scores. It is not a 95% interval."""

    score: float
    low: float
    high: float
    seeds: int
    precisions: Sequence[str] = ()  # those that the trainings used

    def __str__(self) -> str:
        mixed = f", in {' and '.join(self.precisions)}" if len(self.precisions) > 1 else ""
        return f"mean of {self.seeds} seeds ({self.low:.2f} to {self.high:.2f}){mixed}"


def over_seeds(results: Results, runs: Sequence[str], *place: str) -> Mean | None:
    """The mean of a score (arguments of `Results.score`); None if a run does not have it, or if there is only one run."""
    scores = results.at(*place)["score"].reindex(runs).dropna()
    if len(scores) < max(2, len(runs)):
        return None
    precisions = sorted(set(results.runs.loc[list(runs), "trained in"]) - {None})
    return Mean(fmean(scores), min(scores), max(scores), len(scores), precisions)


def shared(names: Sequence[str]) -> str:
    """The first words that all names share, or the first name if they share none. Words are separated by hyphens."""
    words = zip(*(name.split("-") for name in names))
    return "-".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, words)) or names[0]
