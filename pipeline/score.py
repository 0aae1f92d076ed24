"""Score: a run's translations by every measure of pipeline/bleu.py, with 95% intervals and signatures.

    python -m pipeline.score RUN --translations scores/RUN/translations --raw data/CORPUS/raw --out scores/RUN/score.json

Reads params.yaml (base.scoring, runs.RUN, corpora.CORPUS.languages); of the translations dev.last.txt, dev.average.txt
and test.average.txt, one detokenised segment a line; of the raw text, which nothing has normalised, dev and test as
references, and test_filtered where the corpus has one: its segments are picked out of the translation of the full set.

Writes {set: {checkpoint: {"pairs": n, "metrics": {measure: {"score", "low", "high", "signature"}}}}}. An empty
reference is scored like any other, as one of length 0: leaving it out would give another test set the same name.
"""

import argparse
import sys
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline import stage, tracking
from pipeline.corpora.sets import require_aligned
from pipeline.params import entry, languages, load
from transformer.config.reading import UserError, read, require
from transformer.files import write_json


@dataclass(frozen=True)
class ScoringConfig:
    bootstrap: int
    seed: int

    def __post_init__(self) -> None:
        require(self.bootstrap >= 0, "bootstrap", self.bootstrap, "a number of resamples, or 0 for none, is expected")
        # sacreBLEU's paired test takes a seed of 0 for none at all
        require(self.seed > 0, "seed", self.seed, "a whole number above 0 is expected")


def scoring(params: Mapping) -> ScoringConfig:
    return read(ScoringConfig, entry(params, "base", "scoring"), "params.yaml: base.scoring")


def lines(path: Path) -> list[str]:
    """The segments of a text file; they end at "\\n" only, any other line separator is part of one."""
    try:
        segments = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; the file is to be UTF-8 text") from None
    return segments if segments[-1] else segments[:-1]


def aligned(translation: Path, reference: Path) -> tuple[list[str], list[str]]:
    """The segments of both files, of which there must be as many in one as in the other."""
    hypotheses, references = lines(translation), lines(reference)
    require_aligned(translation, len(hypotheses), reference, len(references))
    if not references:
        raise UserError(f"{reference} is empty; there is nothing to score {translation} against")
    return hypotheses, references


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
    from pipeline.bleu import matrix  # numpy and sacreBLEU, which a reader of the settings does without

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
    write_json(arguments.out, score(arguments.translations, arguments.raw, pair, scoring(params)))
    tracking.mirror_scores(arguments.run, arguments.out.parent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="score", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--translations", type=Path, required=True)
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    stage.run(main, parser)
