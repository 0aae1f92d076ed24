"""The block `reverse_scores`: the decodings of a set are scored by a run of the reverse direction.

A line of the block causes no training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry
from transformer.config.reading import read


@dataclass(frozen=True)
class ReverseScore:
    """A model folder below models/ (RUN/average) and a set below data/sets/. The model scores the set's decodings."""

    model: str
    set: str


def reverse_score(params: Mapping[str, Any], name: str) -> ReverseScore:
    return read(ReverseScore, entry(params, "reverse_scores", name), f"params.yaml: reverse_scores.{name}")
