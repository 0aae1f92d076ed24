"""The block `ensembles` of params.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.settings.models import corpus_of
from pipeline.settings.registry import AVERAGE, Block
from transformer.config.reading import UserError


@dataclass(frozen=True)
class EnsembleConfig:
    """An entry of `ensembles`: two model folders below models/ (RUN/average), whose probabilities are averaged."""

    first: str
    second: str


def check_ensemble(params: Mapping, name: str, where: str) -> None:
    first, second = (corpus_of(params, params["ensembles"][name][key]) for key in ("first", "second"))
    if first != second:
        raise UserError(f"{where}: the corpora are {first} and {second}; two runs with the same corpus are expected")


BLOCKS = {
    "ensembles": Block(
        EnsembleConfig, {"first": AVERAGE, "second": AVERAGE}, folder="ensembles", models=True, check=check_ensemble
    )
}
