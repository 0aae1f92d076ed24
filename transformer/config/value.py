"""The settings of the value: what it predicts, its head and its training. docs/search.md explains them."""

from dataclasses import dataclass
from typing import Literal

from transformer.config.reading import require, require_seed


@dataclass(frozen=True)
class ValueConfig:
    """A head on the decoder's output, trained on translations that the model samples."""

    score: Literal["bleu", "chrf", "source_probability"]
    sentences: int
    bins: int
    hidden: int
    steps: int
    batch: int
    learning_rate: float
    seed: int

    def __post_init__(self) -> None:
        for key in ("sentences", "hidden", "steps", "batch"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        require(self.bins > 1, "bins", self.bins, "a whole number above 1 is expected")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "a number above 0 is expected")
        require_seed(self.seed)
