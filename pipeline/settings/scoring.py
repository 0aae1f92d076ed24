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
        resamples = "a number of resamples up to 100,000, or 0 for none, is expected"  # these take 7 GB for 3,000 sentences
        require(0 <= self.bootstrap <= 100_000, "bootstrap", self.bootstrap, resamples)
        require(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0 to 2**63 - 1 is expected")


def scoring(params: Mapping) -> ScoringConfig:
    return read(ScoringConfig, entry(params, "base", "scoring"), "params.yaml: base.scoring")
