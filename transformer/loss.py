"""The loss (section 5.4): label smoothing as y = (1 - eps) * onehot + eps / K, summed over target tokens.

Shapes: N target tokens (no padding), D d_model, V vocabulary.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from transformer.compilation import compiles

# Target tokens whose logits are held at once: enough for a fast matrix product, on a GPU to fill it.
ROWS = {"cpu": 512, "cuda": 4096}


def cross_entropy(hidden_ND: Tensor, embedding_VD: Tensor, labels_N: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed loss in nats of predicting `labels_N` by softmax(hidden embedding^T).

    Without smoothing, exp of its mean is the perplexity. The logits of all tokens are never held at once.
    """
    # Asked here: within a Function gradients are always off, and said to be needed even in inference mode.
    needed = torch.is_grad_enabled() and (hidden_ND.requires_grad or embedding_VD.requires_grad)
    return ProjectedCrossEntropy.apply(hidden_ND, embedding_VD, labels_N, smoothing, needed)


class ProjectedCrossEntropy(torch.autograd.Function):
    """Projection, softmax and loss in one, part by part; gradients are taken while a part's logits are at hand."""

    @staticmethod
    def forward(
        ctx, hidden_ND: Tensor, embedding_VD: Tensor, labels_N: Tensor, smoothing: float, needed: bool
    ) -> Tensor:
        device = hidden_ND.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_ND.dtype
        hidden, embedding = hidden_ND.to(kind), embedding_VD.to(kind)
        hidden_gradient = torch.empty_like(hidden) if needed else None
        embedding_gradient = torch.zeros_like(embedding) if needed else None
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        rows = ROWS.get(device, ROWS["cpu"])
        for start in range(0, len(hidden), rows):
            part = slice(start, start + rows)
            logits = hidden[part] @ embedding.T
            likelihood, logits_gradient = of_logits(device)(logits, labels_N[part], smoothing, needed)
            loss -= likelihood
            if needed:
                torch.mm(logits_gradient, embedding, out=hidden_gradient[part])
                embedding_gradient.addmm_(logits_gradient.T, hidden[part])
        ctx.save_for_backward(hidden_gradient, embedding_gradient)
        ctx.kinds = hidden_ND.dtype, embedding_VD.dtype
        return loss

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        pairs = zip(ctx.saved_tensors, ctx.kinds)
        return *(saved.to(kind) * gradient.to(kind) for saved, kind in pairs), None, None, None


@functools.cache
def of_logits(device: str) -> Callable[[Tensor, Tensor, float, bool], tuple[Tensor, Tensor | None]]:
    """`likelihood_and_gradient`; on a GPU in a few compiled passes over the logits, where torch makes nine."""
    return torch.compile(likelihood_and_gradient, dynamic=True) if compiles(device) else likelihood_and_gradient


def likelihood_and_gradient(
    logits_NV: Tensor, labels_N: Tensor, smoothing: float, needed: bool
) -> tuple[Tensor, Tensor | None]:
    """The smoothed log-likelihood and, where it is needed, the gradient of the loss by the logits."""
    log_probs_NV = logits_NV.float().log_softmax(-1)
    likelihood = smoothed_log_likelihood(log_probs_NV, labels_N, smoothing)
    gradient_NV = softmax_minus_target(log_probs_NV, labels_N, smoothing).to(logits_NV.dtype) if needed else None
    return likelihood, gradient_NV


def smoothed_log_likelihood(log_probs_NV: Tensor, labels_N: Tensor, smoothing: float) -> Tensor:
    likelihood = log_probs_NV.gather(1, labels_N[:, None]).sum()
    if not smoothing:
        return likelihood
    return (1 - smoothing) * likelihood + smoothing / log_probs_NV.shape[1] * log_probs_NV.sum()


def softmax_minus_target(log_probs_NV: Tensor, labels_N: Tensor, smoothing: float) -> Tensor:
    """The gradient of the loss by the logits, in the place of `log_probs_NV`."""
    gradient_NV = log_probs_NV.exp_()
    if smoothing:
        gradient_NV.sub_(smoothing / gradient_NV.shape[1])
    target = torch.full_like(labels_N, smoothing - 1, dtype=gradient_NV.dtype)
    return gradient_NV.scatter_add_(1, labels_N[:, None], target[:, None])
