"""The loss of a model by torch.nn.Transformer and torch's cross-entropy: a reference that shares no code with ours."""

import math
import warnings
from collections import deque

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch.nn.utils.rnn import pad_sequence

PAD, BOS, EOS = 0, 2, 3
NAMES = {"self_attention.": "self_attn.", "cross_attention.": "multihead_attn.", "projection_bias": "in_proj_bias"}
NAMES |= {"projection": "in_proj_weight", ".output.": ".out_proj.", "feed_forward.inner": "linear1"}
NAMES |= {"feed_forward.outer": "linear2"} | {f"residuals.{i}.norm": f"norm{i + 1}" for i in range(3)}
NAMES |= {"encoder.": "encoder.layers.", "decoder.": "decoder.layers."}
NAMES |= {"encoder_norm": "encoder.norm", "decoder_norm": "decoder.norm"}


def by_torch_names(weights):
    """The weights of torch.nn.Transformer among a model's weights."""
    renamed = {}
    for name, value in weights.items():
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        if name != "embedding":
            renamed[name] = value
    return renamed


def tables(pairs, numbers):
    """Sources that end with EOS, targets that begin with BOS, and labels that end with EOS: three padded tables."""
    both = [[[int(token) for token in ids] for ids in pairs.pair(number)] for number in numbers]
    rows = zip(*(([*source, EOS], [BOS, *target], [*target, EOS]) for source, target in both))
    return [pad_sequence([torch.tensor(ids) for ids in side], batch_first=True, padding_value=PAD) for side in rows]


def sinusoids(length, d_model):
    """Section 3.5, position by position."""
    angle = [[pos / 10000 ** (2 * (i // 2) / d_model) for i in range(d_model)] for pos in range(length)]
    return torch.tensor([[(math.cos if i % 2 else math.sin)(a) for i, a in enumerate(row)] for row in angle]).double()


def twin_of(config):
    """torch.nn.Transformer in float64 with these sizes and rates of dropout. For post-norm, its final norms are removed."""
    pre = config.norm == "pre"
    sizes = config.d_model, config.h, config.N, config.N, config.d_ff
    with warnings.catch_warnings(action="ignore"):  # pre-norm cannot have what the encoder would do for speed
        twin = nn.Transformer(*sizes, dropout=config.dropout, batch_first=True, norm_first=pre, dtype=torch.float64)
    if not pre:
        twin.encoder.norm = twin.decoder.norm = None
    for module in twin.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = config.attention_dropout
            # Torch's attention draws its mask in Python only if it is asked for the weights.
            module.register_forward_pre_hook(lambda _, args, more: (args, more | {"need_weights": True}), with_kwargs=True)
        if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            module.dropout.p = config.relu_dropout
    return twin.train()


def summed_loss(config, weights, pairs, part, smoothing):
    """The loss of these pairs in training, summed over their labels, a scalar in float64."""
    logits, labels = logits_of(config, weights, pairs, part)
    return F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")


def logits_of(config, weights, pairs, part):
    """The logits of all labels of these pairs in training, in float64, and the labels.

    `weights` are a model's, by our names, in float64. `part` has the numbers of the pairs, and a rate and a mask for each
    dropout. Each dropout takes the next mask and must have its rate. No mask may be left.
    """
    numbers, masks = part
    source, target, labels = tables(pairs, numbers)
    twin, renamed, left = twin_of(config), by_torch_names(weights), deque(masks)
    assert renamed.keys() == dict(twin.named_parameters()).keys()

    def replayed(x, p=0.5, training=True, inplace=False):
        if not training or p == 0:
            return x
        rate, mask = left.popleft()
        assert p == rate
        return x * mask.double().view(x.shape)

    def stack(name, *inputs, **options):
        own = {key.removeprefix(f"{name}."): value for key, value in renamed.items() if key.startswith(f"{name}.")}
        return functional_call(getattr(twin, name), own, inputs, options)

    def embedded(ids):
        x = weights["embedding"][ids] * math.sqrt(config.d_model) + sinusoids(ids.shape[1], config.d_model)
        return F.dropout(x, config.dropout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(F, "dropout", replayed)
        memory = stack("encoder", embedded(source), src_key_padding_mask=source == PAD)
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        hidden = stack("decoder", embedded(target), memory, tgt_mask=causal, memory_key_padding_mask=source == PAD)
    assert not left
    real = labels != PAD
    return (hidden @ weights["embedding"].T)[real], labels[real]
