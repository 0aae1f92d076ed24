"""The scores of translations of an evaluation set, by every measure of bleu.py, and those in metrics.json."""

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.scoring.bleu import headline, matrix, measures
from pipeline.settings.scoring import ScoringConfig
from pipeline.text.evaluation import EvaluationSet, read_lines, require_aligned
from transformer.config.reading import UserError

Pair = tuple[list[str], list[str]]


def aligned(translation: Path, reference: Path, read: Callable[[Path], list[str]] = read_lines) -> Pair:
    """The segments of both files. Raises UserError unless both have the same number of segments, at least one.

    `read` reads the translation, which a user may have written.
    """
    hypotheses, references = read(translation), read_lines(reference)
    require_aligned(translation, len(hypotheses), reference, len(references))
    if not references:
        raise UserError(f"{reference} is empty; there is nothing to score {translation} against")
    return hypotheses, references


def scores(hypotheses: Sequence[str], references: Sequence[str], language: str, settings: ScoringConfig) -> dict:
    """{"pairs": n, "metrics": {measure: {"score", "low", "high", "signature"}}}."""
    metrics = matrix(hypotheses, references, language, settings)
    return {"pairs": len(references), "metrics": metrics}


def set_scores(translation: Path, chosen: EvaluationSet, settings: ScoringConfig) -> dict[str, dict]:
    """The scores of the translation of a whole set (`set`) and, if the set has a filtered part, of that part (`filtered`).

    An empty reference is scored as a reference of length 0. Leaving it out would change the test set but not its name.
    The segments of the filtered part are selected from the translation of the whole set.
    """
    reference, language = chosen.path("raw", "target"), chosen.languages[1]
    hypotheses, references = aligned(translation, reference)
    if empty := sum(not segment.strip() for segment in references):
        print(f"{reference}: {empty:,} empty lines, scored as they are", file=sys.stderr)
    table = {"set": scores(hypotheses, references, language, settings)}
    if (filtered := chosen.path("filtered", "source")).exists():
        _, answers = chosen.lines("filtered")
        numbers = places(filtered, chosen.path("raw", "source"))
        table["filtered"] = scores([hypotheses[number] for number in numbers], answers, language, settings)
    return table


def places(filtered: Path, full: Path) -> list[int]:
    """The line number, from 0, of each segment of `filtered` in `full`. Equal segments are matched in their order."""
    numbers: dict[str, deque[int]] = defaultdict(deque)
    for number, segment in enumerate(read_lines(full)):
        numbers[" ".join(segment.split())].append(number)
    found = []
    for number, segment in enumerate(read_lines(filtered), 1):
        candidates = numbers[" ".join(segment.split())]
        if not candidates:
            raise UserError(f"{filtered}, line {number}: {segment!r} is not in {full}, or occurs there less often")
        found.append(candidates.popleft())
    return found


def of_test_set(scored: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one translation of a set for metrics.json: the first measure, BLEU as published, and chrF.

    `dvc metrics show` prints that file and compares runs and decodings by it.
    """
    cells = scored["metrics"]
    names = {"sacrebleu": next(iter(cells)), "bleu_published": "bleu-published", "chrf": "chrf"}
    return {f"test_{short}": cells[measure]["score"] for short, measure in names.items() if measure in cells}


def headline_score(hypotheses: Sequence[str], chosen: EvaluationSet) -> float:
    """The score of the translations of a set by the headline's measure of its target language, without an interval."""
    measure = measures(chosen.languages[1])[headline(chosen.languages[1])]
    return round(measure.score(measure.statistics(hypotheses, chosen.lines("raw")[1]).sum(axis=0)), 4)
