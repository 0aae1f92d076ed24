"""Layers with the weights and the results of transformer/layers.py, faster in training on a GPU.

The bias at the end of a sub-layer, the dropout, the residual sum and its norm are one kernel, so a layer is the smallest
part that can be exchanged. Where a layer has no kernel, it calls the reference.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transformer.attention import Masks, MultiHeadAttention
from transformer.batch import Batch
from transformer.fast.spans import Spans
from transformer.layers import DecoderLayer, EncoderLayer, FeedForward, LayerCache, Residual
from transformer.layout import Layout, joined, packed, padded, rounded
from transformer.model import Transformer

WIDTHS = (16, 32, 64)  # of d_k and d_v, for which there are kernels of attention


class FastEncoderLayer(EncoderLayer):
    def forward(self, x: Tensor, mask: Tensor | Spans) -> Tensor:
        if isinstance(mask, Tensor) and not self.training:
            return super().forward(x, mask)
        return through(self, x, (self.self_attention, None, mask))


class FastDecoderLayer(DecoderLayer):
    def forward(self, x: Tensor, memory: Tensor | None, masks: Masks, cache: LayerCache | None = None) -> Tensor:
        if isinstance(masks.cross, Tensor) and not self.training:
            return super().forward(x, memory, masks, cache)
        return through(self, x, (self.self_attention, None, masks.decoder), (self.cross_attention, memory, masks.cross))


def through(
    layer: EncoderLayer | DecoderLayer, x: Tensor, *attentions: tuple[MultiHeadAttention, Tensor | None, Tensor | Spans]
) -> Tensor:
    """The layer's output, given the memory and the mask of each attention. The memory of self-attention is None."""
    *firsts, last = cast(list[Residual], list(layer.residuals))
    x = x if last.pre else lowered(layer, x)
    for residual, (attention, memory, mask) in zip(firsts, attentions):
        x = attended(residual, attention, x, memory, mask)
    return added(last, x, partial(inner, layer.feed_forward), layer.feed_forward.outer)


def lowered(module: nn.Module, x: Tensor) -> Tensor:
    """`x` in the precision of autocast, if that is on and the module trains."""
    kind = x.device.type
    lower = module.training and torch.is_autocast_enabled(kind)
    return x.to(torch.get_autocast_dtype(kind)) if lower else x


def added(residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor], last: nn.Linear) -> Tensor:
    """`residual` of a sub-layer that ends with the linear layer `last`; `sublayer` is what precedes it."""
    if residual.pre or not residual.training:
        return residual(x, lambda x: last(sublayer(x)))
    from transformer.fast.kernels import AddAndNorm  # needs Triton

    norm, p = residual.norm, residual.dropout.p
    seed = torch.randint(2**31, (2,), device=x.device)  # torch draws another one when a CUDA graph is replayed
    change = F.linear(sublayer(x), last.weight)
    return AddAndNorm.apply(x, change, last.bias, norm.weight, norm.bias, seed, p, norm.eps)


def attended(
    residual: Residual, attention: MultiHeadAttention, x: Tensor, memory: Tensor | None, mask: Tensor | Spans
) -> Tensor:
    """Attention to the memory, or of `x` to itself if the memory is None."""

    def heads(x: Tensor) -> Tensor:
        """The attended values of all heads, before W^O, [B, Q, H * E]. `Spans` are those of packed rows."""
        if isinstance(mask, Tensor):
            return attention.heads(x, x if memory is None else memory, mask)
        from transformer.fast.attention_kernels import Attend  # needs Triton

        weight, start = attention.projection, attention.sizes[0]
        projected = F.linear(x, weight if memory is None else weight[:start])
        others = None if memory is None else F.linear(memory, weight[start:])
        sizes = attention.h, *attention.sizes[1:]
        return Attend.apply(projected, others, attention.projection_bias, mask, sizes, attention.scale)

    return added(residual, x, heads, attention.output)


def inner(feed: FeedForward, x: Tensor) -> Tensor:
    """max(0, x W_1 + b_1), with dropout."""
    if not feed.training or feed.dropout.p:
        return feed.dropout(F.relu(feed.inner(x)))
    return ReluOfLinear.apply(*(lowered(feed, each) for each in (x, feed.inner.weight, feed.inner.bias)))


class ReluOfLinear(torch.autograd.Function):
    """max(0, x W^T + b), [..., F]: bias and ReLU are a part of the matrix product, which torch's layers do separately."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out = torch._addmm_activation(bias, x.flatten(0, -2), weight.T).view(*x.shape[:-1], -1)
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, ...]:
        x, weight, out = ctx.saved_tensors
        inner = torch.ops.aten.threshold_backward(gradient, out, 0)
        inner_NF = inner.flatten(0, -2)
        return inner @ weight, inner_NF.T @ x.flatten(0, -2), inner_NF.sum(0)


def is_fast(model: Transformer) -> bool:
    """Whether the model is built of these layers."""
    return isinstance(model.encoder[0], FastEncoderLayer)


def takes_spans(model: Transformer) -> bool:
    """Whether the model's attention within packed rows has kernels."""
    config = model.config
    plain = config.attention == "scaled_dot_product" and not (config.attention_dropout or config.neighbourhood)
    return is_fast(model) and plain and config.d_k in WIDTHS and config.d_v in WIDTHS


def layout_on(device: torch.device, precision: str, model: Transformer) -> Layout:
    """The layout of batches by length. With kernels of attention no mask over a whole row is needed.

    On a CPU the mask of packed rows costs more than the padding of pairs of similar length. The layout is not a
    setting. It follows from the device, the precision and the model. A resumed training keeps the precision and the model.
    """
    if takes_spans(model):
        return joined
    if device.type == "cuda":
        return packed
    return rounded if precision == "bfloat16" else padded


def hidden(model: Transformer, batch: Batch) -> Tensor:
    """The decoder's output for a batch in any layout, [B, T, D]. The kernels of attention take `Spans` as masks."""
    source, target, between = batch.source, batch.target, Spans.between
    if source.sentence_BS is None or not takes_spans(model):
        masks = batch.masks(model.config.neighbourhood)
    else:
        spans: Any = between(target, target, causal=True), between(target, source), between(source, source)
        masks = Masks(*spans)
    return model.hidden(source.ids_BS, target.ids_BS, masks, source.place, target.place)
