"""The block `sets`: evaluation sets besides the dev and test sets of the corpora. A set causes no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.download import Part
from pipeline.settings.params import entry
from transformer.config.reading import read, require

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test


@dataclass(frozen=True)
class SetConfig(Part):
    """An evaluation set: parallel text, normalised with the settings of its corpus."""

    corpus: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hold_out is None, "hold_out", self.hold_out, "source and target are expected, as a set has no train")


def set_config(params: Mapping[str, Any], name: str) -> SetConfig:
    return read(SetConfig, entry(params, "sets", name), f"params.yaml: sets.{name}")
