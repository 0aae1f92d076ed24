"""Selected trainings against the first of their study on the test set, and the sentences in which they differ most."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.seeds import alike
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.bleu import HEADLINE, measure, measures
from pipeline.scoring.intervals import SEEDS, Score, Seeds, holm, resampled, seeds_named
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

SENTENCES = 3  # at most this many where the run is better than the base, and as many where it is worse
BY_SENTENCE = "chrf"  # BLEU says little about a single sentence
Line = tuple[str, str, str]  # a label, a language and a text in it


class Pair(NamedTuple):
    """A training against the base of its study, by the means over the seeds. `base` and `run` are the first seeds.

    `seeds` is the number of seeds of the side with fewer. `sentences` are those that differ most: each has the lines of
    the source, of the reference and of both translations.
    """

    base: str
    run: str
    seeds: int
    difference: Score
    sentences: Sequence[Sequence[Line]]


def translation(scores: Path, run: str) -> Path:
    return scores / run / "translations/test.average.txt"


def pairs(study: Study, scores: Path, sets: Path, settings: ScoringConfig) -> list[Pair]:
    """Compare trainings with the first, best first. Runs without a translation or with another test set are left out."""
    first = study.runs[0]
    folders = {run: sets / f"{corpus}-test" for run, corpus in study.results.runs["corpus"].items()}
    here = [run for run in study.best_first() if translation(scores, run).exists() and folders[run].exists()]
    if first not in here or not settings.bootstrap:
        return []
    test = EvaluationSet.open(folders[first])
    here = [run for run in here if EvaluationSet.open(folders[run]).lines("raw") == test.lines("raw")]
    groups = sorted(alike(study.results.runs, here), key=lambda group: first not in group)
    if len(groups) < 2:
        return []
    metric, references = measure(test.languages[1], HEADLINE), test.lines("raw")[1]
    lines = {run: aligned(translation(scores, run), test.path("raw", "target"))[0] for group in groups for run in group}
    seeds = Seeds(
        {run: resampled(metric, metric.statistics(of, references), settings) for run, of in lines.items()}, groups
    )
    base, found = groups[0], []
    for group in groups[1:]:
        both = {run: lines[run] for run in (base[0], group[0])}
        difference = seeds.difference(group, base) or Score(0.0)
        found.append(Pair(base[0], group[0], min(len(group), len(base)), difference, most_different(test, both)))
    return found


def most_different(test: EvaluationSet, both: dict[str, list[str]]) -> list[list[Line]]:
    """The sentences with the largest differences in chrF: first where the second run is better, then where it is worse."""
    (sources, references), (source, target) = test.lines("raw"), test.languages
    by_sentence = measures(target)[BY_SENTENCE]
    first, second = (list(map(by_sentence.score, by_sentence.statistics(lines, references))) for lines in both.values())
    differences = [after - before for before, after in zip(first, second)]
    order = sorted(range(len(differences)), key=lambda number: -differences[number])
    better = [number for number in order[:SENTENCES] if differences[number] > 0]
    worse = [number for number in order[::-1][:SENTENCES] if differences[number] < 0]
    (base, of_base), (run, of_run) = both.items()
    return [
        [
            ("source", source, sources[number]),
            ("reference", target, references[number]),
            (base, target, of_base[number]),
            (f"{run} {differences[number]:+.1f} chrF", target, of_run[number]),
        ]
        for number in better + worse
    ]


def pairs_table(found: Sequence[Pair]) -> Table:
    """A row for each pair."""
    rows = [
        {
            "run": pair.run,
            **with_ends("difference, sacreBLEU", pair.difference),
            "p, Holm": p,
            "seeds": seeds_named(pair.seeds),
            "against": pair.base,
        }
        for pair, p in zip(found, holm([pair.difference.p for pair in found]))
    ]
    note = (
        f"Test set, averaged checkpoints, means over the seeds. With {SEEDS} seeds on both sides, the 95% interval "
        "contains the variance between seeds and that between sentences, and p is two-sided and corrected by Holm's "
        "method. Fewer seeds decide nothing."
    )
    return table("paired", "Runs against the first of their study", rows, [note], places={"p, Holm": 4})
