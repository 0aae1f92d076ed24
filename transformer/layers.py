"""The parts of a layer (section 3.1), the feed-forward network (3.3), the positions (3.5) and the layers (3.1).

Shapes: B sentences, S source positions, T target positions, P positions, D d_model.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import Keys, Masks, MultiHeadAttention
from transformer.config.model import ModelConfig


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4). With pre-norm: x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig, dropout: type[nn.Dropout] = nn.Dropout) -> None:
        super().__init__()
        self.norm, self.pre = nn.LayerNorm(config.d_model), config.norm == "pre"
        self.dropout = dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class FeedForward(nn.Module):
    """Position-wise feed-forward network (3.3)."""

    def __init__(self, config: ModelConfig, dropout: type[nn.Dropout] = nn.Dropout) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)  # W_1, b_1
        self.outer = nn.Linear(config.d_ff, config.d_model)  # W_2, b_2
        self.dropout = dropout(config.relu_dropout)  # not in the paper

    def forward(self, x: Tensor) -> Tensor:
        """max(0, x W_1 + b_1) W_2 + b_2 (equation 2)."""
        return self.outer(self.dropout(F.relu(self.inner(x))))


def sinusoids(positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of this angle (3.5); [positions, d_model]."""
    position = torch.arange(positions, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angle = position * torch.exp(even * (-math.log(10000.0) / d_model))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()


class Positions(nn.Module):
    """The position encodings that are added to the embeddings: sinusoids (3.5) or a learned table (Table 3, row E).

    The table of sinusoids grows with the longest sentence. Positions beyond the end of the learned table use its last row.
    """

    table: Tensor  # a parameter if `learned`, else a buffer

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.learned = config.positions == "learned"
        if self.learned:
            self.table = nn.Parameter(torch.empty(config.max_positions, config.d_model))
        else:
            self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def forward(self, position: Tensor, stop: int) -> Tensor:
        """The encodings of these positions, [..., D]. All are below `stop`."""
        table = self.table  # read once: another thread may replace it
        if self.learned:
            position = position.clamp(max=len(table) - 1)
        elif stop > len(table):
            table = self.table = sinusoids(2 * stop, table.shape[1]).to(table)
        return F.embedding(position, table)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network (3.1)."""

    def __init__(self, config: ModelConfig, dropout: type[nn.Dropout] = nn.Dropout) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, dropout)
        self.feed_forward = FeedForward(config, dropout)
        self.residuals = nn.ModuleList(Residual(config, dropout) for _ in range(2))  # in the order of `forward`

    def forward(self, x_BSD: Tensor, mask: Tensor) -> Tensor:
        """The layer's output, [B, S, D]."""
        x_BSD = self.residuals[0](x_BSD, lambda x: self.self_attention(x, x, mask))
        return self.residuals[1](x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the encoder's output, then the feed-forward network (3.1)."""

    def __init__(self, config: ModelConfig, dropout: type[nn.Dropout] = nn.Dropout) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, dropout)
        self.cross_attention = MultiHeadAttention(config, dropout)
        self.feed_forward = FeedForward(config, dropout)
        self.residuals = nn.ModuleList(Residual(config, dropout) for _ in range(3))  # in the order of `forward`

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor | None, masks: Masks, cache: "LayerCache | None" = None) -> Tensor:
        """The layer's output, [B, T, D]. With a `cache`, whose `source` has the keys of the memory, the memory is None."""
        target, source = cache or (None, None)
        x_BTD = self.residuals[0](x_BTD, lambda x: self.self_attention(x, x, masks.decoder, target))
        x_BTD = self.residuals[1](x_BTD, lambda x: self.cross_attention(x, memory_BSD, masks.cross, source))
        return self.residuals[2](x_BTD, self.feed_forward)


class LayerCache(NamedTuple):
    """What incremental decoding keeps of a decoder layer: the keys and values of the target so far and of the source."""

    target: Keys
    source: Keys


class Layers(NamedTuple):
    """The classes that a model is built of. transformer/fast/ has others with the same weights."""

    encoder: Callable[..., EncoderLayer] = EncoderLayer
    decoder: Callable[..., DecoderLayer] = DecoderLayer
    dropout: type[nn.Dropout] = nn.Dropout


REFERENCE = Layers()
