"""Compares the settings and the corpus of a finished training with those that params.yaml now gives the run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import within
from pipeline.settings.selection import run_settings
from pipeline.workflow.text import content
from transformer.config.model import ModelConfig
from transformer.config.reading import read_saved
from transformer.config.training import TrainingConfig


def changes(params: Mapping[str, Any], run: str, training: Mapping[str, Any], scores: Path) -> list[str]:
    """Return the names of the settings that have changed since the training, and `corpus` if the data has changed.

    `training` is the content of training.json. A corpus without scores/corpora/CORPUS/binarise.json has not been built.
    """
    corpus, model, settings = run_settings(params, run)
    before: dict[str, Any] = {}
    for key, cls in (("model", ModelConfig), ("training", TrainingConfig)):
        before |= vars(read_saved(cls, training["settings"][key], f"training.json of {run}: settings.{key}"))
    found = [key for key, value in (vars(model) | vars(settings)).items() if before[key] != value]
    built = content(scores / "corpora" / corpus / "binarise.json")
    if within(built, "data_sum") != training["data_sum"]:
        found.insert(0, "corpus")
    return found
