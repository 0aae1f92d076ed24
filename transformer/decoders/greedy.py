"""Greedy search: the most probable token at each position."""

import dataclasses
from dataclasses import dataclass

from transformer.config.decoders import GreedyConfig
from transformer.config.decoding import DecodingConfig
from transformer.decoders.beam import beam_search
from transformer.decoders.steps import Batch, Translation


@dataclass(frozen=True)
class Greedy:
    """Beam search with one hypothesis. The score of a translation is its log-probability. An n-best list has one entry."""

    config: DecodingConfig
    own: GreedyConfig

    def search(self, batch: Batch, n_best: int) -> list[list[Translation]]:
        config = dataclasses.replace(self.config, beam=1, alpha=0.0)
        return beam_search(batch.start(), batch.limits, config, batch.device)

    def width(self, n_best: int) -> int:
        return 1
