"""The few numbers by which a person compares runs: `dvc metrics show` prints them, and the page has the rest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import entry
from transformer.files import read_json


def metrics(table: Mapping[str, Any], translations: Path) -> dict[str, float]:
    """The content of metrics.json: the test set's scores from `table`, that of score.json, and dev's perplexity."""
    description = translations / "translations.json"
    perplexity = entry(read_json(description), "dev.average.perplexity", float, str(description))
    return {**of_set("test", table["test"]["average"]), "dev_perplexity": perplexity}


def of_set(name: str, scored: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one translation of a set that people compare, named after the set."""
    names = {"sacrebleu": "bleu-13a", "bleu_paper": "bleu-paper", "chrf": "chrf"}
    return {f"{name}_{short}": scored["metrics"][measure]["score"] for short, measure in names.items()}
