"""The settings of the vocabulary (section 5.1)."""

from dataclasses import dataclass
from typing import Literal

from transformer.config.reading import require, require_threads

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # the first ids of every vocabulary of this project


@dataclass(frozen=True)
class VocabularyConfig:
    """One vocabulary (5.1). params.yaml explains each setting."""

    pieces: int
    unknown: Literal["byte_fallback", "unk"]
    character_coverage: float
    sample_pairs: int
    threads: int

    def __post_init__(self) -> None:
        require(self.pieces > 0, "pieces", self.pieces, "a whole number above 0 is expected")
        require_threads(self.threads)
        require(self.sample_pairs >= 0, "sample_pairs", self.sample_pairs, "0 (all) or a number of pairs is expected")
        require(0 < self.character_coverage <= 1, "character_coverage", self.character_coverage, "above 0, at most 1")
