"""Selected trainings against the first of their study on the test set, and the sentences in which they differ most."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.paper_tables import with_ends
from pipeline.reporting.results import Score
from pipeline.reporting.seeds import alike
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Table
from pipeline.scoring.bleu import HEADLINE, measure, measures
from pipeline.scoring.intervals import SEEDS, between, holm, resampled, seeds_named, spread
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

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
    sentences: Sequence[Sentence]


def translation(scores: Path, run: str) -> Path:
    return scores / run / "translations/test.average.txt"


def pairs(study: Study, scores: Path, sets: Path, settings: ScoringConfig) -> list[Pair]:
    """Compare trainings with the first, best first. Runs without a translation or with another test set are left out."""
    folders = {run: sets / f"{corpus}-test" for run, corpus in study.results.runs["corpus"].items()}
    test = folders[study.runs[0]]
    here = [run for run in study.best_first() if translation(scores, run).exists() and folders[run].exists()]
    if study.runs[0] not in here or not settings.bootstrap:
        return []
    chosen = EvaluationSet.open(test)
    here = [run for run in here if EvaluationSet.open(folders[run]).lines("raw") == chosen.lines("raw")]
    groups = alike(study.results.runs, here)
    groups.sort(key=lambda group: study.runs[0] not in group)
    return against_first(groups, scores, chosen, settings) if len(groups) > 1 else []


def against_first(groups: Sequence[list[str]], files: Path, test: EvaluationSet, settings: ScoringConfig) -> list[Pair]:
    """Compare the seeds of other trainings with the seeds of the first."""
    metric, answers = measure(test.languages[1], HEADLINE), test.path("raw", "target")
    sources, references = test.lines("raw")
    lines = [[aligned(translation(files, run), answers)[0] for run in group] for group in groups]
    scores = [
        np.array([resampled(metric, metric.statistics(each, references), settings) for each in of_group])
        for of_group in lines
    ]
    pooled = spread(scores) if any(len(group) > 1 for group in groups) else None
    found = []
    for group, of_group, ours in zip(groups[1:], lines[1:], scores[1:]):
        seeds, p = min(len(group), len(groups[0])), None
        difference = Score(float(ours[:, 0].mean() - scores[0][:, 0].mean()))
        if pooled and seeds >= SEEDS:
            tested = between(ours, scores[0], pooled)
            difference, p = Score(tested.score, tested.low, tested.high), tested.p
        sentences = most_different(sources, references, (lines[0][0], of_group[0]), test.languages[1])
        found.append(Pair(groups[0][0], group[0], test.languages, seeds, difference, p, sentences))
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


def table(found: Sequence[Pair]) -> Table:
    """A row for each pair."""
    corrected = holm([pair.p for pair in found])
    rows = [
        {
            "run": pair.run,
            **with_ends("difference, sacreBLEU", pair.difference),
            "p, Holm": p,
            "seeds": seeds_named(pair.seeds),
            "against": pair.base,
        }
        for pair, p in zip(found, corrected)
    ]
    note = (
        f"Test set, averaged checkpoints, means over the seeds. With {SEEDS} seeds on both sides, the 95% interval "
        "contains the variance between seeds and that between sentences, and p is two-sided and corrected by Holm's "
        "method. Fewer seeds decide nothing."
    )
    frame = pd.DataFrame(rows, dtype=object)
    return Table("paired", "Runs against the first of their study", frame, [note], {"p, Holm": 4})
