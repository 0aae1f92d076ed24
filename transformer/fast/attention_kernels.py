"""Attention (3.2) within packed sentences, forward and backward, by kernels in Triton.

A program computes a tile of `TILE` positions of one head. A sentence has 30 pieces on average, so a tile holds several. The
program goes through the positions of the other side that belong to these sentences, and a mask separates the sentences. No
scores are written to memory. The backward pass computes them again, from the logarithms of the sums of exponentials (to
base 2). The biases of queries and values are added outside of the loops.

Shapes: B rows, Q queries and K keys in a row, H heads, E d_k or d_v.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from transformer.fast.kernels import LOG2_E, contiguous
from transformer.fast.spans import TILE, Spans

# Chosen on an H200 for sentences of 25 to 60 pieces.
INNER = 16  # positions of the other side that a program takes in one iteration of its loop
STAGES = 3  # iterations of this loop whose loads are in flight


class Call:
    """The arguments of the kernels of an attention; `sizes` are h, h * d_k and h * d_v."""

    def __init__(
        self, x: Tensor, memory: Tensor | None, bias: Tensor, spans: Spans, sizes: tuple[int, int, int], scale: float
    ) -> None:
        self.heads, self.k_size, self.v_size = sizes
        memory, first = (x, self.k_size) if memory is None else (memory, 0)
        self.B, self.Q, self.K = len(x), x.shape[1], memory.shape[1]
        columns = x.shape[2], memory.shape[2], first, first + self.k_size
        numbers = self.Q, self.K, *columns, scale * LOG2_E.value
        self.given = x, memory, bias
        self.of_queries = spans.query_BQ, spans.key_BK, spans.keys_BT2, *numbers
        self.of_keys = spans.query_BQ, spans.key_BK, spans.queries_BT2, *numbers
        self.options = {
            "CAUSAL": spans.causal,
            "EK": self.k_size // self.heads,
            "EV": self.v_size // self.heads,
            "TILE": TILE,
            "INNER": INNER,
            "num_stages": STAGES,
        }

    def grid(self, positions: int) -> tuple[int, int, int]:
        return self.heads, triton.cdiv(positions, TILE), self.B


@triton.jit
def load_tile(rows, row, columns, length, first, width: tl.constexpr, positions):
    """[positions, width] of row `row` of a table [B, length, columns], from column `first`; 0 beyond the length."""
    index = (row * length + positions).to(tl.int64)[:, None] * columns + first + tl.arange(0, width)[None, :]
    return tl.load(rows + index, mask=(positions < length)[:, None], other=0.0)


@triton.jit
def load_bias(bias, first, width: tl.constexpr):
    """[1, width] of a vector, from element `first`."""
    return tl.load(bias + first + tl.arange(0, width)).to(tl.float32)[None, :]


@triton.jit
def load_queries(x, bias, q_sentence, row, x_columns, Q, head, queries, EK: tl.constexpr):
    """A tile of queries with their bias, and the sentence of each."""
    q = load_tile(x, row, x_columns, Q, head * EK, EK, queries)
    q = (q.to(tl.float32) + load_bias(bias, head * EK, EK)).to(q.dtype)
    return q, tl.load(q_sentence + row * Q + queries, mask=queries < Q, other=-1)


@triton.jit
def load_keys(memory, k_sentence, row, memory_columns, K, k_first, v_first, head, keys, EK: tl.constexpr, EV: tl.constexpr):
    """A tile of keys and their values without biases, and the sentence of each."""
    k = load_tile(memory, row, memory_columns, K, k_first + head * EK, EK, keys)
    v = load_tile(memory, row, memory_columns, K, v_first + head * EV, EV, keys)
    return k, v, tl.load(k_sentence + row * K + keys, mask=keys < K, other=-2)


@triton.jit
def load_span(spans, row, tile):
    """Where the other side of a tile begins and ends."""
    place = spans + (row * tl.num_programs(1) + tile) * 2
    return tl.load(place), tl.load(place + 1)


@triton.jit
def allowed_between(q_own, k_own, queries, keys, CAUSAL: tl.constexpr):
    """Whether each query attends to each key. One of the sides has the shape [positions, 1], the other [1, positions]."""
    allowed = q_own == k_own
    if CAUSAL:
        allowed = allowed & (queries >= keys)
    return allowed


@triton.jit
def store_tile(rows, row, columns, length, first, width: tl.constexpr, positions, values):
    """Write `values` to where `load_tile` reads."""
    index = (row * length + positions).to(tl.int64)[:, None] * columns + first + tl.arange(0, width)[None, :]
    tl.store(rows + index, values.to(rows.dtype.element_ty), mask=(positions < length)[:, None])


@triton.jit
def attention_kernel(
    x, memory, bias, out, lse, q_sentence, k_sentence, spans, Q, K, x_columns, memory_columns, k_first, v_first, scale,
    CAUSAL: tl.constexpr, EK: tl.constexpr, EV: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """The output of a tile of queries, and the logarithms of their sums of exponentials."""
    head, tile, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(0)
    queries = tile * TILE + tl.arange(0, TILE)
    q, q_own = load_queries(x, bias, q_sentence, row, x_columns, Q, head, queries, EK)
    start, stop = load_span(spans, row, tile)
    if CAUSAL:
        stop = tl.minimum(stop, (tile + 1) * TILE)
    most = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    result = tl.zeros([TILE, EV], tl.float32)
    for begin in range(start, stop, INNER):
        keys = begin + tl.arange(0, INNER)
        k, v, k_own = load_keys(memory, k_sentence, row, memory_columns, K, k_first, v_first, head, keys, EK, EV)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = allowed_between(q_own[:, None], k_own[None, :], queries[:, None], keys[None, :], CAUSAL)
        scores = tl.where(allowed, scores, float("-inf"))
        new_most = tl.maximum(most, tl.max(scores, 1))
        finite = tl.where(new_most == float("-inf"), 0.0, new_most)
        weights = tl.exp2(scores - finite[:, None])
        shrink = tl.exp2(most - finite)
        total = total * shrink + tl.sum(weights, 1)
        result = result * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        most = new_most
    empty = total == 0.0  # a query without keys: padding
    result = result / tl.where(empty, 1.0, total)[:, None]
    result += tl.where(empty[:, None], 0.0, load_bias(bias, 2 * heads * EK + head * EV, EV))
    store_tile(out, row, heads * EV, Q, head * EV, EV, queries, result)
    sums = tl.where(empty, float("inf"), most + tl.log2(total))
    tl.store(lse + (row * heads + head) * Q + queries, sums, mask=queries < Q)


@triton.jit
def attention_query_kernel(
    x, memory, bias, out, out_gradient, lse, delta, x_gradient, sums, q_sentence, k_sentence, spans, Q, K,
    x_columns, memory_columns, k_first, v_first, scale,
    CAUSAL: tl.constexpr, EK: tl.constexpr, EV: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries, and their products of output and gradient (`delta`) for `attention_key_kernel`."""
    head, tile, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, tiles = tl.num_programs(0), tl.num_programs(1)
    queries = tile * TILE + tl.arange(0, TILE)
    q, q_own = load_queries(x, bias, q_sentence, row, x_columns, Q, head, queries, EK)
    gradient = load_tile(out_gradient, row, heads * EV, Q, head * EV, EV, queries)
    output = load_tile(out, row, heads * EV, Q, head * EV, EV, queries)
    output = output.to(tl.float32) - load_bias(bias, 2 * heads * EK + head * EV, EV)
    products = tl.sum(output * gradient.to(tl.float32), 1)
    place = (row * heads + head) * Q + queries
    tl.store(delta + place, products, mask=queries < Q)
    logs = tl.load(lse + place, mask=queries < Q, other=float("inf"))
    start, stop = load_span(spans, row, tile)
    if CAUSAL:
        stop = tl.minimum(stop, (tile + 1) * TILE)
    result = tl.zeros([TILE, EK], tl.float32)
    for begin in range(start, stop, INNER):
        keys = begin + tl.arange(0, INNER)
        k, v, k_own = load_keys(memory, k_sentence, row, memory_columns, K, k_first, v_first, head, keys, EK, EV)
        allowed = allowed_between(q_own[:, None], k_own[None, :], queries[:, None], keys[None, :], CAUSAL)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        weights = tl.where(allowed, tl.exp2(scores - logs[:, None]), 0.0)
        change = weights * (tl.dot(gradient, tl.trans(v), input_precision="ieee") - products[:, None])
        result += tl.dot(change.to(k.dtype), k, input_precision="ieee")
    result *= scale / LOG2_E
    store_tile(x_gradient, row, x_columns, Q, head * EK, EK, queries, result)
    tl.store(sums + (row * tiles + tile) * heads * EK + head * EK + tl.arange(0, EK), tl.sum(result, 0))


@triton.jit
def attention_key_kernel(
    x, memory, bias, out_gradient, lse, delta, memory_gradient, sums, q_sentence, k_sentence, spans, Q, K,
    x_columns, memory_columns, k_first, v_first, scale,
    CAUSAL: tl.constexpr, EK: tl.constexpr, EV: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and values."""
    head, tile, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, tiles = tl.num_programs(0), tl.num_programs(1)
    keys = tile * TILE + tl.arange(0, TILE)
    k, v, k_own = load_keys(memory, k_sentence, row, memory_columns, K, k_first, v_first, head, keys, EK, EV)
    q_bias = load_bias(bias, head * EK, EK)
    # The scores of the bias of the queries. `attention_kernel` adds the bias before it rounds; the difference is rounding.
    shift = tl.sum(k.to(tl.float32) * q_bias, 1)
    changes = tl.zeros([TILE], tl.float32)
    start, stop = load_span(spans, row, tile)
    if CAUSAL:
        start = tl.maximum(start, tile * TILE)
    k_result = tl.zeros([TILE, EK], tl.float32)
    v_result = tl.zeros([TILE, EV], tl.float32)
    for begin in range(start, stop, INNER):
        queries = begin + tl.arange(0, INNER)
        q = load_tile(x, row, x_columns, Q, head * EK, EK, queries)
        gradient = load_tile(out_gradient, row, heads * EV, Q, head * EV, EV, queries)
        place = (row * heads + head) * Q + queries
        logs = tl.load(lse + place, mask=queries < Q, other=float("inf"))
        products = tl.load(delta + place, mask=queries < Q, other=0.0)
        q_own = tl.load(q_sentence + row * Q + queries, mask=queries < Q, other=-1)
        allowed = allowed_between(q_own[None, :], k_own[:, None], queries[None, :], keys[:, None], CAUSAL)
        scores = (tl.dot(k, tl.trans(q), input_precision="ieee") + shift[:, None]) * scale
        weights = tl.where(allowed, tl.exp2(scores - logs[None, :]), 0.0)
        v_result += tl.dot(weights.to(gradient.dtype), gradient, input_precision="ieee")
        change = weights * (tl.dot(v, tl.trans(gradient), input_precision="ieee") - products[None, :])
        k_result += tl.dot(change.to(q.dtype), q, input_precision="ieee")
        changes += tl.sum(change, 1)
    k_result = (k_result + changes[:, None] * q_bias) * (scale / LOG2_E)
    store_tile(memory_gradient, row, memory_columns, K, k_first + head * EK, EK, keys, k_result)
    store_tile(memory_gradient, row, memory_columns, K, v_first + head * EV, EV, keys, v_result)
    tl.store(sums + (row * tiles + tile) * heads * EV + head * EV + tl.arange(0, EV), tl.sum(v_result, 0))


class Attend(torch.autograd.Function):
    """The attended values of all heads, [B, Q, H * d_v].

    Without `memory`, `x` holds queries, keys and values, [B, Q, 2 H d_k + H d_v]. With `memory`, `x` holds the queries and
    `memory` the keys and values. `bias`, [2 H d_k + H d_v], is added to queries and values. The bias of the keys adds the
    same number to all scores of a query, which changes no softmax, so it is not read and its gradient is 0.
    """

    @staticmethod
    def forward(ctx, x, memory, bias, spans: Spans, sizes: tuple[int, int, int], scale: float) -> Tensor:
        contiguous(x, memory, bias)
        call = Call(x, memory, bias, spans, sizes, scale)
        out, logs = x.new_empty(call.B, call.Q, call.v_size), x.new_empty(call.B, call.heads, call.Q, dtype=torch.float32)
        attention_kernel[call.grid(call.Q)](*call.given, out, logs, *call.of_queries, **call.options)
        ctx.save_for_backward(x, memory, bias, out, logs)
        ctx.settings = spans, sizes, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, memory, bias, out, logs = ctx.saved_tensors
        call, gradient = Call(x, memory, bias, *ctx.settings), gradient.contiguous()
        x_gradient, delta = torch.empty_like(x), torch.empty_like(logs)
        memory_gradient = x_gradient if memory is None else torch.empty_like(memory)
        tiles = [call.B * triton.cdiv(positions, TILE) for positions in (call.Q, call.K)]
        query_bias, value_bias = logs.new_empty(tiles[0], call.k_size), logs.new_empty(tiles[1], call.v_size)
        attention_query_kernel[call.grid(call.Q)](
            *call.given, out, gradient, logs, delta, x_gradient, query_bias, *call.of_queries, **call.options
        )
        attention_key_kernel[call.grid(call.K)](
            *call.given, gradient, logs, delta, memory_gradient, value_bias, *call.of_keys, **call.options
        )
        query_bias, value_bias = query_bias.sum(0), value_bias.sum(0)
        bias_gradient = torch.cat([query_bias, torch.zeros_like(query_bias), value_bias])
        return x_gradient, None if memory is None else memory_gradient, bias_gradient, None, None, None
