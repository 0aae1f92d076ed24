"""The settings of the value: what it predicts, its head and its training. docs/reference.md explains them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from transformer.config.reading import LARGEST, Count, Limits, Positive, Seed


@dataclass(frozen=True)
class ValueConfig:
    """A head on the decoder's output, trained on translations that the model samples."""

    score: Literal["bleu", "chrf", "source_probability"]
    sentences: Count
    bins: Annotated[int, Limits(ge=2, le=LARGEST)]
    hidden: Count
    steps: Count
    batch: Count
    learning_rate: Positive
    seed: Seed
