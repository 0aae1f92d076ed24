"""The few numbers by which a person compares runs: `dvc metrics show` prints them, and the page has the rest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import entry
from transformer.files import read_json


def metrics(table: Mapping[str, Any], translations: Path) -> dict[str, float]:
    """The content of metrics.json: scores of the test set from `table`, which score.json holds, and dev's perplexity."""
    description = translations / "translations.json"
    perplexity = entry(read_json(description), "dev.average.perplexity", float, str(description))
    cells = table["test"]["average"]["metrics"]
    names = {"sacrebleu": "bleu-13a", "bleu_paper": "bleu-paper", "chrf": "chrf"}
    return {
        **{f"test_{name}": cells[measure]["score"] for name, measure in names.items()},
        "dev_perplexity": perplexity,
    }
