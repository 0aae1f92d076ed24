"""The layers of encoder and decoder (3.1), positions (3.5), masks and the cache of incremental decoding.

Shapes: B sentences, S source positions, T target positions, K hypotheses, N keys, D d_model, H heads, E d_k or d_v.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config.model import ModelConfig
from transformer.dropout import dropout
from transformer.fused import Spans, add_and_norm, lowered, relu_of_linear, trains


def sinusoids(positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of this angle (3.5); [positions, d_model]."""
    angle_PI = torch.arange(positions, dtype=torch.float64)[:, None] * torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model)
    )
    return torch.stack([angle_PI.sin(), angle_PI.cos()], -1).flatten(1).float()


class Positions(nn.Module):
    """The position encodings that are added to the embeddings: sinusoids (3.5) or a learned table (Table 3, row E).

    The table of sinusoids grows with the widest row. Positions beyond the end of the learned table use its last
    row.
    """

    table: Tensor  # a parameter if `learned`, else a buffer

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.learned = config.positions == "learned"
        if self.learned:
            self.table = nn.Parameter(torch.empty(config.max_positions, config.d_model))
        else:
            self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """The encodings of the positions from `start` up to, not including, `stop`: [stop - start, D]."""
        table = self.table  # read once: another thread may replace it
        if self.learned and stop > len(table):
            return table[torch.arange(start, stop, device=table.device).clamp(max=len(table) - 1)]
        if stop > len(table):
            table = self.table = sinusoids(2 * stop, table.shape[1]).to(table)
        return table[start:stop]

    def at(self, position_BS: Tensor) -> Tensor:
        """The encodings of the positions of packed rows, [B, S, D]."""
        if self.learned:
            return F.embedding(position_BS.clamp(max=len(self.table) - 1), self.table)
        return F.embedding(position_BS, self(0, position_BS.shape[1]))


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (3.3, equation 2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.dropout = config.relu_dropout

    def forward(self, x: Tensor) -> Tensor:
        """The input of `outer`, [..., d_ff]."""
        if trains(self, x) and not self.dropout:
            return relu_of_linear(*(lowered(each) for each in (x, self.inner.weight, self.inner.bias)))
        return dropout(F.relu(self.inner(x)), self.dropout, self.training)


class Residual(nn.Module):
    """Post-norm: LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4). Pre-norm: x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout, self.post = config.dropout, config.norm == "post"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], last: nn.Linear) -> Tensor:
        """`last` is the linear layer at the end of the sublayer, and `sublayer` what precedes it."""
        norm = self.norm
        if not self.post:
            return x + dropout(last(sublayer(norm(x))), self.dropout, self.training)
        if trains(self, x):
            change = F.linear(sublayer(x), last.weight)
            return add_and_norm(lowered(x), change, last.bias, norm.weight, norm.bias, self.dropout, norm.eps)[0]
        return norm(x + dropout(last(sublayer(x)), self.dropout, self.training))


@dataclass
class Masks:
    """The attention masks of a batch, true where a query may attend to a key."""

    source: Tensor | Spans  # [B, 1, 1 or T, S], for cross-attention: false at padding and at other sentences
    encoder: Tensor | Spans  # [B, 1, 1 or S, S]: as `source`, and false outside the neighbourhood
    decoder: Tensor | Spans | None  # [T, T] or [B, 1, T, T], causal; None where `is_causal` is enough


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network (3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x_BSD: Tensor, masks: Masks) -> Tensor:
        """[B, S, D]."""
        attend, feed = self.self_attention, self.feed_forward
        x_BSD = self.residuals[0](x_BSD, lambda x: attend.to_itself(x, masks.encoder), attend.output)
        return self.residuals[1](x_BSD, feed, feed.outer)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the encoder's output, then the feed-forward network (3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, masks: Masks) -> Tensor:
        """All target positions at once, [B, T, D].

        Padding follows the target, so the causal mask already hides it from the target's positions.
        """
        attend, cross, feed, causal = self.self_attention, self.cross_attention, self.feed_forward, masks.decoder is None
        x_BTD = self.residuals[0](x_BTD, lambda x: attend.to_itself(x, masks.decoder, causal), attend.output)
        x_BTD = self.residuals[1](x_BTD, lambda x: cross.to_memory(x, memory_BSD, masks.source), cross.output)
        return self.residuals[2](x_BTD, feed, feed.outer)

    def step(self, x_BKD: Tensor, cache: "LayerCache", own_mask: Tensor | None, source_mask: Tensor | None) -> Tensor:
        """One new position of each hypothesis, [B, K, D]. The K hypotheses of a sentence are queries on shared keys."""
        attend, cross, feed = self.self_attention, self.cross_attention, self.feed_forward

        def attend_self(x: Tensor) -> Tensor:
            q, k, v = attend.self_projections(x)
            return attend(q, *cache.append(k, v), own_mask)

        def attend_source(x: Tensor) -> Tensor:
            return cross(cross.queries(x), cache.source_k, cache.source_v, source_mask)

        x_BKD = self.residuals[0](x_BKD, attend_self, attend.output)
        x_BKD = self.residuals[1](x_BKD, attend_source, cross.output)
        return self.residuals[2](x_BKD, feed, feed.outer)


class LayerCache:
    """The keys and values of one decoder layer: those of the source, computed once, and those of the target so far.

    Each step appends the keys of all K hypotheses. No keys are moved or copied when a hypothesis continues another. A
    mask (`DecoderCache.mask_BKN`) selects the keys of each hypothesis and its ancestors. The capacity doubles when it
    is exhausted.
    """

    CAPACITY = 64  # keys, initially

    def __init__(self, source_k: Tensor, source_v: Tensor) -> None:
        self.source_k, self.source_v = source_k.contiguous(), source_v.contiguous()  # [B, H, S, E]
        self.k, self.v = source_k[:, :, :0], source_v[:, :, :0]  # [B, H, capacity, E]
        self.length = 0

    def append(self, k_BHKE: Tensor, v_BHKE: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the newest position. Returns those of all positions, each [B, H, N, E]."""
        start, self.length = self.length, self.length + k_BHKE.shape[2]
        if self.length > self.k.shape[2]:
            self.k, self.v = self.enlarged(self.k), self.enlarged(self.v)
        self.k[:, :, start : self.length], self.v[:, :, start : self.length] = k_BHKE, v_BHKE
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def enlarged(self, old: Tensor) -> Tensor:
        new = old.new_empty(*old.shape[:2], max(self.CAPACITY, 2 * self.length), old.shape[3])
        new[:, :, : old.shape[2]] = old
        return new

    def select(self, sentences: Tensor) -> None:
        """Keep the sentences with these indices and drop the others."""
        for name in ("k", "v", "source_k", "source_v"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))
