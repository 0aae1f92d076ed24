"""Score: a run's translations by every measure of pipeline/scoring/bleu.py, with 95% intervals and signatures.

    python -m pipeline.score RUN --translations scores/RUN/translations --raw data/CORPUS/raw \\
        --out scores/RUN/score.json --metrics scores/RUN/metrics.json

Reads params.yaml (base.scoring, runs.RUN, corpora.CORPUS.languages); of the translations dev.last.txt, dev.average.txt
and test.average.txt, one detokenised segment a line; of the raw text, which nothing has normalised, dev and test as
references, and test_filtered where the corpus has one: its segments are picked out of the translation of the full set.

Writes {set: {checkpoint: {"pairs": n, "metrics": {measure: {"score", "low", "high", "signature"}}}}}. An empty
reference is scored like any other, as one of length 0: leaving it out would give another test set the same name.
"""

import argparse
import sys
from collections import defaultdict, deque
from pathlib import Path

from pipeline.corpora.sets import require_aligned
from pipeline.scoring.metrics import metrics
from pipeline.scoring.segments import aligned, lines
from pipeline.settings.params import entry, languages, load
from pipeline.settings.scoring import ScoringConfig, scoring
from pipeline.tracking import client as tracking
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import write_json


def places(filtered: Path, full: Path) -> list[int]:
    """Where each segment of the filtered test set's source stands in the full one's, equal segments in their order."""
    numbers = defaultdict(deque)
    for number, segment in enumerate(lines(full)):
        numbers[" ".join(segment.split())].append(number)
    found = []
    for number, segment in enumerate(lines(filtered), 1):
        candidates = numbers[" ".join(segment.split())]
        if not candidates:
            raise UserError(f"{filtered}, line {number}: {segment!r} is not in {full}, or not as often")
        found.append(candidates.popleft())
    return found


def scores(hypotheses: list[str], references: list[str], language: str, settings: ScoringConfig) -> dict:
    from pipeline.scoring.bleu import matrix  # numpy and sacreBLEU, which a reader of the settings does without

    metrics = matrix(hypotheses, references, language, settings.bootstrap, settings.seed)
    return {"pairs": len(references), "metrics": metrics}


def filtered_scores(raw: Path, pair: tuple[str, str], hypotheses: list[str], settings: ScoringConfig) -> dict:
    """The scores on the filtered test set, out of `hypotheses` for the full one."""
    source, target = pair
    filtered, answers = raw / f"test_filtered.{source}", raw / f"test_filtered.{target}"
    chosen, references = places(filtered, raw / f"test.{source}"), lines(answers)
    require_aligned(filtered, len(chosen), answers, len(references))
    return scores([hypotheses[number] for number in chosen], references, target, settings)


def score(translations: Path, raw: Path, pair: tuple[str, str], settings: ScoringConfig) -> dict:
    """All that score.json holds."""
    source, target = pair
    table: dict[str, dict] = {"dev": {}, "test": {}}
    for name, checkpoint in [("dev", "last"), ("dev", "average"), ("test", "average")]:
        reference = raw / f"{name}.{target}"
        hypotheses, references = aligned(translations / f"{name}.{checkpoint}.txt", reference)
        if empty := sum(not segment.strip() for segment in references):
            print(f"score: {reference}: {empty:,} empty lines, scored as they are", file=sys.stderr)
        table[name][checkpoint] = scores(hypotheses, references, target, settings)
    if (raw / f"test_filtered.{source}").exists():
        table["test_filtered"] = {"average": filtered_scores(raw, pair, hypotheses, settings)}
    return table


def main(arguments: argparse.Namespace) -> None:
    params = load()
    pair = languages(params, entry(params, "runs", arguments.run)["corpus"])
    table = score(arguments.translations, arguments.raw, pair, scoring(params))
    write_json(arguments.out, table)
    write_json(arguments.metrics, metrics(table, arguments.translations))
    tracking.mirror_scores(arguments.run, arguments.out.parent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="score", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--translations", type=Path, required=True)
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, required=True)
    stage.run(main, parser)
