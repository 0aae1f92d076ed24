"""Collect what the report shows of a run into one small file, which git tracks.

    python -m pipeline.result RUN --scores scores/RUN --corpus scores/corpora/CORPUS/binarise.json \\
        --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test --out results/RUN.json \\
        --translation results/translations/RUN.txt.bz2

Reads training.json, its curve in training.jsonl, the translations, score.json and flops.json of the run in --scores,
the languages and the BPE-dropout in --corpus, and both evaluation sets.

Writes the contents of these files, the curve with fewer points, and the statistics of each sentence of dev (last
checkpoint) and test (averaged), from which tests between trainings compute BLEU. Writes the translations of test to
--translation. Neither file holds text of the corpus, so both can be published whatever its licence. They hold no time,
hardware or commit, so equal results have equal files.
"""

import argparse
import bz2

from pipeline.running import stage
from pipeline.scoring.curves import read_curve
from pipeline.scoring.intervals import statistics
from pipeline.settings.params import load
from pipeline.text.evaluation import EvaluationSet
from transformer.files import read_json, write_file, write_json

PARTS = {
    "training": "training.json",
    "translations": "translations/translations.json",
    "score": "score.json",
    "flops": "flops.json",
}
DEV_TRANSLATION = "translations/dev.last.txt"
TEST_TRANSLATION = "translations/test.average.txt"


def main(arguments: argparse.Namespace) -> None:
    run, scores, data = arguments.run, arguments.scores, read_json(arguments.corpus)
    differences = dict(load()["runs"][run])
    head = {"run": run, "corpus": differences.pop("corpus"), "model": differences.pop("model"), "differences": differences}
    head |= {key: data[key] for key in ("languages", "bpe_dropout")}
    parts = {part: read_json(scores / file) for part, file in PARTS.items()}
    places = {"statistics": (DEV_TRANSLATION, arguments.dev), "test_statistics": (TEST_TRANSLATION, arguments.test)}
    counts = {key: statistics(scores / file, EvaluationSet.open(folder)) for key, (file, folder) in places.items()}
    translation = (scores / TEST_TRANSLATION).read_bytes()
    write_file(arguments.translation, bz2.compress(translation))  # bzip2, whose bytes depend on no version
    write_json(arguments.out, {**head, **parts, "curve": read_curve(scores / "training.jsonl"), **counts})


if __name__ == "__main__":
    stage.script(main, "result", __doc__, "scores corpus dev test out translation", run="a run of params.yaml")
