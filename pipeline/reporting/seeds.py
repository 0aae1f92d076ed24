"""Runs that differ only in the seed, and the means of their scores."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from statistics import fmean
from typing import NamedTuple

import pandas as pd

from pipeline.reporting.results import SAME, Results


def alike(runs: pd.DataFrame, names: Iterable[str] | None = None) -> list[list[str]]:
    """Group runs that differ only in the seed, or in the seed and the precision.

    Precisions are told apart if a seed was trained in two. Of runs with equal seeds and precisions, keep the first.
    """
    runs = runs if names is None else runs.loc[list(names)]
    compared = [key for key in SAME if key not in ("seed", "precision")] + ["bpe_dropout", "data"]
    settings = [repr(row) for row in runs[compared].values.tolist()]
    runs = runs.assign(settings=settings).drop_duplicates(["settings", "seed", "precision"])
    twice = runs.groupby("settings")["seed"].transform(lambda seeds: seeds.duplicated().any()).astype(bool)
    groups = runs.groupby(["settings", runs["precision"].where(twice, "any")], sort=False)
    return [list(group.index) for _, group in groups]


class Mean(NamedTuple):
    """The mean score of runs of `alike`, and a text with the range of their scores, which is no 95% interval."""

    score: float
    text: str


def over_seeds(results: Results, runs: Sequence[str], *place: str) -> Mean | None:
    """The mean of a score (arguments of `Results.score`); None if a run does not have it, or if there is only one run."""
    scores = results.at(*place)["score"].reindex(runs).dropna()
    if len(scores) < max(2, len(runs)):
        return None
    precisions = sorted(set(results.runs.loc[list(runs), "trained in"]) - {None})
    mixed = f", in {' and '.join(precisions)}" if len(precisions) > 1 else ""
    return Mean(fmean(scores), f"mean of {len(scores)} seeds ({min(scores):.2f} to {max(scores):.2f}){mixed}")


def shared(names: Sequence[str]) -> str:
    """The first words that all names share, or the first name if they share none. Words are separated by hyphens."""
    words = zip(*(name.split("-") for name in names))
    return "-".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, words)) or names[0]
