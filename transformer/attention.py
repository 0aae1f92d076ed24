"""Attention (section 3.2).

Shapes: B sentences, H heads, Q queries, K keys, D d_model, E d_k or d_v; `x_BQD` is a tensor of that shape.
A mask is true where a query may attend, or of numbers that are added to the scores.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.config.model import ModelConfig
from transformer.dropout import dropout
from transformer.layout import Rows


def attention_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(Q K^T scale), [B, H, Q, K] (equation 1); scale is 1 / sqrt(d_k), or 1 for plain dot products."""
    scores_BHQK = q_BHQE @ k_BHKE.transpose(-2, -1) * scale
    return masked_softmax(scores_BHQK, mask)


def additive_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, v_HE: Tensor) -> Tensor:
    """softmax(v . tanh(q + k)), [B, H, Q, K]: additive attention (Bahdanau et al. 2015), which 3.2.1 compares."""
    hidden_BHQKE = torch.tanh(q_BHQE.unsqueeze(-2) + k_BHKE.unsqueeze(-3))
    return masked_softmax((hidden_BHQKE * v_HE[:, None, None, :]).sum(-1), mask)


def added(mask: Tensor | None) -> Tensor | None:
    """The mask as what is added to scores, which attention makes of it each time: worth doing once for many layers."""
    return None if mask is None else torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))


def masked_softmax(scores_BHQK: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None:
        fill = mask.dtype == torch.bool
        scores_BHQK = scores_BHQK.masked_fill(~mask, float("-inf")) if fill else scores_BHQK + mask
    return scores_BHQK.float().softmax(-1).to(scores_BHQK.dtype)


def position_mask(length: int, causal: bool, neighbourhood: int, device: torch.device) -> Tensor | None:
    """Which positions of a sequence each of them may see, [Q, K]; None where all may.

    causal: no position sees a later one (3.2.3). neighbourhood r > 0: none sees one further away than r (section 4).
    """
    if not (causal or neighbourhood):
        return None
    positions = torch.arange(length, device=device)
    distance_QK = positions[:, None] - positions
    allowed_QK = torch.ones_like(distance_QK, dtype=torch.bool)
    if causal:
        allowed_QK &= distance_QK >= 0
    if neighbourhood:
        allowed_QK &= distance_QK.abs() <= neighbourhood
    return allowed_QK


def sentence_mask(queries: Rows, keys: Rows, causal: bool = False, neighbourhood: int = 0) -> Tensor:
    """Where rows hold several sentences, which keys of its own sentence each query may see, [B, 1, Q, K].

    `causal` and `neighbourhood` as in `position_mask`. Padding, which nothing sees, sees something: no softmax is empty.
    """
    sentence_BQ1, sentence_B1K = queries.sentence_BS[:, :, None], keys.sentence_BS[:, None, :]
    allowed_BQK = (sentence_BQ1 == sentence_B1K) | (sentence_BQ1 == 0)
    if causal or neighbourhood:
        distance_BQK = queries.position_BS[:, :, None] - keys.position_BS[:, None, :]
        if causal:
            allowed_BQK &= distance_BQK >= 0
        if neighbourhood:
            allowed_BQK &= distance_BQK.abs() <= neighbourhood
    return allowed_BQK[:, None]


class MultiHeadAttention(nn.Module):
    """h attentions side by side on projections of the input (3.2.2).

    W^Q, W^K and W^V of all heads are one matrix, so that self-attention projects once. The projections have biases,
    as torch.nn.MultiheadAttention's do and the paper's equations do not; they start at zero.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.h, self.kind, self.dropout = config.h, config.attention, config.attention_dropout
        self.sizes = [config.h * config.d_k, config.h * config.d_k, config.h * config.d_v]
        self.scale = 1 / math.sqrt(config.d_k) if config.attention == "scaled_dot_product" else 1.0
        self.projection = nn.Parameter(torch.empty(sum(self.sizes), config.d_model))
        self.projection_bias = nn.Parameter(torch.zeros(sum(self.sizes)))
        self.output = nn.Linear(config.h * config.d_v, config.d_model)
        if config.attention == "additive":
            self.v_HE = nn.Parameter(torch.empty(config.h, config.d_k))

    def self_projections(self, x_BQD: Tensor) -> list[Tensor]:
        """Queries, keys and values of one sequence, each [B, H, Q, E]."""
        projected = F.linear(x_BQD, self.projection, self.projection_bias).split(self.sizes, -1)
        return [self.heads(part) for part in projected]

    def queries(self, x_BQD: Tensor) -> Tensor:
        end = self.sizes[0]
        return self.heads(F.linear(x_BQD, self.projection[:end], self.projection_bias[:end]))

    def keys_values(self, memory_BKD: Tensor) -> list[Tensor]:
        start = self.sizes[0]
        projected = F.linear(memory_BKD, self.projection[start:], self.projection_bias[start:])
        return [self.heads(part) for part in projected.split(self.sizes[1:], -1)]

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(
        self,
        q_BHQE: Tensor,
        k_BHKE: Tensor,
        v_BHKE: Tensor,
        mask: Tensor | None,
        causal: bool = False,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        """The attended values of all heads, joined and projected by W^O, [B, Q, D].

        `causal` stands for a causal mask and goes with `mask=None`. `keep` collects the weights, for the report.
        """
        if keep is None and self.kind != "additive":
            p = self.dropout if self.training else 0.0
            heads_BHQE = F.scaled_dot_product_attention(
                q_BHQE, k_BHKE, v_BHKE, attn_mask=mask, dropout_p=p, is_causal=causal, scale=self.scale
            )
        else:
            if causal:
                mask = position_mask(q_BHQE.shape[2], True, 0, q_BHQE.device)
            weights_BHQK = self.weights(q_BHQE, k_BHKE, mask)
            if keep is not None:
                keep.append(weights_BHQK)
            heads_BHQE = dropout(weights_BHQK, self.dropout, self.training) @ v_BHKE
        return self.output(heads_BHQE.transpose(1, 2).flatten(2))

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None) -> Tensor:
        if self.kind == "additive":
            return additive_weights(q_BHQE, k_BHKE, mask, self.v_HE)
        return attention_weights(q_BHQE, k_BHKE, mask, self.scale)
