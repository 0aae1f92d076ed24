"""How many parameters a model has and how many operations a training costs, from the settings alone.

Counted are the matrix products, at two operations a multiply-add, as torch.utils.flop_counter counts them; a training
is three forward passes, because each product has two of its size in the backward pass. Left out is what grows with the
tokens only and is small beside them: look-ups, biases, softmax, norms, dropout, residual sums and the optimiser.

Restricted self-attention (`neighbourhood`) costs what full attention does, since the model computes all scores and
masks them. Additive attention has no product of queries and keys; its addition, tanh and multiply-add on d_k numbers a
score are counted as 4 d_k operations, where the dot product takes 2 d_k.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from transformer.config.model import ModelConfig

TRAINING = 3  # times the forward pass


@dataclass(frozen=True)
class Lengths:
    """Sums over sentence pairs of n source and m target positions, EOS among them: all that a count needs of a text.

    The fields are keys of training.json, where they are summed over all steps.
    """

    source_tokens: int  # sum of n
    target_tokens: int  # sum of m
    source_squared: int  # sum of n^2
    target_squared: int  # sum of m^2
    source_target: int  # sum of n m

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "Lengths":
        """The sums of pairs (n, m)."""
        sums = [(n, m, n * n, m * m, n * m) for n, m in pairs]
        return cls(*map(sum, zip(*sums))) if sums else cls(0, 0, 0, 0, 0)


def parameters(config: ModelConfig, vocabulary_size: int) -> int:
    """The model's weights: one embedding matrix (3.4), and biases in the projections too, as torch's attention has.

    63.1 million for the paper's base model and 214.2 million for its big one, at 37,000 pieces.
    """
    c = config
    keys, values = c.h * c.d_k, c.h * c.d_v
    attention = (2 * keys + values) * (c.d_model + 1) + values * c.d_model + c.d_model
    if c.attention == "additive":
        attention += keys
    feed_forward = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    norm = 2 * c.d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    outside = vocabulary_size * c.d_model
    if c.positions == "learned":
        outside += 2 * c.max_positions * c.d_model  # one table a side
    if c.norm == "pre":
        outside += 2 * norm  # pre-norm ends each stack with a norm
    return outside + c.N * (encoder_layer + decoder_layer)


def forward_flops(
    config: ModelConfig, vocabulary_size: int, lengths: Lengths, causal_half: bool = False
) -> dict[str, int]:
    """The operations of one forward pass over the pairs of `lengths`, by component.

    The decoder's self-attention is counted in full, as its masked half is computed too by a plain implementation and
    counted by torch; with `causal_half` only the m (m + 1) / 2 scores that a position may see are.
    """
    c, n, m = config, lengths.source_tokens, lengths.target_tokens
    keys, values = c.h * c.d_k, c.h * c.d_v
    feed_forward = 2 * 2 * c.d_model * c.d_ff
    projections = 2 * c.d_model * (keys + values)  # W^Q and W^O of a query; W^K and W^V of a key cost the same
    score = keys * (4 if c.attention == "additive" else 2)
    pair = score + 2 * values  # one query and one key: the score, then the weighted value
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


def training_flops(forward: Mapping[str, int]) -> dict[str, int]:
    """The operations of forward and backward passes, by component, where `forward` are those of the forward passes."""
    return {component: TRAINING * flops for component, flops in forward.items()}
