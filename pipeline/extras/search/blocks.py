"""The block `searches` of params.yaml."""

from collections.abc import Mapping
from typing import Any

from pipeline.extras.search.settings import Search, search, trial_settings
from pipeline.settings.registry import MODEL, Block
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig


def trainings(params: Mapping[str, Any], name: str) -> tuple[int, str, ModelConfig, TrainingConfig]:
    """Return the number of trials of a search, their corpus and the settings of one."""
    chosen = search(params, name)
    return chosen.trials, chosen.corpus, *trial_settings(params, name, chosen, {})


NAMES = {"corpus": "the corpus of a run", "model": MODEL}  # the user compares the best trial with this run
BLOCKS = {
    "searches": Block(
        Search,
        NAMES,
        beside="runs",
        folder="searches",
        check=lambda params, name, _: search(params, name),
        trains="tune",
        trainings=trainings,
    )
}
