"""The kernels of fast/operators.py against torch, on a GPU, or with TRITON_INTERPRET=1 in Triton's interpreter.

Needs Triton and, for its interpreter, numpy before 2.4.
"""

import os
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.pairs import Pairs
from transformer.batch import Rows
from transformer.config.model import ModelConfig
from transformer.fast import attention_kernels, kernels
from transformer.fast.fused import FastDecoderLayer, FastEncoderLayer, takes_spans
from transformer.fast.spans import Spans
from transformer.layers import REFERENCE, Layers
from transformer.layout import tabled
from transformer.model import Transformer
from transformer.perplexity import batch_loss

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
NEAR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}  # the largest accepted difference, relative to the norm


def near(name: str, ours: Tensor, theirs: Tensor | None, dtype: torch.dtype = torch.float32) -> None:
    assert theirs is not None
    difference = float((ours.double() - theirs.double()).norm() / theirs.double().norm())
    assert difference <= NEAR[dtype], f"{name}, {dtype}: the difference is {difference:.1e}"


def sentences(rows: int, length: int, padding: int) -> Rows:
    """Rows of random sentences of 1 to 40 positions; the first row has at most three of them."""
    table = torch.zeros(rows, length, dtype=torch.int64)
    for row in range(rows):
        start = number = 0
        while start < length - padding and (row or number < 3):
            number, stop = number + 1, start + int(torch.randint(1, 41, ()))
            table[row, start : min(stop, length - padding)] = number
            start = stop
    return Rows(table.to(DEVICE), table.to(DEVICE), table.to(DEVICE))


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape).to(DEVICE, dtype).requires_grad_()


def attended(q: Tensor, k: Tensor, v: Tensor, spans: Spans, heads: int, scale: float) -> Tensor:
    q, k, v = (each.double().unflatten(-1, (heads, -1)).transpose(1, 2) for each in (q, k, v))
    allowed = spans.query_BQ[:, :, None] == spans.key_BK[:, None, :]
    if spans.causal:
        allowed &= torch.ones_like(allowed[0]).tril()
    weights = (q @ k.transpose(-1, -2) * scale).masked_fill(~allowed[:, None], float("-inf")).softmax(-1)
    return (weights.nan_to_num(0) @ v).transpose(1, 2).flatten(2)


def check_attention(own: bool, causal: bool, heads: int, k_width: int, v_width: int, dtype: torch.dtype) -> None:
    queries = sentences(2, 150, 7)
    keys = queries if own else sentences(2, 170, 11)
    spans, scale = Spans.between(queries, keys, causal), k_width**-0.5
    sizes = heads, heads * k_width, heads * v_width
    bias = random(2 * sizes[1] + sizes[2])
    x = random(2, 150, len(bias) if own else sizes[1], dtype=dtype)
    memory = None if own else random(2, 170, sizes[1] + sizes[2], dtype=dtype)
    tables = spans.query_BQ, spans.key_BK, spans.keys_BT2, spans.queries_BT2
    given = [None if each is None else each.detach() for each in (x, memory, bias)]
    out, logs = attention_kernels.attend(*given, *tables[:3], sizes, scale, causal)
    gradient = torch.randn_like(out) * (queries.sentence_BS[..., None] > 0)  # type: ignore[index]
    found = attention_kernels.attend_gradient(gradient, *given, *tables, out, logs, sizes, scale, causal)
    parts = x.split([sizes[1], *sizes[1:]], 2) if memory is None else (x, *memory.split([*sizes[1:]], 2))
    expected = attended(*(part + own for part, own in zip(parts, bias.split([sizes[1], *sizes[1:]]))), spans, heads, scale)
    expected.backward(gradient.double())
    name = f"attention {own=} {causal=}"
    near(name, out, expected.detach(), dtype)
    near(f"{name}: x", found[0], x.grad, dtype)
    query_bias, value_bias = (each.sum(0) for each in found[2:])
    near(f"{name}: bias", torch.cat([query_bias, 0 * query_bias, value_bias]), bias.grad, dtype)
    if memory is not None:
        near(f"{name}: memory", found[1], memory.grad, dtype)


def check_norm(p: float, dtype: torch.dtype) -> None:
    x, change = random(3, 37, 96, dtype=dtype), random(3, 37, 96, dtype=dtype)
    gradient = random(3, 37, 96, dtype=dtype).detach()
    change_bias, gain, bias = random(96), random(96), random(96)
    seed = torch.tensor([12345678901, 987654321], device=DEVICE)
    tensors = [each.detach() for each in (x, change, change_bias, gain, bias)]
    out, total, statistics = kernels.norm(*tensors, seed, p, 1e-5)
    # A dropped element does not depend on the change.
    kept = kernels.norm(tensors[0], tensors[1] + 1e3, *tensors[2:], seed, p, 1e-5)[1].double() - x.double() > 100
    assert abs(1 - kept.double().mean() - p) < 0.02
    summed = x.double() + kept * (change.double() + change_bias) / (1 - p)
    expected = F.layer_norm(summed, (96,), gain.double(), bias.double())
    expected.backward(gradient.double())
    near("norm", out, expected.detach(), dtype)
    found = kernels.norm_gradient(gradient, total, statistics, gain.detach(), seed, p)
    for name, ours, theirs in zip(("x", "change"), found, (x, change)):
        near(f"norm: {name}", ours, theirs.grad, dtype)
    for name, ours, theirs in zip(("gain", "bias", "change_bias"), found[2].sum(0), (gain, bias, change_bias)):
        near(f"norm: {name}", ours, theirs.grad, dtype)
    others = kernels.norm(*tensors, seed + 1, p, 1e-5)[1] != total
    assert bool(others.any()) == (p > 0), "another seed drops other elements"
    assert torch.equal(kernels.norm(*tensors, seed, p, 1e-5)[1], total), "a step that is computed again drops the same ones"


def check_strides() -> None:
    """A transposed tensor is refused, since the kernels would read other elements of it."""
    square, vector, seed = random(16, 16).detach(), random(16).detach(), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    try:
        kernels.norm(square.T, square, vector, vector, vector, seed, 0.0, 1e-5)
    except AssertionError:
        return
    raise AssertionError("not refused")


def check_relu() -> None:
    inner, gradient = random(2, 33, 700), torch.randn(2, 33, 700).to(DEVICE)
    inner.relu().backward(gradient)
    assert inner.grad is not None
    result, parts = kernels.relu_gradient(gradient, inner.detach().relu())
    near("relu", result, inner.grad)
    near("relu: bias", parts.sum(0), inner.grad.sum((0, 1)))


def check_loss(vocabulary: int, smoothing: float) -> None:
    logits, labels = (3 * random(9, vocabulary)).detach().requires_grad_(), torch.randint(vocabulary, (9,)).to(DEVICE)
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    expected.backward()
    for needed in (False, True):
        loss, gradient = kernels.loss_and_gradient(logits.detach().clone(), labels, smoothing, needed)
        near("loss", loss, expected.detach())
    assert gradient is not None
    near("loss: logits", gradient, logits.grad)


def check_layers() -> None:
    """A model of fast layers gives the loss and the gradients of the reference, in training and in a dev loss."""
    options: dict[str, Any] = {"kernels": True, "backend": None}
    fast = Layers(partial(FastEncoderLayer, **options), partial(FastDecoderLayer, **options))
    sizes: dict[str, Any] = {"N": 1, "d_model": 64, "d_ff": 96, "h": 2, "d_k": 32, "d_v": 16, "max_positions": 64}
    rest: dict[str, Any] = {"positions": "sinusoidal", "attention": "scaled_dot_product", "neighbourhood": 0}
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "relu_dropout": 0.0}
    for norm in ("post", "pre"):
        config, found = ModelConfig(norm=norm, **sizes, **rest, **rates), []  # type: ignore[arg-type]
        for layers in (REFERENCE, fast):
            torch.manual_seed(2)
            model = Transformer(config, 90, layers).to(DEVICE)
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.2)
            batch = tabled(Pairs(12, 15), np.arange(12), 3, 64).to(torch.device(DEVICE))
            assert takes_spans(model) == (layers is fast)
            with torch.no_grad():
                dev = batch_loss(model.eval(), batch, 0.0)
            loss = batch_loss(model.train(), batch, 0.1)
            found.append([dev, loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))])
        near(f"{norm}: losses", torch.stack(found[1][:2]), torch.stack(found[0][:2]))
        gradients = [torch.cat([each.flatten() for each in of[2:]]) for of in found]
        near(f"{norm}: gradients", gradients[1], gradients[0])


def main() -> None:
    torch.manual_seed(1)
    if DEVICE == "cpu":
        kernels.PROGRAMS = 16  # each program of a kernel takes the interpreter milliseconds
    for dtype in NEAR if DEVICE == "cuda" else [torch.float32]:  # the interpreter has no matrix products in bfloat16
        for own, causal in ((True, False), (True, True), (False, False)):
            check_attention(own, causal, 2, 32, 64, dtype)
            check_attention(own, causal, 3, 16, 16, dtype)
        for p in (0.0, 0.3):
            check_norm(p, dtype)
    check_strides()
    check_layers()
    check_relu()
    check_loss(5003, 0.1)
    check_loss(20000, 0.0)


if __name__ == "__main__":
    main()
