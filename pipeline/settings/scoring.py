"""The settings for scoring translations: `base.scoring`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pipeline.settings.params import entry
from transformer.config.reading import Limits, Seed, read, require


@dataclass(frozen=True)
class ScoringConfig:
    bootstrap: Annotated[int, Limits(ge=0, le=100_000)]  # 100,000 take 7 GB for 3,000 sentences
    seed: Seed

    def __post_init__(self) -> None:
        enough = self.bootstrap == 0 or self.bootstrap >= 20
        require(enough, "bootstrap", self.bootstrap, "0, or at least 20 for an interval, is expected")


def scoring(params: Mapping) -> ScoringConfig:
    return read(ScoringConfig, entry(params, "base", "scoring"), "params.yaml: base.scoring")
