"""The scores by which runs and decodings are compared. `dvc metrics show` prints them; the report shows all scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import entry
from transformer.files import read_json


def metrics(table: Mapping[str, Any], translations: Path) -> dict[str, float]:
    """The content of metrics.json: the test set's scores and dev's perplexity. `table` is the content of score.json."""
    description = translations / "translations.json"
    perplexity = entry(read_json(description), "dev.average.perplexity", float, str(description))
    return {**of_set("test", table["test"]["average"]), "dev_perplexity": perplexity}


def of_set(name: str, scored: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one translation of a set for metrics.json. Each key begins with `name`."""
    names = {"sacrebleu": "bleu-13a", "bleu_paper": "bleu-paper", "chrf": "chrf"}
    return {f"{name}_{short}": scored["metrics"][measure]["score"] for short, measure in names.items()}
