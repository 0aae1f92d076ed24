"""Two runs side by side: whether their difference is significant, and the sentences in which they differ most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.scoring.bleu import HEADLINE, measures
from pipeline.scoring.of_sets import aligned
from pipeline.scoring.significance import paired
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
    """A run against the base of its study. `p` is None if the two are equal in each sentence."""

    base: str
    run: str
    languages: tuple[str, str]
    difference: float
    p: float | None
    sentences: tuple[Sentence, ...]


def pairs(params: Mapping[str, Any], studies: Sequence[Study], sets: Path) -> list[Pair]:
    """Compare runs with the base of their study, best first. Runs without translations or a test set are left out.

    A recorded study can have the same base as the study of the selected runs. Each pair is compared once.
    """
    settings, found = scoring(params), list[Pair]()
    for study in studies:
        folder = sets / f"{study.corpus}-test"
        base, done = study.base.name, {(pair.base, pair.run) for pair in found}
        runs = [run for run in study.best_first() if run.translation and (base, run.name) not in done]
        translated = {run.name: run.translation for run in runs if run.translation}
        if settings.bootstrap and len(translated) > 1 and base in translated and folder.exists():
            found += against_base(base, translated, EvaluationSet.open(folder), settings)
    return found


def against_base(base: str, translated: Mapping[str, Path], test: EvaluationSet, settings: ScoringConfig) -> list[Pair]:
    """Compare the other runs with `base`. `translated` has the file with the translations of each run."""
    answers = test.path("raw", "target")
    segments = {name: aligned(path, answers)[0] for name, path in translated.items()}
    sources, references = test.lines("raw")
    measure = measures(test.languages[1])[HEADLINE]
    others = [name for name in translated if name != base]
    _, (baseline, *results) = paired({name: segments[name] for name in (base, *others)}, references, measure, settings)
    pairs = []
    for name, result in zip(others, results):
        both = segments[base], segments[name]
        sentences = most_different(sources, references, both, test.languages[1])
        difference = result.score - baseline.score
        pairs.append(Pair(base, name, test.languages, difference, result.p_value, tuple(sentences)))
    return pairs


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
    columns = [Column("run", "run"), Column("difference, sacreBLEU", "number"), Column("p, one-sided", "number", 4)]
    columns += [Column("against", "run")]
    rows = [[pair.run, pair.difference, pair.p, pair.base] for pair in found]
    note = (
        "Test set, averaged checkpoints. p is the probability that the better run is ahead by at least this difference if "
        "both are equally good: paired bootstrap resampling (Koehn 2004), by sacreBLEU."
    )
    return Table("paired", "Runs against the base of their study", columns, rows, [note]) if found else None
