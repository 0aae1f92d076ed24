"""Portable arithmetic: the same bytes on every x86-64 CPU with AVX2.

The variables of config/arithmetic.py fix how torch and its libraries compute. MKL's fixed kernels take twice the time of
its native ones, so NumPy's OpenBLAS multiplies matrices. Its kernels for Haswell use AVX2.

Shapes are as in attention.py.
"""

import ctypes
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.config.arithmetic import VARIABLES

KERNELS = VARIABLES["OPENBLAS_CORETYPE"]
NARROW = (torch.bfloat16, torch.float16)  # types that numpy does not have
registered: list[torch.library.Library] = []  # with the products below; empty unless this process is portable


def portable() -> bool:
    """Whether this process computes in portable arithmetic."""
    return bool(registered)


def make_portable() -> str | None:
    """Let this process compute in portable arithmetic on the CPU, for good. Returns the reason if it cannot.

    `VARIABLES` must have been in the environment when numpy was imported and when torch first computed.
    """
    if registered:
        return None
    wrong = [name for name, value in VARIABLES.items() if os.environ.get(name) != value]
    if wrong:
        return f"{', '.join(wrong)} had to be set before numpy was imported"
    if (instructions := torch.backends.cpu.get_cpu_capability()) != "AVX2":
        return f"torch computes with {instructions}, not with AVX2"
    if (kernels := kernels_of_numpy()) != KERNELS:
        found = f"OpenBLAS for {kernels}" if kernels else "another library"
        return f"numpy multiplies by {found}, not by OpenBLAS for {KERNELS}"
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are replaced
        for name, function in OPERATIONS.items():
            library.impl(name, function, "CPU")
    registered.append(library)
    return None


def kernels_of_numpy() -> str | None:
    """The processor whose kernels NumPy's OpenBLAS uses; None if numpy was built with another library."""
    maps = Path("/proc/self/maps")  # of Linux
    lines = maps.read_text(errors="replace").splitlines() if maps.exists() else []
    for path in sorted({line.split(maxsplit=5)[-1] for line in lines if re.search(r"openblas[^/]*$", line)}):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
            if function := getattr(library, name, None):
                function.restype = ctypes.c_char_p
                return function().decode()
    return None


def product(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a b, of matrices or of equally many of them, by numpy on the memory of the tensors."""
    shape = *a.shape[:-1], b.shape[-1]
    out = torch.empty(shape, dtype=a.dtype) if out is None else out.resize_(shape)
    if a.dtype in NARROW:
        return out.copy_(product(a.float(), b.float()))
    np.matmul(a.detach().numpy(), b.detach().numpy(), out=out.numpy())
    return out


def sum_of(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha a b. For torch.addmm, by which linear layers multiply."""
    scaled = product(a, b) if alpha == 1 else product(a, b).mul_(alpha)
    return scaled.add_(bias, alpha=beta) if beta else scaled


def add(total: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Replace `total` by beta total + alpha a b."""
    return (total if beta == 1 else total.mul_(beta)).add_(product(a, b), alpha=alpha)


def scores(q_BHQE: Tensor, k_BHKE: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """scale Q K^T + mask, [B, H, Q, K]."""
    scores_BHQK = product(q_BHQE, k_BHKE.transpose(-2, -1)).mul_(scale)
    return scores_BHQK if mask is None else scores_BHQK.add_(mask)


def by_position(x_BHPE: Tensor, size: int) -> Tensor:
    """An empty tensor for [B, H, P, size] in the memory layout of [B, P, H, size], which the next linear layer takes."""
    heads, positions = x_BHPE.shape[1:3]
    return x_BHPE.new_empty(len(x_BHPE), positions, heads, size).transpose(1, 2)


def attention(
    q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, *unused: object, attn_mask: Tensor | None = None, scale: float
) -> tuple[Tensor, Tensor]:
    """softmax(scale Q K^T + mask) V, and the logarithms of the sums of the exponentials, [B, H, Q].

    Torch's dropout and its switch of a causal mask are not used. The result of a query that may attend to no key is 0.
    """
    weights_BHQK = scores(q_BHQE, k_BHKE, attn_mask, scale)
    most_BHQ1 = weights_BHQK.amax(-1, keepdim=True).clamp_(min=torch.finfo(weights_BHQK.dtype).min)
    sums_BHQ1 = weights_BHQK.sub_(most_BHQ1).exp_().sum(-1, keepdim=True).clamp_(min=1)  # the largest exponential is 1
    out_BHQE = product(weights_BHQK, v_BHKE, out=by_position(q_BHQE, v_BHKE.shape[3])).div_(sums_BHQ1)
    return out_BHQE, most_BHQ1.add_(sums_BHQ1.log_()).squeeze(-1)


def attention_backward(
    gradient_BHQE: Tensor,
    q_BHQE: Tensor,
    k_BHKE: Tensor,
    v_BHKE: Tensor,
    out_BHQE: Tensor,
    logarithms_BHQ: Tensor,
    *unused: object,
    attn_mask: Tensor | None = None,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values."""
    weights_BHQK = scores(q_BHQE, k_BHKE, attn_mask, scale).sub_(logarithms_BHQ[..., None]).exp_()
    values = product(weights_BHQK.transpose(-2, -1), gradient_BHQE, out=by_position(v_BHKE, v_BHKE.shape[3]))
    common_BHQ1 = (gradient_BHQE * out_BHQE).sum(-1, keepdim=True)
    of_scores_BHQK = product(gradient_BHQE, v_BHKE.transpose(-2, -1)).sub_(common_BHQ1).mul_(weights_BHQK).mul_(scale)
    queries = product(of_scores_BHQK, k_BHKE, out=by_position(q_BHQE, q_BHQE.shape[3]))
    keys = product(of_scores_BHQK.transpose(-2, -1), q_BHQE, out=by_position(k_BHKE, k_BHKE.shape[3]))
    return queries, keys, values


ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"  # what torch's scaled_dot_product_attention calls
OPERATIONS: dict[str, Callable] = {"mm": product, "mm.out": product, "bmm": product, "addmm": sum_of, "addmm_": add}
OPERATIONS |= {ATTENTION: attention, f"{ATTENTION}_backward": attention_backward}
