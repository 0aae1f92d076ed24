"""The loss against torch's: in float32, and in bfloat16 on inputs whose logits bfloat16 holds exactly."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.support.pairs import Pairs
from tests.support.torch_twin import tables
from transformer.device import autocast
from transformer.fast import loss
from transformer.layout import padded
from transformer.model import Transformer
from transformer.model import loss as model_loss
from transformer.perplexity import batch_loss


def by_torch(logits, labels, smoothing, alpha):
    """Half of equation 4 of R-Drop (L. Wu et al. 2021), by torch's losses. Rows 2i and 2i + 1 are the passes of token i."""
    if not alpha:
        return F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    first, second = (logits[start::2].log_softmax(-1) for start in (0, 1))
    nll = sum(F.cross_entropy(each, labels[::2], label_smoothing=smoothing, reduction="sum") for each in (first, second))
    pairs = ((first, second), (second, first))
    divergence = sum(F.kl_div(other, one, reduction="sum", log_target=True) for one, other in pairs) / 2
    return (nll + alpha * divergence) / 2


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_training_uses_equals_the_loss_of_the_essay(settings, smoothing):
    torch.manual_seed(0)
    model, pairs = Transformer(settings(), 90), Pairs(30, 12)
    batch, (_, _, labels) = padded(pairs, np.arange(30)), tables(pairs, np.arange(30))
    ours = batch_loss(model, batch, smoothing)
    expected = model_loss(model(batch.source.ids_BS, batch.target.ids_BS), labels, smoothing)
    assert ours.item() == pytest.approx(expected.item(), rel=1e-6)
    gradients = [torch.autograd.grad(each / labels.numel(), list(model.parameters())) for each in (ours, expected)]
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-5)


def test_second_derivatives_of_the_loss_are_an_error():
    hidden, embedding = (torch.randn(5, 8).requires_grad_() for _ in range(2))
    result = loss.cross_entropy(hidden, embedding, torch.arange(5))
    (first,) = torch.autograd.grad(result**2, hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize("r_drop, smoothing", [(0.0, 0.0), (0.0, 0.1), (5.0, 0.1)])
@pytest.mark.parametrize("rows", [6, 2 * loss.BLOCK + 6, loss.ROWS["cpu"] + loss.BLOCK])
def test_a_bfloat16_loss_is_that_of_float64(rows, r_drop, smoothing):
    """Only the gradients are rounded: those by the logits, and their products. Each rounding is by at most 2^-8."""
    torch.manual_seed(0)
    hidden, embedding = (torch.randint(-2, 3, (count, 8)).float().requires_grad_() for count in (rows, 17))
    labels = torch.randint(0, 17, (rows // 2,)).repeat_interleave(2)
    with autocast(torch.device("cpu"), "bfloat16"):
        result = loss.cross_entropy(hidden, embedding, labels, smoothing, r_drop)
    found = torch.autograd.grad(result, [hidden, embedding])
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, embedding)]
    expected = by_torch(exact[0] @ exact[1].T, labels, smoothing, r_drop)
    logits = (exact[0] @ exact[1].T).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(by_torch(logits, labels, smoothing, r_drop), logits)
    assert result.dtype == torch.float32
    assert result.item() == pytest.approx(expected.item(), rel=2e-6)
    parts = -(-rows // loss.ROWS["cpu"])  # the embedding's gradient is rounded after each part
    bounds = slopes.abs() @ exact[1].abs(), (slopes.abs().T @ exact[0].abs()) * parts
    for ours, theirs, bound in zip(found, torch.autograd.grad(expected, exact), bounds):
        assert ours.dtype == torch.float32
        assert ((ours - theirs).abs() <= 2**-7 * bound + 1e-6).all()


@pytest.mark.parametrize("r_drop, smoothing", [(0.0, 0.0), (0.0, 0.1), (5.0, 0.1)])
@pytest.mark.parametrize("rows", [512, 2])
def test_loss_and_gradients_equal_torch_s(monkeypatch, rows, r_drop, smoothing):
    """The loss is computed in one part and in many. The division by 3 stands for a normaliser."""
    monkeypatch.setitem(loss.ROWS, "cpu", rows)
    torch.manual_seed(0)
    hidden, embedding = torch.randn(18, 8, requires_grad=True), torch.randn(17, 8, requires_grad=True)
    labels = torch.randint(0, 17, (9,)).repeat_interleave(2)
    expected = by_torch(hidden @ embedding.T, labels, smoothing, r_drop)
    result = loss.cross_entropy(hidden, embedding, labels, smoothing, r_drop)
    torch.testing.assert_close(result, expected)
    gradients = [torch.autograd.grad(value / 3, [hidden, embedding]) for value in (result, expected)]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)
