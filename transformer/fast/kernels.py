"""The kernels of the operators in operators.py, in Triton.

Attention (3.2): a program computes a tile of `TILE` positions of one head. A sentence has 30 pieces on average, so a tile
holds several. The program goes through the positions of the other side that belong to these sentences, and a mask separates
the sentences. No scores are written to memory. The backward pass computes them again, from the logarithms of the sums of
exponentials (to base 2). The biases of queries and values are added outside of the loops.

Shapes: B rows, Q queries and K keys in a row, H heads, E d_k or d_v, N positions, D columns, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from transformer.fast.operators import PROGRAMS
from transformer.fast.spans import TILE

# Chosen on an H200 for sentences of 25 to 60 pieces.
INNER = 16  # positions of the other side that a program of attention takes in one iteration of its loop
STAGES = 3  # iterations of this loop whose loads are in flight
CHUNK = 8192  # logits that a program of the loss takes at a time
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


class Call:
    """The arguments that the kernels of an attention share."""

    def __init__(self, x: Tensor, memory: Tensor | None, sizes: tuple[int, int, int], scale: float, causal: bool) -> None:
        self.heads, self.k_size, self.v_size = sizes
        self.memory, first = (x, self.k_size) if memory is None else (memory, 0)
        self.B, self.Q, self.K = len(x), x.shape[1], self.memory.shape[1]
        columns = x.shape[2], self.memory.shape[2], first, first + self.k_size
        self.numbers = self.Q, self.K, *columns, scale * LOG2_E.value
        self.options = {
            "CAUSAL": causal,
            "EK": self.k_size // self.heads,
            "EV": self.v_size // self.heads,
            "TILE": TILE,
            "INNER": INNER,
            "PRECISION": "ieee" if x.dtype == torch.float32 else "tf32",
            "num_stages": STAGES,
        }

    def grid(self, positions: int) -> tuple[int, int, int]:
        return self.heads, triton.cdiv(positions, TILE), self.B


def contiguous(*tensors: Tensor | None) -> None:
    """The kernels compute addresses from shapes."""
    assert all(tensor is None or tensor.is_contiguous() for tensor in tensors), "the kernels need contiguous tensors"


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
    PRECISION: tl.constexpr,
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
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        allowed = allowed_between(q_own[:, None], k_own[None, :], queries[:, None], keys[None, :], CAUSAL)
        scores = tl.where(allowed, scores, float("-inf"))
        new_most = tl.maximum(most, tl.max(scores, 1))
        finite = tl.where(new_most == float("-inf"), 0.0, new_most)
        weights = tl.exp2(scores - finite[:, None])
        shrink = tl.exp2(most - finite)
        total = total * shrink + tl.sum(weights, 1)
        result = result * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
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
    PRECISION: tl.constexpr,
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
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        weights = tl.where(allowed, tl.exp2(scores - logs[:, None]), 0.0)
        change = weights * (tl.dot(gradient, tl.trans(v), input_precision=PRECISION) - products[:, None])
        result += tl.dot(change.to(k.dtype), k, input_precision=PRECISION)
    result *= scale / LOG2_E
    store_tile(x_gradient, row, x_columns, Q, head * EK, EK, queries, result)
    tl.store(sums + (row * tiles + tile) * heads * EK + head * EK + tl.arange(0, EK), tl.sum(result, 0))


@triton.jit
def attention_key_kernel(
    x, memory, bias, out_gradient, lse, delta, memory_gradient, sums, q_sentence, k_sentence, spans, Q, K,
    x_columns, memory_columns, k_first, v_first, scale,
    CAUSAL: tl.constexpr, EK: tl.constexpr, EV: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr,
    PRECISION: tl.constexpr,
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
        scores = (tl.dot(k, tl.trans(q), input_precision=PRECISION) + shift[:, None]) * scale
        weights = tl.where(allowed, tl.exp2(scores - logs[None, :]), 0.0)
        v_result += tl.dot(weights.to(gradient.dtype), gradient, input_precision=PRECISION)
        change = weights * (tl.dot(v, tl.trans(gradient), input_precision=PRECISION) - products[None, :])
        k_result += tl.dot(change.to(q.dtype), q, input_precision=PRECISION)
        changes += tl.sum(change, 1)
    k_result = (k_result + changes[:, None] * q_bias) * (scale / LOG2_E)
    store_tile(memory_gradient, row, memory_columns, K, k_first + head * EK, EK, keys, k_result)
    store_tile(memory_gradient, row, memory_columns, K, v_first + head * EV, EV, keys, v_result)
    tl.store(sums + (row * tiles + tile) * heads * EV + head * EV + tl.arange(0, EV), tl.sum(v_result, 0))


def attend(x, memory, bias, query, key, keys, sizes, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    """See `operators.attend`."""
    contiguous(x, memory, bias, query, key, keys)
    call = Call(x, memory, sizes, scale, causal)
    out, logs = x.new_empty(call.B, call.Q, call.v_size), x.new_empty(call.B, call.heads, call.Q, dtype=torch.float32)
    attention_kernel[call.grid(call.Q)](x, call.memory, bias, out, logs, query, key, keys, *call.numbers, **call.options)
    return out, logs


def attend_gradient(
    gradient, x, memory, bias, query, key, keys, queries, out, logs, sizes, scale: float, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `operators.attend_gradient`."""
    contiguous(gradient, x, memory, bias, query, key, keys, queries, out, logs)
    call = Call(x, memory, sizes, scale, causal)
    x_gradient, delta = torch.empty_like(x), torch.empty_like(logs)
    memory_gradient = x_gradient if memory is None else torch.empty_like(memory)
    tiles = [call.B * triton.cdiv(positions, TILE) for positions in (call.Q, call.K)]
    query_bias, value_bias = logs.new_empty(tiles[0], call.k_size), logs.new_empty(tiles[1], call.v_size)
    given, sides = (x, call.memory, bias), (query, key)
    attention_query_kernel[call.grid(call.Q)](
        *given, out, gradient, logs, delta, x_gradient, query_bias, *sides, keys, *call.numbers, **call.options
    )
    attention_key_kernel[call.grid(call.K)](
        *given, gradient, logs, delta, memory_gradient, value_bias, *sides, queries, *call.numbers, **call.options
    )
    return x_gradient, x.new_empty(0) if memory is None else memory_gradient, query_bias, value_bias


@triton.jit
def random_bits(seed, offset):
    """32 random bits for each offset: a counter, mixed twice by a hash of two multiplications and three shifts."""
    first = tl.load(seed).to(tl.uint32)
    second = tl.load(seed + 1).to(tl.uint32)
    bits = offset.to(tl.uint32) + first
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    bits = (bits ^ (bits >> 16)) ^ second
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def norm_kernel(
    x, change, change_bias, gain, bias, seed, total, out, statistics, N, D, threshold, scale, eps,
    DROPS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """LayerNorm(x + Dropout(change + change_bias)), the sum, and the mean and the inverse deviation of its rows."""
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    inside = (rows < N)[:, None] & (columns < D)[None, :]
    offset = rows[:, None].to(tl.int64) * D + columns[None, :]
    added = tl.load(change_bias + columns, mask=columns < D, other=0.0).to(tl.float32)
    summand = tl.load(change + offset, mask=inside, other=0.0).to(tl.float32) + added[None, :]
    if DROPS:
        summand = tl.where(random_bits(seed, offset) >= threshold.to(tl.uint32), summand * scale, 0.0)
    value = tl.load(x + offset, mask=inside, other=0.0).to(tl.float32) + summand
    mean = tl.sum(value, 1) / D
    centred = tl.where((columns < D)[None, :], value - mean[:, None], 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)
    g = tl.load(gain + columns, mask=columns < D, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=columns < D, other=0.0).to(tl.float32)
    tl.store(total + offset, value.to(total.dtype.element_ty), mask=inside)
    tl.store(out + offset, (centred * inverse[:, None] * g[None, :] + b[None, :]).to(out.dtype.element_ty), mask=inside)
    tl.store(statistics + rows, mean, mask=rows < N)
    tl.store(statistics + N + rows, inverse, mask=rows < N)


@triton.jit
def norm_gradient_kernel(
    gradient, total, statistics, gain, seed, x_gradient, change_gradient, sums, N, D, threshold, scale, steps,
    DROPS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradients of x and change, and those of gain, bias and change_bias, summed over the rows of this program."""
    program, columns = tl.program_id(0), tl.arange(0, WIDTH)
    g = tl.load(gain + columns, mask=columns < D, other=0.0).to(tl.float32)
    gain_sum = tl.zeros([ROWS, WIDTH], tl.float32)
    bias_sum = tl.zeros([ROWS, WIDTH], tl.float32)
    change_sum = tl.zeros([ROWS, WIDTH], tl.float32)
    for step in range(steps):
        rows = (step * tl.num_programs(0) + program) * ROWS + tl.arange(0, ROWS)
        inside = (rows < N)[:, None] & (columns < D)[None, :]
        offset = rows[:, None].to(tl.int64) * D + columns[None, :]
        upper = tl.load(gradient + offset, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(total + offset, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(statistics + rows, mask=rows < N, other=0.0)
        inverse = tl.load(statistics + N + rows, mask=rows < N, other=0.0)
        normal = tl.where(inside, (value - mean[:, None]) * inverse[:, None], 0.0)
        gain_sum += upper * normal
        bias_sum += upper
        weighted = upper * g[None, :]
        along = tl.sum(weighted * normal, 1) / D
        shift = tl.sum(weighted, 1) / D
        result = (weighted - shift[:, None] - normal * along[:, None]) * inverse[:, None]
        tl.store(x_gradient + offset, result.to(x_gradient.dtype.element_ty), mask=inside)
        if DROPS:
            result = tl.where(random_bits(seed, offset) >= threshold.to(tl.uint32), result * scale, 0.0)
        change_sum += result
        tl.store(change_gradient + offset, result.to(change_gradient.dtype.element_ty), mask=inside)
    place = sums + program * 3 * D + columns
    tl.store(place, tl.sum(gain_sum, 0), mask=columns < D)
    tl.store(place + D, tl.sum(bias_sum, 0), mask=columns < D)
    tl.store(place + 2 * D, tl.sum(change_sum, 0), mask=columns < D)


def tiles(columns: int, rows: int) -> dict:
    """The size of a program that holds so many rows at a time."""
    width = triton.next_power_of_2(columns)
    return {"WIDTH": width, "ROWS": rows, "num_warps": min(max(rows * width // 512, 1), 8)}


def drops(p: float) -> tuple[int, float]:
    """The bound below which random bits drop an element, and the factor of the others."""
    return min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)


def norm(x: Tensor, change, change_bias, gain, bias, seed, p: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """See `operators.add_and_norm`."""
    contiguous(x, change, change_bias, gain, bias)
    D = x.shape[-1]
    N = x.numel() // D
    total, out = torch.empty_like(x), torch.empty_like(x)
    statistics = x.new_empty(2, N, dtype=torch.float32)
    chosen = tiles(D, 4)
    norm_kernel[(triton.cdiv(N, chosen["ROWS"]),)](
        x, change, change_bias, gain, bias, seed, total, out, statistics, N, D, *drops(p), eps, DROPS=p > 0, **chosen
    )
    return out, total, statistics


def norm_gradient(gradient: Tensor, total, statistics, gain, seed, p: float) -> tuple[Tensor, Tensor, Tensor]:
    """See `operators.add_and_norm_gradient`."""
    contiguous(gradient, total, statistics, gain)
    D = gradient.shape[-1]
    N = gradient.numel() // D
    chosen = tiles(D, 2)
    x_gradient, change_gradient = torch.empty_like(total), torch.empty_like(total)
    sums = gradient.new_empty(PROGRAMS, 3, D, dtype=torch.float32)
    norm_gradient_kernel[(PROGRAMS,)](
        gradient, total, statistics, gain, seed, x_gradient, change_gradient, sums, N, D, *drops(p),
        triton.cdiv(N, PROGRAMS * chosen["ROWS"]), DROPS=p > 0, **chosen,
    )  # fmt: skip
    return x_gradient, change_gradient, sums


@triton.jit
def relu_gradient_kernel(gradient, out, result, sums, N, D, steps, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    """`gradient` where `out` is positive, otherwise 0; and its sum over the rows of this program."""
    columns = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros([ROWS, WIDTH], tl.float32)
    for step in range(steps):
        rows = (step * tl.num_programs(0) + tl.program_id(0)) * ROWS + tl.arange(0, ROWS)
        inside = (rows < N)[:, None] & (columns < D)[None, :]
        offset = rows[:, None].to(tl.int64) * D + columns[None, :]
        upper = tl.load(gradient + offset, mask=inside, other=0.0)
        value = tl.where(tl.load(out + offset, mask=inside, other=0.0) > 0, upper, 0.0)
        total += value.to(tl.float32)
        tl.store(result + offset, value, mask=inside)
    tl.store(sums + tl.program_id(0) * D + columns, tl.sum(total, 0), mask=columns < D)


def relu_gradient(gradient: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """See `operators.relu_gradient`."""
    contiguous(gradient, out)
    D = out.shape[-1]
    N = out.numel() // D
    result, sums = torch.empty_like(gradient), gradient.new_empty(PROGRAMS // 8, D, dtype=torch.float32)
    relu_gradient_kernel[(len(sums), triton.cdiv(D, 512))](
        gradient, out, result, sums, N, D, triton.cdiv(N, len(sums) * 4), WIDTH=512, ROWS=4, num_warps=4
    )
    return result, sums


@triton.jit
def loss_kernel(logits, labels, losses, smoothing, V: tl.constexpr, CHUNK: tl.constexpr, GRADIENT: tl.constexpr):
    """The loss of a row of logits. With `GRADIENT`, its gradient overwrites the logits."""
    row = tl.program_id(0)
    logits += row.to(tl.int64) * V
    label = tl.load(labels + row)
    most, total, exponentials = float("-inf"), tl.zeros([CHUNK], tl.float32), tl.zeros([CHUNK], tl.float32)
    for begin in range(0, V, CHUNK):
        columns = begin + tl.arange(0, CHUNK)
        x = tl.load(logits + columns, mask=columns < V, other=float("-inf")).to(tl.float32)
        new_most = tl.maximum(most, tl.max(x, 0))
        exponentials = exponentials * tl.exp2((most - new_most) * LOG2_E)
        exponentials += tl.exp2((x - new_most) * LOG2_E)
        total += tl.where(columns < V, x, 0.0)
        most = new_most
    log_sum = most + tl.log2(tl.sum(exponentials, 0)) * LN_2
    chosen = tl.load(logits + label).to(tl.float32) - log_sum
    mean = tl.sum(total, 0) / V - log_sum
    tl.store(losses + row, -((1 - smoothing) * chosen + smoothing * mean))
    if GRADIENT:
        tl.debug_barrier()  # all threads have read the logit of the label
        for begin in range(0, V, CHUNK):
            columns = begin + tl.arange(0, CHUNK)
            x = tl.load(logits + columns, mask=columns < V, other=float("-inf")).to(tl.float32)
            gradient = tl.exp2((x - log_sum) * LOG2_E) - smoothing / V
            gradient = tl.where(columns == label, gradient - (1 - smoothing), gradient)
            tl.store(logits + columns, gradient.to(logits.dtype.element_ty), mask=columns < V)


def loss_and_gradient(logits: Tensor, labels: Tensor, smoothing: float, needed: bool) -> tuple[Tensor, Tensor | None]:
    """The summed loss; if `needed`, its gradient overwrites the logits."""
    contiguous(logits, labels)
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    loss_kernel[(len(logits),)](
        logits, labels, losses, smoothing, V=logits.shape[1], CHUNK=CHUNK, GRADIENT=needed, num_warps=8
    )
    return losses.sum(), logits if needed else None
