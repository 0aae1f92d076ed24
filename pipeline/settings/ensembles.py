"""The block `ensembles`: two models whose probabilities are averaged. An ensemble causes no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FOLDER = "ensembles"  # below models/


@dataclass(frozen=True)
class EnsembleConfig:
    """Two model folders below models/ (RUN/average)."""

    first: str
    second: str


def corpora_of_runs(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each run, by its model folder (RUN/average)."""
    return {f"{run}/average": settings["corpus"] for run, settings in params["runs"].items()}


def corpora_of_models(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each run and each ensemble, by its model folder."""
    models = corpora_of_runs(params)
    return models | {f"{FOLDER}/{name}": models[line["first"]] for name, line in params["ensembles"].items()}
