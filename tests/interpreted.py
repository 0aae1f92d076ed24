"""The kernels of transformer/fast/ against torch, on a GPU, or with TRITON_INTERPRET=1 in Triton's interpreter."""

import os
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.support.pairs import Pairs
from transformer.batch import Rows
from transformer.config.model import ModelConfig
from transformer.fast import kernels
from transformer.fast.attention_kernels import Attend
from transformer.fast.fused import FastDecoderLayer, FastEncoderLayer, ReluOfLinear, takes_spans
from transformer.fast.proof import fault
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
    out = Attend.apply(x, memory, bias, spans, sizes, scale)
    gradient = torch.randn_like(out) * (queries.sentence_BS[..., None] > 0)  # type: ignore[index]
    parts = x.split([sizes[1], *sizes[1:]], 2) if memory is None else (x, *memory.split([*sizes[1:]], 2))
    biases = bias * torch.ones_like(bias).index_fill(0, torch.arange(sizes[1], 2 * sizes[1], device=DEVICE), 0)
    expected = attended(
        *(part + own for part, own in zip(parts, biases.split([sizes[1], *sizes[1:]]))), spans, heads, scale
    )
    given = {"x": x, "bias": bias} | ({} if memory is None else {"memory": memory})
    name = f"attention {own=} {causal=}"
    near(name, out.detach(), expected.detach(), dtype)
    found, theirs = (
        torch.autograd.grad(of, [*given.values()], by) for of, by in ((out, gradient), (expected, gradient.double()))
    )
    for key, ours, other in zip(given, found, theirs):
        near(f"{name}: {key}", ours, other, dtype)


def check_norm(p: float, dtype: torch.dtype) -> None:
    x, change = random(3, 37, 96, dtype=dtype), random(3, 37, 96, dtype=dtype)
    gradient = random(3, 37, 96, dtype=dtype).detach()
    given = {"x": x, "change": change, "change_bias": random(96), "gain": random(96), "bias": random(96)}
    seed = torch.tensor([12345678901, 987654321], device=DEVICE)

    def dropped(seed: Tensor) -> Tensor:
        """Which elements are dropped: with zeros and a change of one large element in each row, others are equal."""
        ones, none = torch.ones(3 * 37, 96, device=DEVICE), torch.zeros(96, device=DEVICE)
        out = kernels.AddAndNorm.apply(0 * ones, ones.cumsum(1), none, none + 1, none, seed, p, 1e-5)
        return out <= out.amin(1, keepdim=True) if p else torch.zeros_like(out, dtype=torch.bool)

    gone = dropped(seed).view(3, 37, 96)
    assert abs(gone.double().mean() - p) < 0.02
    summed = x.double() + ~gone * (change.double() + given["change_bias"]) / (1 - p)
    expected = F.layer_norm(summed, (96,), given["gain"].double(), given["bias"].double())
    out = kernels.AddAndNorm.apply(*given.values(), seed, p, 1e-5)
    near("norm", out.detach(), expected.detach(), dtype)
    found, theirs = (
        torch.autograd.grad(of, [*given.values()], by) for of, by in ((out, gradient), (expected, gradient.double()))
    )
    for name, ours, other in zip(given, found, theirs):
        near(f"norm: {name}", ours, other, dtype)
    assert not p or not torch.equal(dropped(seed + 1), dropped(seed)), "another seed drops other elements"
    assert torch.equal(dropped(seed), dropped(seed)), "a step that is computed again drops the same ones"


def check_strides() -> None:
    """A transposed tensor is refused, since the kernels would read other elements of it."""
    square, vector, seed = random(16, 16).detach(), random(16).detach(), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    try:
        kernels.AddAndNorm.apply(square.T, square, vector, vector, vector, seed, 0.0, 1e-5)
    except AssertionError:
        return
    raise AssertionError("not refused")


def check_relu() -> None:
    given = x, weight, bias = random(2, 33, 40), random(700, 40), random(700)
    gradient = torch.randn(2, 33, 700).to(DEVICE)
    out, expected = ReluOfLinear.apply(*given), F.linear(x, weight, bias).relu()
    near("relu", out.detach(), expected.detach())
    for ours, theirs in zip(*(torch.autograd.grad(each, given, gradient) for each in (out, expected))):
        near("relu: gradients", ours, theirs)


def check_loss(vocabulary: int, smoothing: float) -> None:
    logits, labels = (3 * random(9, vocabulary)).detach().requires_grad_(), torch.randint(vocabulary, (9,)).to(DEVICE)
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    expected.backward()
    for needed in (False, True):
        loss, gradient = kernels.loss_and_gradient(logits.detach().clone(), labels, smoothing, needed)
        near("loss", loss, expected.detach())
    assert gradient is not None
    near("loss: logits", gradient, logits.grad)


def check_proof() -> None:
    """The layers pass the check before a training, and with a kernel that computes something else they do not."""
    layers = Layers(FastEncoderLayer, FastDecoderLayer)
    sizes: dict[str, Any] = {"N": 1, "d_model": 32, "d_ff": 48, "h": 2, "d_k": 16, "d_v": 16, "max_positions": 64}
    rest: dict[str, Any] = {"positions": "sinusoidal", "attention": "scaled_dot_product", "norm": "post"}
    config = ModelConfig(dropout=0.1, attention_dropout=0.0, relu_dropout=0.0, neighbourhood=0, **sizes, **rest)
    for precision in ("float32", "bfloat16") if DEVICE == "cuda" else ["float32"]:
        assert fault(layers, config, 90, torch.device(DEVICE), precision) is None
    right = kernels.loss_and_gradient
    kernels.loss_and_gradient = lambda *given: (1.01 * right(*given)[0], right(*given)[1])
    assert "differ" in (fault(layers, config, 90, torch.device(DEVICE), "float32") or "")
    kernels.loss_and_gradient = right


def check_layers() -> None:
    """A model of fast layers gives the loss and the gradients of the reference, in training and in a dev loss."""
    fast = Layers(FastEncoderLayer, FastDecoderLayer)
    sizes: dict[str, Any] = {"N": 1, "d_model": 64, "d_ff": 96, "h": 2, "d_k": 32, "d_v": 16, "max_positions": 64}
    rest: dict[str, Any] = {"positions": "sinusoidal", "attention": "scaled_dot_product"}
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "relu_dropout": 0.0}
    for norm, near_by in (("post", 0), ("pre", 0), ("post", 9)):
        config, found = ModelConfig(norm=norm, neighbourhood=near_by, **sizes, **rest, **rates), []  # type: ignore[arg-type]
        for layers in (REFERENCE, fast):
            torch.manual_seed(2)
            model = Transformer(config, 90, layers).to(DEVICE)
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.2)
            batch = tabled(Pairs(12, 15), np.arange(12), 3, 64).to(torch.device(DEVICE))
            assert takes_spans(model) == (layers is fast and not near_by)
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
    check_proof()
    check_relu()
    check_loss(5003, 0.1)
    check_loss(20000, 0.0)


if __name__ == "__main__":
    main()
