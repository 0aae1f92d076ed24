"""The loss (section 5.4): cross-entropy with the smoothed target (1 - eps) * onehot + eps / V, summed over tokens.

Shapes: N target tokens without padding, P pairs of rows of R-Drop, D d_model, V vocabulary.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# Target tokens whose logits are in memory at once: enough for an efficient matrix product, and to fill a GPU.
# Even, so that no pair of rows of R-Drop is divided.
ROWS = {"cpu": 512, "cuda": 4096}
BLOCK = 64  # rows that `in_blocks` processes at a time; also even


def cross_entropy(
    hidden_ND: Tensor,
    embedding_VD: Tensor,
    labels_N: Tensor,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
    fast: bool = False,
) -> Tensor:
    """The summed loss, in nats, of the labels under softmax(hidden embedding^T).

    Without smoothing, the exponential of the mean loss is the perplexity. The logits of all tokens are never in memory
    at once.

    With `r_drop` (alpha of R-Drop, L. Wu et al. 2021), rows 2i and 2i + 1 are the same token in two passes with different
    dropout masks. The loss of a token is then half of equation 4 of that paper: the mean cross-entropy of its two rows,
    plus alpha / 4 times the sum of the two Kullback-Leibler divergences between them.

    `fast` is for a GPU with our kernels: without R-Drop, one of them computes loss and gradient in the place of the logits.
    """
    # Determined here: in Function.forward gradients are disabled, and `needs_input_grad` is true even in inference mode.
    needed = torch.is_grad_enabled() and (hidden_ND.requires_grad or embedding_VD.requires_grad)
    return ProjectedCrossEntropy.apply(hidden_ND, embedding_VD, labels_N, smoothing, r_drop, needed, fast)


class ProjectedCrossEntropy(torch.autograd.Function):
    """Projection, softmax and loss in one function, for `ROWS` tokens at a time.

    The forward pass also computes the gradients, so that no logits have to be kept or computed again.
    """

    @staticmethod
    def forward(
        ctx,
        hidden_ND: Tensor,
        embedding_VD: Tensor,
        labels_N: Tensor,
        smoothing: float,
        r_drop: float,
        needed: bool,
        fast: bool,
    ) -> Tensor:
        device = hidden_ND.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_ND.dtype
        hidden, embedding = hidden_ND.to(dtype), embedding_VD.to(dtype)
        blocks = (device, dtype) == ("cpu", torch.bfloat16)
        if blocks:  # Add rows of zeros: oneDNN plans each number of rows anew, and the last part has a varying number.
            hidden = F.pad(hidden, (0, 0, 0, -len(hidden) % BLOCK))
        # The parts of the embedding's gradient are added in float32, on a CPU in `dtype`, where there are few parts.
        wide = torch.float32 if hidden.is_cuda else dtype
        gradients = (torch.empty_like(hidden), torch.zeros_like(embedding, dtype=wide)) if needed else None
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        rows = ROWS[device]
        function: Callable = partial(in_blocks if blocks else loss_and_gradient, r_drop=r_drop)
        if fast and not r_drop:
            from transformer.fast import kernels  # needs Triton

            function = kernels.loss_and_gradient
        for start in range(0, len(hidden), rows):
            part = slice(start, start + rows)
            logits = hidden[part] @ embedding.T
            loss_of_part, logits_gradient = function(logits, labels_N[part], smoothing, needed)
            loss += loss_of_part
            if gradients and logits_gradient is not None:
                torch.mm(logits_gradient, embedding, out=gradients[0][part])
                if wide == dtype:
                    gradients[1].addmm_(logits_gradient.T, hidden[part])
                else:
                    gradients[1] += logits_gradient.T @ hidden[part]
        if gradients:
            ctx.save_for_backward(gradients[0][: len(hidden_ND)], gradients[1])
        ctx.dtypes = hidden_ND.dtype, embedding_VD.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(scaled(*pair, gradient) for pair in zip(ctx.saved_tensors, ctx.dtypes)), *[None] * 5


def scaled(saved: Tensor, dtype: torch.dtype, factor: Tensor) -> Tensor:
    """`saved` times `factor`, which may be in float32 while `dtype`, that of the result, is bfloat16."""
    wide = torch.promote_types(dtype, factor.dtype)
    # `mul_`, because a further buffer of the embedding's size would be large.
    return saved.to(wide, copy=True).mul_(factor).to(dtype)


def loss_and_gradient(
    logits_NV: Tensor, labels_N: Tensor, smoothing: float, needed: bool, r_drop: float
) -> tuple[Tensor, Tensor | None]:
    """The summed loss, [], and its gradient with respect to the logits, [N, V] (None if not `needed`)."""
    log_probs_NV, vocabulary = logits_NV.float().log_softmax(-1), logits_NV.shape[1]
    likelihood = log_probs_NV.gather(1, labels_N[:, None]).sum()
    loss = -((1 - smoothing) * likelihood + smoothing / vocabulary * log_probs_NV.sum())
    if r_drop:
        divergence, divergence_gradient_NV = divergence_and_gradient(log_probs_NV)
        loss = (loss + r_drop / 2 * divergence) / 2
    if not needed:
        return loss, None
    gradient_NV = log_probs_NV.exp_().sub_(smoothing / vocabulary)
    target_N = torch.full_like(labels_N, smoothing - 1, dtype=gradient_NV.dtype)
    gradient_NV.scatter_add_(1, labels_N[:, None], target_N[:, None])
    if r_drop:
        gradient_NV = gradient_NV.add_(divergence_gradient_NV, alpha=r_drop / 2).div_(2)
    return loss, gradient_NV.to(logits_NV.dtype)


def divergence_and_gradient(log_probs_NV: Tensor) -> tuple[Tensor, Tensor]:
    """Summed KL(p||q) + KL(q||p) of rows 2i (p) and 2i + 1 (q), [], and its gradient with respect to the logits, [N, V]."""
    log_probs_P2V = log_probs_NV.unflatten(0, (-1, 2))
    probs_P2V = log_probs_P2V.exp()
    difference_P2V = log_probs_P2V - log_probs_P2V.flip(1)
    divergence_P21 = (probs_P2V * difference_P2V).sum(-1, keepdim=True)
    gradient_P2V = probs_P2V * (difference_P2V - divergence_P21) + probs_P2V - probs_P2V.flip(1)
    return divergence_P21.sum(), gradient_P2V.flatten(0, 1)


def in_blocks(
    logits_NV: Tensor, labels_N: Tensor, smoothing: float, needed: bool, r_drop: float
) -> tuple[Tensor, Tensor | None]:
    """`loss_and_gradient`, a few rows at a time. If `needed`, the gradient overwrites the logits.

    The float32 copies of a few rows stay in the cache of a CPU. This halves the time. Rows without a label are ignored;
    their logits are zero, and so is their gradient.
    """
    loss = torch.zeros((), device=logits_NV.device)
    for block_NV, block_labels_N in zip(logits_NV[: len(labels_N)].split(BLOCK), labels_N.split(BLOCK)):
        part, gradient_NV = loss_and_gradient(block_NV, block_labels_N, smoothing, needed, r_drop)
        loss += part
        if needed:
            block_NV.copy_(gradient_NV)
    return loss, logits_NV if needed else None
