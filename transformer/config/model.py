"""The settings of a model (section 3)."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from transformer.config.reading import require


@dataclass(frozen=True)
class ModelConfig:
    """The columns of Table 3 that describe a model, and variations that the table lacks. params.yaml explains each setting.

    The vocabulary size is not a setting. It comes from the data.
    """

    # For each setting added after the first models were trained, the value that those models have: {"key": value}.
    # `read_saved` uses it for files in which the key is missing. params.yaml has to state every key.
    ABSENT: ClassVar[dict[str, Any]] = {}

    N: int
    d_model: int
    d_ff: int
    h: int
    d_k: int
    d_v: int
    dropout: float
    attention_dropout: float
    relu_dropout: float
    norm: Literal["post", "pre"]
    positions: Literal["sinusoidal", "learned"]
    max_positions: int
    attention: Literal["scaled_dot_product", "dot_product", "additive"]
    neighbourhood: int

    def __post_init__(self) -> None:
        for key in ("N", "d_model", "d_ff", "h", "d_k", "d_v", "max_positions"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        for key in ("dropout", "attention_dropout", "relu_dropout"):
            require(0 <= getattr(self, key) < 1, key, getattr(self, key), "a probability from 0 to below 1 is expected")
        require(self.d_model % self.h == 0, "d_model", self.d_model, f"a multiple of h ({self.h}) is expected")
        require(self.d_model % 2 == 0, "d_model", self.d_model, "an even number is expected (one sine per cosine)")
        require(self.neighbourhood >= 0, "neighbourhood", self.neighbourhood, "0 (all positions) or a radius is expected")


def base() -> ModelConfig:
    """The paper's base model (Table 3). `dataclasses.replace(base(), h=1, d_k=512, d_v=512)` is another row."""
    return ModelConfig(
        N=6,
        d_model=512,
        d_ff=2048,
        h=8,
        d_k=64,
        d_v=64,
        dropout=0.1,
        attention_dropout=0.0,
        relu_dropout=0.0,
        norm="post",
        positions="sinusoidal",
        max_positions=1024,
        attention="scaled_dot_product",
        neighbourhood=0,
    )


def big() -> ModelConfig:
    """The paper's big model (Table 3). Its dropout is that of EN-DE; EN-FR had 0.1."""
    return replace(base(), d_model=1024, d_ff=4096, h=16, dropout=0.3)
