"""The settings of a model (section 3)."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from transformer.config.reading import Count, Share, Whole, require, require_valid


@dataclass(frozen=True)
class ModelConfig:
    """The columns of Table 3 that describe a model, and variations that the table lacks. params.yaml explains each setting.

    The vocabulary size is not a setting. It comes from the data.
    """

    # For each setting added after the first models were trained, the value that those models have: {"key": value}.
    # `read_saved` uses it for files in which the key is missing. params.yaml has to state every key.
    ABSENT: ClassVar[dict[str, Any]] = {}

    N: Count
    d_model: Count
    d_ff: Count
    h: Count
    d_k: Count
    d_v: Count
    dropout: Share
    attention_dropout: Share
    relu_dropout: Share
    norm: Literal["post", "pre"]
    positions: Literal["sinusoidal", "learned"]
    max_positions: Count
    attention: Literal["scaled_dot_product", "dot_product", "additive"]
    neighbourhood: Whole

    def __post_init__(self) -> None:
        require_valid(self)
        require(self.d_model % 2 == 0, "d_model", self.d_model, "an even number is expected (one sine per cosine)")


def base() -> ModelConfig:
    """The paper's base model (Table 3), with the values of ABSENT.

    `dataclasses.replace(base(), h=1, d_k=512, d_v=512)` is another row.
    """
    return ModelConfig(
        **ModelConfig.ABSENT,
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
