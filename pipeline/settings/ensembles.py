"""The block `ensembles`: two models whose probabilities are averaged. An ensemble causes no training."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry
from transformer.config.reading import UserError, read, shown

FOLDER = "ensembles"  # below models/


@dataclass(frozen=True)
class EnsembleConfig:
    """Two model folders below models/ (RUN/average)."""

    first: str
    second: str


def ensemble(params: Mapping[str, Any], name: str) -> EnsembleConfig:
    """Return the ensemble `name`. Both models must be of selected runs with the same corpus."""
    where = f"params.yaml: ensembles.{name}"
    config = read(EnsembleConfig, entry(params, "ensembles", name), where)
    corpora = corpora_of_runs(params)
    for key, model in vars(config).items():
        require_model(model, corpora, f"{where}.{key}")
    first, second = corpora[config.first], corpora[config.second]
    if first != second:
        raise UserError(f"{where}: the corpora are {first} and {second}; two runs with the same corpus are expected")
    return config


def corpora_of_runs(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each run, by its model folder (RUN/average)."""
    return {f"{run}/average": settings["corpus"] for run, settings in params["runs"].items()}


def require_model(model: str, models: Iterable[str], where: str) -> None:
    if model not in models:
        raise UserError(f"{where}: {shown(model)} is not a model here; the models are {', '.join(models)}")


def corpora_of_models(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each run and each ensemble, by its model folder."""
    models = corpora_of_runs(params)
    return models | {f"{FOLDER}/{name}": models[ensemble(params, name).first] for name in params["ensembles"]}
