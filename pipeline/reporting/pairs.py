"""Trainings against the base of their study on the test set, and the sentences in which they differ most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.evidence import Evidence, Score, alike
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.scoring.bleu import HEADLINE, measures
from pipeline.scoring.intervals import SEEDS, between, holm, resampled, seeds_named, spread
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig, scoring

SENTENCES = 3  # at most this many where the run is better than the base, and as many where it is worse
BY_SENTENCE = "chrf"  # BLEU says little about a single sentence


@dataclass(frozen=True)
class Sentence:
    """A sentence with both translations. `difference` is the chrF of the run's minus the chrF of the base's."""

    source: str
    reference: str
    of_base: str
    of_run: str
    difference: float


@dataclass(frozen=True)
class Pair:
    """A training against the base of its study, by the means over the seeds. `base` and `run` are the first seeds.

    `seeds` is the number of seeds of the side with fewer. With fewer than SEEDS, there is neither an interval nor a `p`.
    """

    base: str
    run: str
    languages: tuple[str, str]
    seeds: int
    difference: Score
    p: float | None
    sentences: tuple[Sentence, ...]


def pairs(params: Mapping[str, Any], studies: Sequence[Study], sets: Path) -> list[Pair]:
    """Compare trainings with the base of their study, best first. Runs without translations or a test set are left out.

    A recorded study can have the same base as the study of the selected runs. Each pair is compared once.
    """
    settings, found = scoring(params), list[Pair]()
    for study in studies:
        folder = sets / f"{study.corpus}-test"
        groups = alike(run for run in study.best_first() if run.translation)
        base = next((group for group in groups if study.base in group), None)
        if base and settings.bootstrap and folder.exists():
            done = {pair.run for pair in found if pair.base == base[0].name}
            others = [group for group in groups if group is not base and group[0].name not in done]
            found += against_base(base, others, EvaluationSet.open(folder), settings) if others else []
    return found


def against_base(
    base: Sequence[Evidence], others: Sequence[Sequence[Evidence]], test: EvaluationSet, settings: ScoringConfig
) -> list[Pair]:
    """Compare the seeds of other trainings with the seeds of the base."""
    answers, measure = test.path("raw", "target"), measures(test.languages[1])[HEADLINE]
    sources, references = test.lines("raw")
    groups = [[aligned(run.translation, answers)[0] for run in group if run.translation] for group in (base, *others)]
    scores = [
        np.array([resampled(measure, measure.statistics(lines, references), settings) for lines in group])
        for group in groups
    ]
    pooled = spread(scores) if any(len(group) > 1 for group in groups) else None
    found = []
    for group, lines, ours in zip(others, groups[1:], scores[1:]):
        seeds, p = min(len(group), len(base)), None
        difference = Score(float(ours[:, 0].mean() - scores[0][:, 0].mean()), None, None, "")
        if pooled and seeds >= SEEDS:
            tested = between(ours, scores[0], pooled)
            difference, p = Score(tested.score, tested.low, tested.high, ""), tested.p
        sentences = most_different(sources, references, (groups[0][0], lines[0]), test.languages[1])
        found.append(Pair(base[0].name, group[0].name, test.languages, seeds, difference, p, tuple(sentences)))
    return found


def most_different(
    sources: Sequence[str], references: Sequence[str], both: tuple[list[str], list[str]], language: str
) -> list[Sentence]:
    """The sentences with the largest differences in chrF: first where the second run is better, then where it is worse."""
    measure = measures(language)[BY_SENTENCE]
    scores = [list(map(measure.score, measure.statistics(segments, references))) for segments in both]
    differences = [second - first for first, second in zip(*scores)]
    order = sorted(range(len(differences)), key=lambda number: -differences[number])
    better = [number for number in order[:SENTENCES] if differences[number] > 0]
    worse = [number for number in order[::-1][:SENTENCES] if differences[number] < 0]
    return [
        Sentence(sources[number], references[number], both[0][number], both[1][number], differences[number])
        for number in better + worse
    ]


def table(found: Sequence[Pair]) -> Table | None:
    """Return a table with one row for each pair, or None if there are no pairs."""
    columns = [Column("run", "run"), Column("difference, sacreBLEU", "score"), Column("p, Holm", "number", 4)]
    columns += [Column("seeds"), Column("against", "run")]
    corrected = holm([pair.p for pair in found])
    rows = [[pair.run, pair.difference, p, seeds_named(pair.seeds), pair.base] for pair, p in zip(found, corrected)]
    note = (
        f"Test set, averaged checkpoints, means over the seeds. With {SEEDS} seeds on both sides, the 95% interval "
        "contains the variance between seeds and that between sentences, and p is two-sided and corrected by Holm's "
        "method. Fewer seeds decide nothing."
    )
    return Table("paired", "Runs against the base of their study", columns, rows, [note]) if found else None
