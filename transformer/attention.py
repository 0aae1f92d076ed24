"""Attention (section 3.2): equation 1, the heads, their masks and the keys of incremental decoding.

This file, layers.py and model.py are the model, to be read in this order. They import torch and the settings only.

Shapes: B sentences, H heads, Q queries, K keys, P either, S source positions, T target positions, D d_model, E d_k in
queries and keys, d_v in values. A name such as `x_BQD` gives a tensor's shape. A mask is boolean, true where a query may
attend to a key, or consists of floats that are added to the scores.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.config.model import ModelConfig
from transformer.config.vocabulary import PAD


def attention_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(scale * Q K^T + mask), [B, H, Q, K] (equation 1). Unscaled dot products have a `scale` of 1."""
    return masked_softmax(q_BHQE @ k_BHKE.transpose(-2, -1) * scale, mask)


def additive_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, vector_HE: Tensor) -> Tensor:
    """softmax(v . tanh(q + k) + mask), [B, H, Q, K]: additive attention (Bahdanau et al. 2015; 3.2.1)."""
    hidden_BHQKE = torch.tanh(q_BHQE.unsqueeze(-2) + k_BHKE.unsqueeze(-3))
    return masked_softmax((hidden_BHQKE * vector_HE[:, None, None, :]).sum(-1), mask)


def masked_softmax(scores_BHQK: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the keys, computed in float32 and returned in the dtype of the scores.

    In the encoder with a neighbourhood, a query at padding may have no allowed key. With a boolean mask, its weights are
    then equal: the mask adds the lowest float32 number to the scores, because -inf would make the weights NaN.
    """
    dtype = scores_BHQK.dtype
    if mask is not None:
        least = torch.finfo(torch.float32).min
        scores_BHQK = scores_BHQK + (torch.where(mask, 0.0, least) if mask.dtype == torch.bool else mask)
    return scores_BHQK.float().softmax(-1).to(dtype)


class MultiHeadAttention(nn.Module):
    """h attention heads on linear projections of the inputs (3.2.2).

    One matrix holds W^Q, W^K and W^V of all heads, so self-attention projects in one product. The projections have
    biases, initially zero, as in torch.nn.MultiheadAttention; the paper's equations have none.
    """

    def __init__(self, config: ModelConfig, dropout: type[nn.Dropout] = nn.Dropout) -> None:
        super().__init__()
        self.h, self.kind = config.h, config.attention
        self.sizes = [config.h * config.d_k, config.h * config.d_k, config.h * config.d_v]
        self.scale = 1 / math.sqrt(config.d_k) if config.attention == "scaled_dot_product" else 1.0
        self.projection = nn.Parameter(torch.empty(sum(self.sizes), config.d_model))
        self.projection_bias = nn.Parameter(torch.zeros(sum(self.sizes)))
        self.output = nn.Linear(config.h * config.d_v, config.d_model)  # W^O
        self.dropout = dropout(config.attention_dropout)
        if config.attention == "additive":
            self.v_HE = nn.Parameter(torch.empty(config.h, config.d_k))

    def forward(self, x_BQD: Tensor, memory_BKD: Tensor | None, mask: Tensor | None, cache: "Keys | None" = None) -> Tensor:
        """Concat(head_1, ..., head_h) W^O, [B, Q, D]: each position of `x_BQD` attends to the memory.

        In self-attention, the memory is `x_BQD` itself. In incremental decoding, the `cache` holds the keys and values of
        earlier positions, and those of the memory are appended to it. If the memory is None, the cache holds all of them:
        those of the encoder's output, which no step changes.
        """
        return self.output(self.heads(x_BQD, memory_BKD, mask, cache))

    def heads(self, x_BQD: Tensor, memory_BKD: Tensor | None, mask: Tensor | None, cache: "Keys | None" = None) -> Tensor:
        """Concat(head_1, ..., head_h), [B, Q, H * E]."""
        if memory_BKD is None:
            assert cache is not None
            q_BHQE, k_BHKE, v_BHKE = self.queries(x_BQD), cache.k, cache.v  # all of it is filled: only `append` makes room
        else:
            q_BHQE, k_BHKE, v_BHKE = self.projections(x_BQD, memory_BKD)
            if cache is not None:
                k_BHKE, v_BHKE = cache.append(k_BHKE, v_BHKE)
        if self.written_out(q_BHQE):
            heads_BHQE = self.dropout(self.weights(q_BHQE, k_BHKE, mask)) @ v_BHKE
        else:
            heads_BHQE = F.scaled_dot_product_attention(q_BHQE, k_BHKE, v_BHKE, mask, scale=self.scale)
        return heads_BHQE.transpose(1, 2).flatten(2)

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None) -> Tensor:
        """The attention weights, [B, H, Q, K]."""
        if self.kind == "additive":
            return additive_weights(q_BHQE, k_BHKE, mask, self.v_HE)
        return attention_weights(q_BHQE, k_BHKE, mask, self.scale)

    def written_out(self, q_BHQE: Tensor) -> bool:
        """Whether equation 1 is computed as it is written above, and not by torch's faster function.

        That is so for additive scores, which torch's function lacks; for dropout of the weights, which torch's function
        would draw from the random generator that all threads share; and for training in bfloat16 on a CPU, where the
        backward pass of torch's function takes 4 to 15 times as long as in float32.
        """
        drops = self.training and self.dropout.p > 0
        slow = q_BHQE.device.type == "cpu" and q_BHQE.requires_grad and q_BHQE.dtype == torch.bfloat16
        return self.kind == "additive" or drops or slow

    def projections(self, x_BQD: Tensor, memory_BKD: Tensor) -> list[Tensor]:
        """The queries of `x_BQD`, the keys and the values of the memory, each [B, H, Q or K, E]."""
        if memory_BKD is x_BQD:  # self-attention: one product
            return self.project(x_BQD, 0, 3)
        return [self.queries(x_BQD), *self.keys_values(memory_BKD)]

    def queries(self, x_BQD: Tensor) -> Tensor:
        return self.project(x_BQD, 0, 1)[0]

    def keys_values(self, memory_BKD: Tensor) -> list[Tensor]:
        return self.project(memory_BKD, 1, 3)

    def project(self, x_BPD: Tensor, first: int, last: int) -> list[Tensor]:
        """The projections number `first` to `last` - 1 of W^Q, W^K and W^V, divided into heads, each [B, H, P, E]."""
        sizes, before = self.sizes[first:last], sum(self.sizes[:first])
        rows = slice(before, before + sum(sizes))
        projected = F.linear(x_BPD, self.projection[rows], self.projection_bias[rows])
        return [part.unflatten(-1, (self.h, -1)).transpose(1, 2) for part in projected.split(sizes, -1)]


def position_mask(position: Tensor, causal: bool, neighbourhood: int) -> Tensor:
    """The boolean mask of self-attention over the positions [..., Q] of a sentence, [..., Q, K].

    `causal` masks later positions (3.2.3). A `neighbourhood` r > 0 masks positions at a distance above r (section 4).
    """
    distance_QK = position[..., :, None] - position[..., None, :]
    allowed_QK = torch.ones_like(distance_QK, dtype=torch.bool)
    if causal:
        allowed_QK &= distance_QK >= 0
    if neighbourhood:
        allowed_QK &= distance_QK.abs() <= neighbourhood
    return allowed_QK


@dataclass
class Masks:
    """The masks of a batch. Each has a shape that broadcasts to [B, H, Q, K]."""

    decoder: Tensor  # of the decoder's self-attention: hides later positions, and so the padding at the end of the target
    cross: Tensor  # of the attention to the encoder's output: hides padding
    encoder: Tensor | None = None  # of the encoder's self-attention: hides padding; None once the source is encoded

    @classmethod
    def of(cls, source_BS: Tensor, target_BT: Tensor, neighbourhood: int) -> "Masks":
        """The masks of a batch with one sentence in each row, padded at its end."""
        source, target = (torch.arange(ids.shape[1], device=ids.device) for ids in (source_BS, target_BT))
        cross = (source_BS != PAD)[:, None, None, :]
        encoder = cross & position_mask(source, False, neighbourhood) if neighbourhood else cross
        return cls(position_mask(target, True, neighbourhood), cross, encoder)


class Keys:
    """The keys and values of one attention, which incremental decoding keeps from step to step, each [B, H, K, E].

    The newest tokens of all hypotheses of a sentence are the queries of a step, and their keys are appended. No keys are
    moved or copied when a hypothesis continues another one: a mask selects those of each hypothesis and its ancestors.
    """

    CAPACITY = 64  # keys, at least, once one is appended; later twice the length

    def __init__(self, k_BHKE: Tensor, v_BHKE: Tensor) -> None:
        self.k, self.v, self.length = k_BHKE.contiguous(), v_BHKE.contiguous(), k_BHKE.shape[2]

    def append(self, k_BHKE: Tensor, v_BHKE: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the newest positions. Returns those of all positions."""
        start = self.length
        self.length += k_BHKE.shape[2]
        if self.length > self.k.shape[2]:
            self.grow(max(self.CAPACITY, 2 * self.length))
        self.k[:, :, start : self.length] = k_BHKE
        self.v[:, :, start : self.length] = v_BHKE
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def grow(self, keys: int) -> None:
        """Make room for this number of keys. The new room is zero: a mask would not hide a NaN in memory as it is."""
        more = keys - self.k.shape[2]
        self.k, self.v = F.pad(self.k, (0, 0, 0, more)), F.pad(self.v, (0, 0, 0, more))
