"""The trainings of a search, for `pipeline.commands.plan`."""

from collections.abc import Mapping
from typing import Any

from pipeline.extras.search.settings import search, trial_settings
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig

STAGE, BLOCK = "tune", "searches"


def trainings(params: Mapping[str, Any], name: str) -> tuple[int, str, ModelConfig, TrainingConfig]:
    """Return the number of trials of a search, their corpus and the settings of one."""
    chosen = search(params, name)
    return chosen.trials, chosen.corpus, *trial_settings(params, name, chosen, {})
