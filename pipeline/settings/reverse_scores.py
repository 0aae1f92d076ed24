"""The block `reverse_scores`: a run of the reverse direction scores the decodings of a set. It causes no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry
from transformer.config.reading import read


@dataclass(frozen=True)
class ReverseScore:
    """A model folder below models/ (RUN/average), and the set below data/sets/ whose decodings it scores."""

    model: str
    set: str


def reverse_score(params: Mapping[str, Any], name: str) -> ReverseScore:
    return read(ReverseScore, entry(params, "reverse_scores", name), f"params.yaml: reverse_scores.{name}")
