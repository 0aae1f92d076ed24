"""The settings of the vocabulary (section 5.1)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from transformer.config.reading import Count, Limits, Seed, Share, Threads, Whole, require


@dataclass(frozen=True)
class VocabularyConfig:
    """One vocabulary (5.1). params.yaml explains each setting."""

    pieces: Count
    unknown: Literal["byte_fallback", "unk"]
    character_coverage: Annotated[float, Limits(ge=0.98, le=1)]  # as SentencePiece requires
    sample_pairs: Whole
    bpe_dropout: Share
    segmentations: Count
    seed: Seed
    threads: Threads

    def __post_init__(self) -> None:
        valid = self.bpe_dropout > 0 or self.segmentations == 1
        require(valid, "segmentations", self.segmentations, "1 is expected, since bpe_dropout is 0")
