"""Attention (section 3.2).

Shapes: B sentences, H heads, Q queries, K keys, D d_model, E d_k or d_v. A name such as `x_BQD` gives a tensor's shape.
A mask is boolean, true where a query may attend to a key, or additive: floats that are added to the scores.
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.config.model import ModelConfig
from transformer.device import Overlapping
from transformer.dropout import dropout
from transformer.fused import Spans, attend
from transformer.layout import Rows

# cuDNN's kernels are left out. Planning takes them 0.2 seconds for each new shape. On Hopper GPUs, their backward pass
# can return NaN with a mask at lengths such as 64 and 192, if all scores of a query are very low (pytorch issue 196678).
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
CHOSEN = Overlapping(lambda: sdpa_kernel(KERNELS))


def kernels(device: torch.device) -> AbstractContextManager:
    """A context in which torch's fused attention on a GPU uses one of `KERNELS`.

    It does nothing on a CPU, because torch applies the choice to the whole process and several threads compute.
    """
    return CHOSEN if device.type == "cuda" else nullcontext()


def attention_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(scale * Q K^T), [B, H, Q, K] (equation 1). `scale` is 1 / sqrt(d_k), or 1 for unscaled dot products."""
    scores_BHQK = q_BHQE @ k_BHKE.transpose(-2, -1) * scale
    return masked_softmax(scores_BHQK, mask)


def additive_weights(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, v_HE: Tensor) -> Tensor:
    """softmax(v . tanh(q + k)), [B, H, Q, K]: additive attention (Bahdanau et al. 2015), the alternative in 3.2.1."""
    hidden_BHQKE = torch.tanh(q_BHQE.unsqueeze(-2) + k_BHKE.unsqueeze(-3))
    return masked_softmax((hidden_BHQKE * v_HE[:, None, None, :]).sum(-1), mask)


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The boolean mask as floats: 0 where it is true, -inf elsewhere.

    Attention converts a boolean mask at every call; a mask that many calls share is converted once by this function.
    """
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))


def masked_softmax(scores_BHQK: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the keys, computed in float32 and returned in the dtype of the scores.

    A query at padding may have no allowed key. With a boolean mask, the weights of this query are then equal: the mask
    adds the lowest float32 number to the scores, because -inf would make the weights NaN.
    """
    dtype = scores_BHQK.dtype
    if mask is not None:
        least = torch.finfo(torch.float32).min
        scores_BHQK = scores_BHQK + (torch.where(mask, 0.0, least) if mask.dtype == torch.bool else mask)
    return scores_BHQK.float().softmax(-1).to(dtype)


def fused_is_better(x: Tensor, p: float) -> bool:
    """Whether torch's fused attention is better than the separate operations of equation 1. `p` is the attention dropout.

    On a CPU, the fused attention is slower in bfloat16 training: its backward pass takes 4 to 15 times as long as in
    float32. With dropout, it would draw from the random generator that all threads share.
    """
    return x.device.type != "cpu" or not (p or (x.requires_grad and x.dtype == torch.bfloat16))


def position_mask(length: int, causal: bool, neighbourhood: int, device: torch.device) -> Tensor | None:
    """The boolean mask of self-attention over `length` positions, [Q, K]; None where nothing is masked.

    `causal` masks later positions (3.2.3). A `neighbourhood` r > 0 masks positions at a distance above r (section 4).
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
    """The boolean mask of packed rows, [B, 1, Q, K]: a query attends only to keys of its own sentence.

    `causal` and `neighbourhood` are those of `position_mask`. A query at padding is not restricted to
    one sentence, since a softmax over no keys would be NaN. No sentence attends to padding.
    """
    assert queries.sentence_BS is not None and keys.sentence_BS is not None
    sentence_BQ1, sentence_B1K = queries.sentence_BS[:, :, None], keys.sentence_BS[:, None, :]
    allowed_BQK = (sentence_BQ1 == sentence_B1K) | (sentence_BQ1 == 0)
    if causal or neighbourhood:
        assert queries.position_BS is not None and keys.position_BS is not None
        distance_BQK = queries.position_BS[:, :, None] - keys.position_BS[:, None, :]
        if causal:
            allowed_BQK &= distance_BQK >= 0
        if neighbourhood:
            allowed_BQK &= distance_BQK.abs() <= neighbourhood
    return allowed_BQK[:, None]


class MultiHeadAttention(nn.Module):
    """h attention heads on linear projections of the inputs (3.2.2).

    One matrix holds W^Q, W^K and W^V of all heads, so self-attention projects in one product. The projections have
    biases, initially zero, as in torch.nn.MultiheadAttention; the paper's equations have none.
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
        """[B, H, Q, E]."""
        end = self.sizes[0]
        return self.heads(F.linear(x_BQD, self.projection[:end], self.projection_bias[:end]))

    def keys_values(self, memory_BKD: Tensor) -> list[Tensor]:
        """Keys and values, each [B, H, K, E]."""
        start = self.sizes[0]
        projected = F.linear(memory_BKD, self.projection[start:], self.projection_bias[start:])
        return [self.heads(part) for part in projected.split(self.sizes[1:], -1)]

    def to_itself(self, x_BQD: Tensor, mask: Tensor | Spans | None, causal: bool = False) -> Tensor:
        """Self-attention of a sequence, [B, Q, H * E]. `causal` stands for a causal mask and requires `mask=None`."""
        if isinstance(mask, Spans):
            return self.within(F.linear(x_BQD, self.projection), None, mask)
        return self(*self.self_projections(x_BQD), mask, causal=causal)

    def to_memory(self, x_BQD: Tensor, memory_BKD: Tensor, mask: Tensor | Spans) -> Tensor:
        """Cross-attention, [B, Q, H * E]."""
        if isinstance(mask, Spans):
            start = self.sizes[0]
            queries, others = F.linear(x_BQD, self.projection[:start]), F.linear(memory_BKD, self.projection[start:])
            return self.within(queries, others, mask)
        return self(self.queries(x_BQD), *self.keys_values(memory_BKD), mask)

    def within(self, projected: Tensor, memory: Tensor | None, spans: Spans) -> Tensor:
        """Attention within the sentences of packed rows, [B, Q, H * E], by the kernels of a GPU (`fused.attend`)."""
        tables = spans.query_BQ, spans.key_BK, spans.keys_BT2, spans.queries_BT2
        sizes = self.h, *self.sizes[1:]
        return attend(projected, memory, self.projection_bias, *tables, *sizes, self.scale, spans.causal)[0]

    def heads(self, x: Tensor) -> Tensor:
        """[B, Q, H * E] as [B, H, Q, E]."""
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """The attended values of all heads, concatenated, [B, Q, H * E]. The caller projects them by W^O (`output`).

        `causal` stands for a causal mask and requires `mask=None`.
        """
        p = self.dropout if self.training else 0.0
        if self.kind == "additive" or not fused_is_better(q_BHQE, p):
            return self.attended(self.weights(q_BHQE, k_BHKE, mask, causal), v_BHKE)
        heads_BHQE = F.scaled_dot_product_attention(
            q_BHQE, k_BHKE, v_BHKE, attn_mask=mask, dropout_p=p, is_causal=causal, scale=self.scale
        )
        return self.joined(heads_BHQE)

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """The attention weights, [B, H, Q, K], for the arguments of `forward`."""
        if causal:
            mask = position_mask(q_BHQE.shape[2], True, 0, q_BHQE.device)
        if self.kind == "additive":
            return additive_weights(q_BHQE, k_BHKE, mask, self.v_HE)
        return attention_weights(q_BHQE, k_BHKE, mask, self.scale)

    def attended(self, weights_BHQK: Tensor, v_BHKE: Tensor) -> Tensor:
        """The output of `forward` for given weights, [B, Q, H * E]."""
        return self.joined(dropout(weights_BHQK, self.dropout, self.training) @ v_BHKE)

    def joined(self, heads_BHQE: Tensor) -> Tensor:
        """The heads concatenated, [B, Q, H * E]."""
        return heads_BHQE.transpose(1, 2).flatten(2)
