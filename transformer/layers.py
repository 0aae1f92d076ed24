"""The layers that encoder and decoder are stacks of (3.1, 3.3, 3.5), and the masks and caches they share.

Shapes: B sentences, S source positions, T target positions, D d_model, H heads, E d_k or d_v.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, position_mask
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
        if stop <= len(self.table):
            return self.table[start:stop]
        if not self.learned:
            self.table = sinusoids(2 * stop, self.table.shape[1]).to(self.table)
            return self.table[start:stop]
        return self.table[torch.arange(start, stop, device=self.table.device).clamp(max=len(self.table) - 1)]


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (equation 2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.dropout = config.relu_dropout

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(dropout(F.relu(self.inner(x)), self.dropout, self.training))


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
        self.neighbourhood = config.neighbourhood

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

    def step(self, x_RD: Tensor, cache: "LayerCache", source_mask: Tensor | None) -> Tensor:
        """One new position of R = B x beam hypotheses, their earlier keys and values taken from `cache`."""

        def attend_self(x_R1D: Tensor) -> Tensor:
            q, k, v = self.self_attention.self_projections(x_R1D)
            cache.append(k, v)
            at = cache.length - 1
            mask = position_mask(range(at, at + 1), cache.length, True, self.neighbourhood, x_RD.device)
            return self.self_attention(q, cache.k, cache.v, mask)

        def attend_source(x_R1D: Tensor) -> Tensor:
            # A sentence's hypotheses are queries of one attention, so its keys and values are kept once, not per beam.
            q_BKD = x_R1D.view(len(cache.source_k), -1, x_R1D.shape[-1])
            attended = self.cross_attention(
                self.cross_attention.queries(q_BKD), cache.source_k, cache.source_v, source_mask
            )
            return attended.view_as(x_R1D)

        x_R1D = self.residuals[0](x_RD[:, None], attend_self)
        x_R1D = self.residuals[1](x_R1D, attend_source)
        return self.residuals[2](x_R1D, self.feed_forward)[:, 0]


class LayerCache:
    """One decoder layer's keys and values: of the source once a sentence, of the target so far once a hypothesis."""

    def __init__(self, source_k: Tensor, source_v: Tensor) -> None:
        self.source_k, self.source_v = source_k, source_v  # [B, H, S, E]
        self.k: Tensor | None = None  # [R, H, T so far, E]
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k_RH1E: Tensor, v_RH1E: Tensor) -> None:
        self.k = k_RH1E if self.k is None else torch.cat([self.k, k_RH1E], 2)
        self.v = v_RH1E if self.v is None else torch.cat([self.v, v_RH1E], 2)

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> None:
        """Keep these rows, in this order; `sentences` is None where all stay."""
        if self.k is not None:
            self.k, self.v = self.k.index_select(0, hypotheses), self.v.index_select(0, hypotheses)
        if sentences is not None:
            self.source_k = self.source_k.index_select(0, sentences)
            self.source_v = self.source_v.index_select(0, sentences)
