"""Score a run's translations by every measure of pipeline/scoring/bleu.py, with 95% intervals and signatures.

    python -m pipeline.score RUN --translations scores/RUN/translations --dev data/sets/CORPUS-dev \\
        --test data/sets/CORPUS-test --training scores/RUN/training.jsonl --out scores/RUN/score.json \\
        --metrics scores/RUN/metrics.json --plots scores/RUN/plots

Reads params.yaml (base.scoring) and the raw text of the sets, whose target side holds the references. Reads
dev.last.txt, dev.average.txt and test.average.txt in --translations, with one detokenised segment per line. Reads the
perplexity from translations.json in the same folder.

Writes {set: {checkpoint: {"pairs": n, "metrics": {measure: {"score", "low", "high", "signature"}}}}}. The set
test_filtered is present if the test set has a filtered part. metrics.json holds the scores and the last losses that
`dvc metrics show` prints. --plots receives the curves of the training and the scores for `dvc plots show`.
"""

import argparse
from pathlib import Path

from pipeline.running import followers, stage
from pipeline.scoring.curves import read_curve, write_plots
from pipeline.scoring.of_sets import of_test_set, set_scores
from pipeline.settings.params import load
from pipeline.settings.score_files import entry
from pipeline.settings.scoring import ScoringConfig, scoring
from pipeline.text.evaluation import EvaluationSet
from transformer.files import read_json, write_json


def score(translations: Path, sets: dict[str, EvaluationSet], settings: ScoringConfig) -> dict:
    """The content of score.json."""
    table: dict[str, dict] = {"dev": {}, "test": {}}
    for name, checkpoint in [("dev", "last"), ("dev", "average"), ("test", "average")]:
        found = set_scores(translations / f"{name}.{checkpoint}.txt", sets[name], settings)
        table[name][checkpoint] = found["set"]
        if "filtered" in found:
            table[f"{name}_filtered"] = {checkpoint: found["filtered"]}
    return table


def main(arguments: argparse.Namespace) -> None:
    with followers.mirroring(arguments.out.parent):
        sets = {"dev": EvaluationSet.open(arguments.dev), "test": EvaluationSet.open(arguments.test)}
        table = score(arguments.translations, sets, scoring(load()))
        write_json(arguments.out, table)
        losses = write_plots(arguments.plots, read_curve(arguments.training), table)
        described = arguments.translations / "translations.json"
        perplexity = entry(read_json(described), "dev.average.perplexity", float, str(described))
        write_json(arguments.metrics, {**of_test_set(table["test"]["average"]), "dev_perplexity": perplexity, **losses})


if __name__ == "__main__":
    stage.script(main, "score", __doc__, "translations training dev test out metrics plots", run="a run of params.yaml")
