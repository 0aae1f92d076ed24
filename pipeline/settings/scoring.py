"""The settings for scoring translations: `base.scoring`."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.settings.params import entry
from transformer.config.reading import read, require


@dataclass(frozen=True)
class ScoringConfig:
    bootstrap: int
    seed: int

    def __post_init__(self) -> None:
        require(self.bootstrap >= 0, "bootstrap", self.bootstrap, "a number of resamples, or 0 for none, is expected")
        # sacreBLEU's paired test treats a seed of 0 as no seed
        require(0 < self.seed < 2**63, "seed", self.seed, "a whole number from 1 to 2**63 - 1 is expected")


def scoring(params: Mapping) -> ScoringConfig:
    return read(ScoringConfig, entry(params, "base", "scoring"), "params.yaml: base.scoring")
