"""The number of operations of a training, from the settings and the sentence lengths.

The operations of the matrix products are counted, two for each multiply-add, as by torch.utils.flop_counter, which on a CPU
counts attention only under `sdpa_kernel(SDPBackend.MATH)`. A training
step counts as three forward passes, since the backward pass computes two products of the same size for each product of
the forward pass. Operations that are few beside these are not counted: look-ups, biases, softmax, norms, dropout,
residual sums and the optimiser.

Restricted self-attention (`neighbourhood`) counts as full attention, since the model computes all scores and masks
them. Additive attention has no product of queries and keys. Its addition, tanh and multiply-add on the d_k numbers of a
score count as 4 d_k operations; a dot product counts as 2 d_k.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from transformer.config.model import ModelConfig

TRAINING = 3  # operations of a training step, in forward passes


@dataclass(frozen=True)
class Lengths:
    """Sums over sentence pairs with n source and m target positions, EOS included.

    The operations on a text follow from these sums. The fields are keys of training.json, which sums over all steps.
    """

    source_tokens: int  # sum of n
    target_tokens: int  # sum of m
    source_squared: int  # sum of n^2
    target_squared: int  # sum of m^2
    source_target: int  # sum of n m


def forward_flops(config: ModelConfig, vocabulary_size: int, lengths: Lengths, causal_half: bool = False) -> dict[str, int]:
    """The operations of one forward pass over the pairs of `lengths`, by component.

    The decoder's self-attention counts in full, since a plain implementation also computes the masked half and torch
    counts it. With `causal_half`, only the m (m + 1) / 2 scores that are not masked count.
    """
    c, n, m = config, lengths.source_tokens, lengths.target_tokens
    keys, values = c.h * c.d_k, c.h * c.d_v
    feed_forward = 2 * 2 * c.d_model * c.d_ff
    projections = 2 * c.d_model * (keys + values)  # W^Q and W^O for a query, or W^K and W^V for a key
    score = keys * (4 if c.attention == "additive" else 2)
    pair = score + 2 * values  # for a query and a key: the score and the weighted value
    seen = (lengths.target_squared + m) // 2 if causal_half else lengths.target_squared
    return {
        "embedding": 0,
        "encoder_self_attention_projections": c.N * 2 * n * projections,
        "encoder_self_attention": c.N * lengths.source_squared * pair,
        "encoder_feed_forward": c.N * n * feed_forward,
        "decoder_self_attention_projections": c.N * 2 * m * projections,
        "decoder_self_attention": c.N * seen * pair,
        "cross_attention_projections": c.N * (m + n) * projections,
        "cross_attention": c.N * lengths.source_target * pair,
        "decoder_feed_forward": c.N * m * feed_forward,
        "softmax_projection": m * 2 * c.d_model * vocabulary_size,
    }


def training_flops(forward: Mapping[str, int], passes: int = 1) -> dict[str, int]:
    """The operations of a training, by component, given those of the forward passes.

    A step passes each pair through the model `passes` times.
    """
    return {component: TRAINING * passes * flops for component, flops in forward.items()}
