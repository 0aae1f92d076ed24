"""The block `ensembles`: two models whose probabilities are averaged. It causes no training."""

from collections.abc import Mapping
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
    corpora = {f"{run}/average": settings["corpus"] for run, settings in params["runs"].items()}
    for key, model in vars(config).items():
        if model not in corpora:
            models = ", ".join(corpora)
            raise UserError(f"{where}.{key}: {shown(model)} is not a model of `runs`; the models are {models}")
    first, second = corpora[config.first], corpora[config.second]
    if first != second:
        raise UserError(f"{where}: the corpora are {first} and {second}; two runs with the same corpus are expected")
    return config


def corpora_of_models(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each model that a decoding can name."""
    models = {f"{run}/average": settings["corpus"] for run, settings in params["runs"].items()}
    return models | {f"{FOLDER}/{name}": models[ensemble(params, name).first] for name in params["ensembles"]}
