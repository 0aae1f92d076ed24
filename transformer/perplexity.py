"""The loss of a model on batches of pairs. Without smoothing, exp of its mean is the perplexity of Table 3.

Shapes: B rows, T target positions in a row, N positions of all target sentences, D d_model.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from transformer.batch import Batch, Pairs
from transformer.fast import fused
from transformer.fast.loss import cross_entropy
from transformer.model import Transformer

Hidden = Callable[[Batch], Tensor]


def batch_loss(
    model: Transformer, batch: Batch, smoothing: float, r_drop: float = 0.0, hidden: Hidden | None = None
) -> Tensor:
    """The loss summed over a batch's target tokens. `r_drop` above 0 is alpha of R-Drop (see `cross_entropy`).

    `hidden` replaces `fast.fused.hidden`.
    """
    if r_drop:
        batch = batch.twice()
    hidden_BTD = hidden(batch) if hidden else fused.hidden(model, batch)
    hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, batch.real_N)
    return cross_entropy(hidden_ND, model.embedding, batch.labels_N, smoothing, r_drop, fused.is_fast(model))


@contextmanager
def evaluating(
    model: Transformer, pairs: Pairs, batches: Iterable[np.ndarray], device: torch.device
) -> Iterator[Iterator[Batch]]:
    """The batches on the device, with the model in evaluation mode and without gradients.

    The computation is in the precision of the weights, float32, whatever the precision of training and decoding.
    """
    was_training, layout = model.training, fused.layout_on(device, "float32", model)
    model.eval()
    try:
        with torch.inference_mode():
            yield (layout(pairs, numbers).to(device) for numbers in batches)
    finally:
        model.train(was_training)


def summed_loss(model: Transformer, pairs: Pairs, batches: Iterable[np.ndarray], device: torch.device) -> tuple[float, int]:
    """The unsmoothed loss in nats, summed over all target tokens (EOS included), and their number."""
    total, tokens = 0.0, 0
    with evaluating(model, pairs, batches, device) as given:
        for batch in given:
            total, tokens = total + batch_loss(model, batch, 0.0).item(), tokens + len(batch.labels_N)
    return total, tokens
