"""The norm and the loss of training on a GPU, by kernels in Triton.

A training step is limited by the memory that its many small operations read and write. These do in one pass what takes
torch several: dropout with the residual sum and its norm, and the loss with its gradient.

Shapes: N positions, D columns, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

PROGRAMS = 1056  # of a kernel that sums gradients over positions: eight for each multiprocessor of an H200
CHUNK = 8192  # logits that a program of the loss takes at a time, chosen on an H200
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


def contiguous(*tensors: Tensor | None) -> None:
    """The kernels compute addresses from shapes."""
    assert all(tensor is None or tensor.is_contiguous() for tensor in tensors), "the kernels need contiguous tensors"


@triton.jit
def mixed(bits):
    """A hash of 32 bits: two multiplications and three shifts."""
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def random_bits(seed, offset):
    """32 random bits for each offset: a counter, mixed twice."""
    first = tl.load(seed).to(tl.uint32)
    second = tl.load(seed + 1).to(tl.uint32)
    return mixed(mixed(offset.to(tl.uint32) + first) ^ second)


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


class AddAndNorm(torch.autograd.Function):
    """LayerNorm(x + Dropout(change + change_bias)), [..., D], with dropout at rate `p`.

    `seed`, two random integers, determines the dropout, which the backward pass computes again.
    """

    @staticmethod
    def forward(ctx, x: Tensor, change, change_bias, gain, bias, seed, p: float, eps: float) -> Tensor:
        contiguous(x, change, change_bias, gain, bias)
        D = x.shape[-1]
        N, chosen = x.numel() // D, tiles(D, 4)
        total, out, statistics = torch.empty_like(x), torch.empty_like(x), x.new_empty(2, N, dtype=torch.float32)
        norm_kernel[(triton.cdiv(N, chosen["ROWS"]),)](
            x, change, change_bias, gain, bias, seed, total, out, statistics, N, D, *drops(p), eps, DROPS=p > 0, **chosen
        )
        ctx.save_for_backward(total, statistics, gain, seed)
        ctx.p = p
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        total, statistics, gain, seed = ctx.saved_tensors
        gradient, D = gradient.contiguous(), total.shape[-1]
        N, chosen = total.numel() // D, tiles(D, 2)
        x_gradient, change_gradient = torch.empty_like(total), torch.empty_like(total)
        sums = total.new_empty(PROGRAMS, 3, D, dtype=torch.float32)
        norm_gradient_kernel[(PROGRAMS,)](
            gradient, total, statistics, gain, seed, x_gradient, change_gradient, sums, N, D, *drops(ctx.p),
            triton.cdiv(N, PROGRAMS * chosen["ROWS"]), DROPS=ctx.p > 0, **chosen,
        )  # fmt: skip
        gain_gradient, bias_gradient, change_bias_gradient = sums.sum(0)
        return x_gradient, change_gradient, change_bias_gradient, gain_gradient, bias_gradient, None, None, None


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
