"""The cost of a training: its operations, counted and by the paper's estimate (6.1), and the utilisation of the GPUs.

The counts follow from the settings and the sentence lengths. The operations of the matrix products are counted, two for
each multiply-add, as by torch.utils.flop_counter, which on a CPU counts attention only under
`sdpa_kernel(SDPBackend.MATH)`. A training step counts as three forward passes, since the backward pass computes two
products of the same size for each product of the forward pass. Operations that are few beside these are not counted:
look-ups, biases, softmax, norms, dropout, residual sums and the optimiser.

Restricted self-attention (`neighbourhood`) counts as full attention, since the model computes all scores and masks
them. Additive attention has no product of queries and keys. Its addition, tanh and multiply-add on the d_k numbers of a
score count as 4 d_k operations; a dot product counts as 2 d_k.

A key of `hardware` and `peak_tflops` in params.yaml begins with a part of the GPU's name in torch: `P100` matches `Tesla
P100-SXM2-16GB`. A precision other than float32 follows: `H200 bfloat16`. The longest matching key counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.score_files import within
from transformer.config.model import ModelConfig
from transformer.config.reading import Positive, Whole, hints, read

TRAINING = 3  # operations of a training step, in forward passes
PRECISIONS = ("float32", "bfloat16")
COSTS = ("sustained TFLOPS", "FLOPs, estimated", "MFU (%)", "HFU (%)")


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


@dataclass(frozen=True)
class Timing:
    """The entries of a times file from which the cost is computed."""

    seconds: Positive
    gpus: Whole  # 0: a CPU
    hardware: str
    precision: str


def cost(times: Any, where: str, counted: Mapping[str, Any] | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of COSTS. None means that a value is not known. In place of an estimate stands why there is none.

    `times` is the content of a times file, which `where` names, or None. `counted` is the content of flops.json.
    The utilisations are the counted operations divided by the operations at the GPUs' peak rate in the training time. This
    time includes evaluations. The model's utilisation (MFU) excludes the attention scores that the causal mask hides; the
    hardware's (HFU) includes them. Both exclude padding.
    """
    if not times:
        return dict.fromkeys(COSTS)
    timing = read(Timing, {key: within(times, key) for key in hints(Timing)}, where)
    if not timing.gpus:
        reason = f"it ran on a CPU ({timing.hardware}), and the estimate is of GPU time"
        return dict.fromkeys(COSTS) | {"FLOPs, estimated": reason}
    sustained, peak = (rate(params[table], timing.hardware, timing.precision) for table in ("hardware", "peak_tflops"))
    key = timing.hardware if timing.precision == "float32" else f"{timing.hardware} {timing.precision}"
    missing = f"params.yaml: hardware has no rate of {timing.hardware} in {timing.precision}; add the key {key!r}"
    estimated = estimate(timing.seconds, timing.gpus, sustained) if sustained else missing
    at_peak = peak and estimate(timing.seconds, timing.gpus, peak)
    operations = [within(counted, "analytic", f"training_flops{half}") for half in ("_causal_half", "")]
    used = [at_peak and number and 100 * (number / at_peak) for number in operations]
    return dict(zip(COSTS, (sustained, estimated, *used)))


def estimate(seconds: float, gpus: int, tflops: float) -> float:
    """The paper's estimate of a training's operations: time x GPUs x sustained TFLOPS of one GPU (6.1, footnote 5)."""
    return seconds * gpus * tflops * 1e12


def rate(table: Mapping[str, float], hardware: str, precision: str) -> float | None:
    """Return the rate of a GPU in a precision, or None if the table has none. The longest matching key counts."""
    fitting = []
    for key in table:
        name, _, last = key.rpartition(" ")
        name, key_precision = (name, last) if last in PRECISIONS else (key, "float32")
        if key_precision == precision and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", hardware):
            fitting.append(key)
    return table[max(fitting, key=len)] if fitting else None
