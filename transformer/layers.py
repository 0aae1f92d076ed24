"""The layers that encoder and decoder are stacks of (3.1, 3.3, 3.5), and the masks and caches they share.

Shapes: B sentences, S source positions, T target positions, D d_model, H heads, E d_k or d_v.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config.model import ModelConfig
from transformer.dropout import dropout


def sinusoids(positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same (3.5); [positions, d_model]."""
    angle_PI = torch.arange(positions, dtype=torch.float64)[:, None] * torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model)
    )
    return torch.stack([angle_PI.sin(), angle_PI.cos()], -1).flatten(1).float()


class Positions(nn.Module):
    """What is added to the embeddings at each position: sinusoids, or a learned table (Table 3, row E).

    Sinusoids know no longest sentence. Positions past the end of the learned table share its last row.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.learned = config.positions == "learned"
        if self.learned:
            self.table = nn.Parameter(torch.empty(config.max_positions, config.d_model))
        else:
            self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop`, [stop - start, D]."""
        table = self.table  # which another thread may exchange for a longer or shorter one
        if self.learned and stop > len(table):
            return table[torch.arange(start, stop, device=table.device).clamp(max=len(table) - 1)]
        if stop > len(table):
            table = self.table = sinusoids(2 * stop, table.shape[1]).to(table)
        return table[start:stop]


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (equation 2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.dropout = config.relu_dropout

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(dropout(F.relu(self.inner(x), inplace=True), self.dropout, self.training))


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4); pre-norm: x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout, self.post = config.dropout, config.norm == "post"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.post:
            return self.norm(x + dropout(sublayer(x), self.dropout, self.training))
        return x + dropout(sublayer(self.norm(x)), self.dropout, self.training)


@dataclass
class Masks:
    """Who may attend to whom in a batch. None stands for everything."""

    source: Tensor | None  # [B, 1, 1 or T, S]: for cross-attention; false at padding and at other sentences
    encoder: Tensor | None  # [B, 1, 1 or S, S]: the same, and the neighbourhood where self-attention is restricted
    decoder: Tensor | None  # [T, T] or [B, 1, T, T] where is_causal alone does not say it


@dataclass
class Weights:
    """Attention weights kept for the report, one tensor [B, H, Q, K] a layer."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x_BSD: Tensor, masks: Masks, keep: Weights | None = None) -> Tensor:
        attend, weights = self.self_attention, keep.encoder if keep else None
        x_BSD = self.residuals[0](
            x_BSD, lambda x: attend(*attend.self_projections(x), mask=masks.encoder, keep=weights)
        )
        return self.residuals[1](x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, masks: Masks, keep: Weights | None = None) -> Tensor:
        """All target positions at once, each seeing none after it. Padding stands last, so no mask need hide it."""
        attend, cross = self.self_attention, self.cross_attention
        own, other = (keep.decoder, keep.cross) if keep else (None, None)

        def attend_self(x: Tensor) -> Tensor:
            return attend(*attend.self_projections(x), masks.decoder, causal=masks.decoder is None, keep=own)

        def attend_source(x: Tensor) -> Tensor:
            return cross(cross.queries(x), *cross.keys_values(memory_BSD), masks.source, keep=other)

        x_BTD = self.residuals[0](x_BTD, attend_self)
        x_BTD = self.residuals[1](x_BTD, attend_source)
        return self.residuals[2](x_BTD, self.feed_forward)

    def step(self, x_BKD: Tensor, cache: "LayerCache", own_mask: Tensor | None, source_mask: Tensor | None) -> Tensor:
        """One new position of each hypothesis; those of a sentence are the queries of one attention."""
        attend, cross = self.self_attention, self.cross_attention

        def attend_self(x: Tensor) -> Tensor:
            q, k, v = attend.self_projections(x)
            return attend(q, *cache.append(k, v), own_mask)

        def attend_source(x: Tensor) -> Tensor:
            return cross(cross.queries(x), cache.source_k, cache.source_v, source_mask)

        x_BKD = self.residuals[0](x_BKD, attend_self)
        x_BKD = self.residuals[1](x_BKD, attend_source)
        return self.residuals[2](x_BKD, self.feed_forward)


class LayerCache:
    """One decoder layer's keys and values: of the source once a sentence, of the target as they were computed.

    Those of the target stay where they were written, position by position, of each hypothesis of the time: when one goes
    on from another, nothing moves, and a mask says which of them it descends from. The room for them doubles when it is
    full.
    """

    ROOM = 64  # keys at first

    def __init__(self, source_k: Tensor, source_v: Tensor) -> None:
        self.source_k, self.source_v = source_k.contiguous(), source_v.contiguous()  # [B, H, S, E]
        self.k, self.v = source_k[:, :, :0], source_v[:, :, :0]  # [B, H, room, E]
        self.length = 0

    def append(self, k_BHKE: Tensor, v_BHKE: Tensor) -> tuple[Tensor, Tensor]:
        """Take the newest position in; all keys and all values so far, [B, H, N, E]."""
        start, self.length = self.length, self.length + k_BHKE.shape[2]
        if self.length > self.k.shape[2]:
            self.k, self.v = self.enlarged(self.k), self.enlarged(self.v)
        self.k[:, :, start : self.length], self.v[:, :, start : self.length] = k_BHKE, v_BHKE
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def enlarged(self, old: Tensor) -> Tensor:
        new = old.new_empty(*old.shape[:2], max(self.ROOM, 2 * self.length), old.shape[3])
        new[:, :, : old.shape[2]] = old
        return new

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences."""
        for name in ("k", "v", "source_k", "source_v"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))
