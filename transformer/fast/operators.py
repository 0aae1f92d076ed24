"""Operators of training on a GPU that kernels of our own compute (attention_kernels.py, kernels.py).

A training step is limited by the memory that its many small operations read and write. These operators do in one pass what
takes torch several: attention within packed sentences, dropout with the residual sum and its norm, and the ReLU. They are
operators of torch, which torch.compile does not look into.

Shapes: B rows, Q queries and K keys in a row, T tiles in a row, H heads, D d_model, F d_ff, P programs.
"""

import torch
from torch import Tensor

PROGRAMS = 1056  # of a kernel that sums gradients over positions: eight for each multiprocessor of an H100


@torch.library.custom_op("transformer::attend", mutates_args=())
def attend(
    x: Tensor,
    memory: Tensor | None,
    bias: Tensor,
    query: Tensor,
    key: Tensor,
    keys: Tensor,
    queries: Tensor,
    heads: int,
    k_size: int,
    v_size: int,
    scale: float,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """The attended values of all heads, [B, Q, H * d_v], and the logarithms of the sums of exponentials, [B, H, Q].

    Without `memory`, `x` holds queries, keys and values, [B, Q, 2 H d_k + H d_v]. With `memory`, `x` holds the queries and
    `memory` the keys and values. `bias`, [2 H d_k + H d_v], is added to queries and values. The bias of the keys changes no
    softmax and is not read. The next four are the tensors of `Spans`. `k_size` is H d_k, and `v_size` is H d_v. The
    logarithms are to base 2.
    """
    from transformer.fast import attention_kernels

    with torch.cuda.device_of(x):
        return attention_kernels.attend(x, memory, bias, query, key, keys, (heads, k_size, v_size), scale, causal)


@attend.register_fake
def _(x, memory, bias, query, key, keys, queries, heads, k_size, v_size, scale, causal):
    return x.new_empty(*x.shape[:2], v_size), x.new_empty(x.shape[0], heads, x.shape[1], dtype=torch.float32)


@torch.library.custom_op("transformer::attend_gradient", mutates_args=())
def attend_gradient(
    gradient: Tensor,
    x: Tensor,
    memory: Tensor | None,
    bias: Tensor,
    query: Tensor,
    key: Tensor,
    keys: Tensor,
    queries: Tensor,
    out: Tensor,
    logs: Tensor,
    heads: int,
    k_size: int,
    v_size: int,
    scale: float,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of `x`, of `memory` (empty without it), and of the biases of queries and values in each tile."""
    from transformer.fast import attention_kernels

    tables, sizes = (query, key, keys, queries), (heads, k_size, v_size)
    with torch.cuda.device_of(x):
        return attention_kernels.attend_gradient(gradient, x, memory, bias, *tables, out, logs, sizes, scale, causal)


@attend_gradient.register_fake
def _(gradient, x, memory, bias, query, key, keys, queries, out, logs, heads, k_size, v_size, scale, causal):
    query_bias = logs.new_empty(keys.shape[0] * keys.shape[1], k_size)
    value_bias = logs.new_empty(queries.shape[0] * queries.shape[1], v_size)
    return torch.empty_like(x), x.new_empty(0) if memory is None else torch.empty_like(memory), query_bias, value_bias


def keep_for_attend(ctx, inputs, output) -> None:
    ctx.settings = inputs[7:]
    ctx.save_for_backward(*inputs[:7], *output)


def differentiate_attend(ctx, gradient, _):
    x, memory, *others = ctx.saved_tensors
    found = attend_gradient(gradient.contiguous(), x, memory, *others, *ctx.settings)
    query_bias, value_bias = (parts.sum(0) for parts in found[2:])
    # The bias of the keys adds the same number to all scores of a query, so it does not change their softmax.
    bias = torch.cat([query_bias, torch.zeros_like(query_bias), value_bias])
    return found[0], None if memory is None else found[1], bias, *[None] * 9


attend.register_autograd(differentiate_attend, setup_context=keep_for_attend)


@torch.library.custom_op("transformer::add_and_norm", mutates_args=())
def add_and_norm(
    x: Tensor, change: Tensor, change_bias: Tensor, gain: Tensor, bias: Tensor, seed: Tensor, p: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """LayerNorm(x + Dropout(change + change_bias)), [..., D], with dropout at rate `p`.

    The other results are for the gradient: the sum and the statistics of its rows. `seed`, two random integers, determines
    the dropout, so the operator gives the same result if it is computed again in the backward pass.
    """
    from transformer.fast import kernels

    with torch.cuda.device_of(x):
        return kernels.norm(x, change, change_bias, gain, bias, seed, p, eps)


@add_and_norm.register_fake
def _(x, change, change_bias, gain, bias, seed, p, eps):
    statistics = x.new_empty(2, x.numel() // x.shape[-1], dtype=torch.float32)
    return torch.empty_like(x), torch.empty_like(x), statistics


@torch.library.custom_op("transformer::add_and_norm_gradient", mutates_args=())
def add_and_norm_gradient(
    gradient: Tensor, total: Tensor, statistics: Tensor, gain: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `x` and `change`, and parts of those of gain, bias and change_bias, [P, 3, D]."""
    from transformer.fast import kernels

    with torch.cuda.device_of(gradient):
        return kernels.norm_gradient(gradient, total, statistics, gain, seed, p)


@add_and_norm_gradient.register_fake
def _(gradient, total, statistics, gain, seed, p):
    parts = total.new_empty(PROGRAMS, 3, total.shape[-1], dtype=torch.float32)
    return torch.empty_like(total), torch.empty_like(total), parts


def keep_for_norm(ctx, inputs, output) -> None:
    _, _, _, gain, _, seed, ctx.p, _ = inputs
    _, total, statistics = output
    ctx.save_for_backward(total, statistics, gain, seed)


def differentiate_norm(ctx, gradient, *_):
    total, statistics, gain, seed = ctx.saved_tensors
    x, change, parts = add_and_norm_gradient(gradient.contiguous(), total, statistics, gain, seed, ctx.p)
    gain_gradient, bias, change_bias = parts.sum(0)
    return x, change, change_bias, gain_gradient, bias, None, None, None


add_and_norm.register_autograd(differentiate_norm, setup_context=keep_for_norm)


@torch.library.custom_op("transformer::relu_of_linear", mutates_args=())
def relu_of_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """max(0, x W^T + b), [..., F], in one kernel."""
    return torch._addmm_activation(bias, x.flatten(0, -2), weight.T).view(*x.shape[:-1], -1)


@relu_of_linear.register_fake
def _(x, weight, bias):
    return x.new_empty(*x.shape[:-1], len(bias))


@torch.library.custom_op("transformer::relu_gradient", mutates_args=())
def relu_gradient(gradient: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient before the ReLU with the result `out`, and parts of its sum over all positions, [P / 8, F]."""
    from transformer.fast import kernels

    with torch.cuda.device_of(gradient):
        return kernels.relu_gradient(gradient, out)


@relu_gradient.register_fake
def _(gradient, out):
    return torch.empty_like(gradient), gradient.new_empty(PROGRAMS // 8, out.shape[-1], dtype=torch.float32)


def keep_for_relu(ctx, inputs, output) -> None:
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output)


def differentiate_relu(ctx, gradient):
    x, weight, out = ctx.saved_tensors
    inner, parts = relu_gradient(gradient.contiguous(), out)
    return inner @ weight, inner.flatten(0, -2).T @ x.flatten(0, -2), parts.sum(0).to(weight.dtype)


relu_of_linear.register_autograd(differentiate_relu, setup_context=keep_for_relu)
