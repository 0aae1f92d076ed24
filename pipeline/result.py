"""Collect what the report shows of a run into one small file, which git tracks.

    python -m pipeline.result RUN --scores scores/RUN --corpus scores/corpora/CORPUS/binarise.json \\
        --dev data/sets/CORPUS-dev --out results/RUN.json

Reads training.json, its curve in training.jsonl, the translations, score.json and flops.json of the run in --scores,
the languages in --corpus, and the dev set.

Writes the contents of these files, the curve with fewer points, and the statistics of each dev sentence from which tests
between trainings compute BLEU. The file holds no text of the corpus, so it can be published whatever the licence of the
corpus. It holds no time, hardware or commit, so equal results have equal files.
"""

import argparse
from pathlib import Path
from typing import Any

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.curves import read_curve
from pipeline.scoring.intervals import statistics
from pipeline.settings.params import load
from pipeline.settings.selection import bpe_dropout
from pipeline.workflow import stage
from transformer.files import read_json, write_json

PARTS = {
    "training": "training.json",
    "translations": "translations/translations.json",
    "score": "score.json",
    "flops": "flops.json",
}
DEV_TRANSLATION = "translations/dev.last.txt"


def result(params: dict, run: str, scores: Path, corpus: Path, dev: Path) -> dict[str, Any]:
    """The content of results/RUN.json."""
    differences = dict(params["runs"][run])
    head = {"run": run, "corpus": differences.pop("corpus"), "model": differences.pop("model"), "differences": differences}
    head |= {"languages": read_json(corpus)["languages"], "bpe_dropout": bpe_dropout(params, head["corpus"])}
    parts = {part: read_json(scores / file) for part, file in PARTS.items()}
    counts = statistics(scores / DEV_TRANSLATION, EvaluationSet.open(dev))
    return {**head, **parts, "curve": read_curve(scores / "training.jsonl"), "statistics": counts}


def main(arguments: argparse.Namespace) -> None:
    write_json(arguments.out, result(load(), arguments.run, arguments.scores, arguments.corpus, arguments.dev))


if __name__ == "__main__":
    stage.script(main, "result", __doc__, "scores corpus dev out", run="a run of params.yaml")
