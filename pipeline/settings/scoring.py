"""The settings for scoring translations: `base.scoring`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pipeline.settings.params import entry
from transformer.config.reading import Limits, Seed, read


@dataclass(frozen=True)
class ScoringConfig:
    bootstrap: Annotated[int, Limits(ge=0, le=100_000)]  # 100,000 take 7 GB for 3,000 sentences
    seed: Seed


def scoring(params: Mapping) -> ScoringConfig:
    return read(ScoringConfig, entry(params, "base", "scoring"), "params.yaml: base.scoring")
