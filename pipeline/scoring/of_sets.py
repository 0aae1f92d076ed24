"""The scores of translations of an evaluation set, by every measure of bleu.py, and those in metrics.json."""

import sys
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.corpora.evaluation import EvaluationSet, read_aligned, read_lines
from pipeline.settings.score_files import entry
from pipeline.settings.scoring import ScoringConfig
from transformer.config.reading import UserError
from transformer.files import read_json


def aligned(translation: Path, reference: Path) -> tuple[list[str], list[str]]:
    """The segments of both files. Raises UserError unless both have the same number of segments, at least one."""
    hypotheses, references = read_aligned(translation, reference)
    if not references:
        raise UserError(f"{reference} is empty; there is nothing to score {translation} against")
    return hypotheses, references


def scores(hypotheses: Sequence[str], references: Sequence[str], language: str, settings: ScoringConfig) -> dict:
    """{"pairs": n, "metrics": {measure: {"score", "low", "high", "signature"}}}."""
    from pipeline.scoring.bleu import matrix  # imports numpy and sacreBLEU, only when scoring

    metrics = matrix(hypotheses, references, language, settings.bootstrap, settings.seed)
    return {"pairs": len(references), "metrics": metrics}


def set_scores(translation: Path, chosen: EvaluationSet, settings: ScoringConfig) -> dict:
    """The scores of the translation of a whole set.

    An empty reference is scored as a reference of length 0. Leaving it out would change the test set but not its name.
    """
    reference = chosen.path("raw", "target")
    hypotheses, references = aligned(translation, reference)
    if empty := sum(not segment.strip() for segment in references):
        print(f"score: {reference}: {empty:,} empty lines, scored as they are", file=sys.stderr)
    return scores(hypotheses, references, chosen.languages[1], settings)


def filtered_scores(translation: Path, chosen: EvaluationSet, settings: ScoringConfig) -> dict:
    """The scores on the filtered part of the set. Its segments are selected from the translation of the whole set."""
    hypotheses = read_lines(translation)
    _, references = chosen.lines("filtered")
    numbers = places(chosen.path("filtered", "source"), chosen.path("raw", "source"))
    return scores([hypotheses[number] for number in numbers], references, chosen.languages[1], settings)


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


def metrics(table: Mapping[str, Any], translations: Path) -> dict[str, float]:
    """The content of metrics.json, by which runs and decodings are compared: the test set's scores and dev's perplexity.

    `dvc metrics show` prints it. `table` is the content of score.json.
    """
    description = translations / "translations.json"
    perplexity = entry(read_json(description), "dev.average.perplexity", float, str(description))
    return {**of_test_set(table["test"]["average"]), "dev_perplexity": perplexity}


def of_test_set(scored: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one translation of a set for metrics.json: the first measure, BLEU as published, and chrF."""
    cells = scored["metrics"]
    names = {"sacrebleu": next(iter(cells)), "bleu_published": "bleu-published", "chrf": "chrf"}
    return {f"test_{short}": cells[measure]["score"] for short, measure in names.items() if measure in cells}
