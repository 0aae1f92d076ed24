"""The settings for cleaning text and filtering training pairs: `base.normalise`, and `normalise` of each corpus.

params.yaml explains each setting.
"""

from dataclasses import dataclass
from typing import Literal

from transformer.config.reading import NotNegative, Whole, require


@dataclass(frozen=True)
class NormaliseConfig:
    nfc: bool
    punctuation: bool
    entities: bool
    invalid_utf8: Literal["refuse", "replace"]
    max_words: Whole
    max_ratio: NotNegative
    deduplicate: bool
    decontaminate: bool

    def __post_init__(self) -> None:
        possible = self.max_ratio == 0 or self.max_ratio >= 1
        require(possible, "max_ratio", self.max_ratio, "0 (no limit) or a number of at least 1 is expected")
