"""The loss of a model on batches of pairs; without smoothing, exp of its mean is the perplexity of Table 3."""

import torch
from torch import Tensor

from transformer.data import in_order
from transformer.layout import Batch, Pairs, layout_for
from transformer.loss import cross_entropy
from transformer.model import Transformer
from transformer.parallel import SINGLE_PROCESS, Workers
from transformer.precision import autocast


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """The summed loss of a batch's target pieces."""
    hidden_ND = model.hidden(batch.source, batch.target).flatten(0, 1).index_select(0, batch.real_N)
    return cross_entropy(hidden_ND, model.embedding, batch.labels_N, smoothing)


def mean_loss(
    model: Transformer,
    pairs: Pairs,
    batch_tokens: int,
    device: torch.device,
    precision: str,
    workers: Workers = SINGLE_PROCESS,
) -> float:
    """The mean unsmoothed loss a target piece, EOS included, in nats."""
    was_training, total, tokens = model.training, 0.0, 0
    model.eval()
    layout = layout_for(device)
    try:
        with torch.inference_mode(), autocast(device, precision):
            for numbers in workers.some(in_order(pairs, batch_tokens)):
                batch = layout(pairs, numbers).to(device)
                total += batch_loss(model, batch, 0.0).item()
                tokens += len(batch.labels_N)
    finally:
        model.train(was_training)
    total, tokens = workers.total(total, tokens)
    return total / tokens
