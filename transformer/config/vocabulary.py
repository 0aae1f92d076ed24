"""The settings of the vocabulary (section 5.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from transformer.config.reading import require, require_seed, require_threads

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # the first ids of every vocabulary of this project


@dataclass(frozen=True)
class VocabularyConfig:
    """One vocabulary (5.1). params.yaml explains each setting."""

    ABSENT: ClassVar[dict[str, Any]] = {"bpe_dropout": 0.0, "segmentations": 1, "seed": 1}  # as in ModelConfig

    pieces: int
    unknown: Literal["byte_fallback", "unk"]
    character_coverage: float
    sample_pairs: int
    bpe_dropout: float
    segmentations: int
    seed: int
    threads: int

    def __post_init__(self) -> None:
        require(self.pieces > 0, "pieces", self.pieces, "a whole number above 0 is expected")
        require_threads(self.threads)
        require(self.sample_pairs >= 0, "sample_pairs", self.sample_pairs, "0 (all) or a number of pairs is expected")
        probability = "a probability from 0 (off) to below 1 is expected"
        require(0 <= self.bpe_dropout < 1, "bpe_dropout", self.bpe_dropout, probability)
        several = self.bpe_dropout > 0
        expected = "a whole number above 0 is expected" if several else "1 is expected, since bpe_dropout is 0"
        valid = self.segmentations > 0 if several else self.segmentations == 1
        require(valid, "segmentations", self.segmentations, expected)
        require_seed(self.seed)
        least = "a number from 0.98 to 1 is expected"  # as SentencePiece requires
        require(0.98 <= self.character_coverage <= 1, "character_coverage", self.character_coverage, least)
