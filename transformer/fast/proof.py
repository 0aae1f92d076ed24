"""Kernels prove themselves: a small batch through layers with kernels, and through the reference.

A kernel can fail on a GPU on which it was never run: it does not compile, needs more shared memory than there is, or
computes something else.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer import fast
from transformer.batch import Batch
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import EOS
from transformer.device import autocast
from transformer.fast.fused import layout_on
from transformer.layers import REFERENCE, Layers
from transformer.memory import out_of_memory
from transformer.model import Transformer
from transformer.perplexity import batch_loss

# The largest accepted differences of the loss and of the gradients, relative to the loss and to the gradients' norm.
NEAR = {"float32": (1e-5, 1e-3), "bfloat16": (1e-3, 5e-2)}
SMOOTHING, SEED = 0.1, 1
LENGTHS = 5, 40, 17, 1, 64, 29, 33, 12  # of the sentences; the target has them in the reverse order

Measured = tuple[float, Tensor]  # a loss and all gradients


@dataclass(frozen=True)
class Sample:
    """Sentence pairs of these lengths, with any ids of the vocabulary."""

    vocabulary_size: int

    def __len__(self) -> int:
        return len(LENGTHS)

    def lengths(self, side: str) -> np.ndarray:
        return np.array(LENGTHS[:: -1 if side == "target" else 1])

    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengths, least = self.lengths(side)[numbers], min(EOS + 1, self.vocabulary_size - 1)
        return np.random.default_rng(SEED).integers(least, self.vocabulary_size, lengths.sum()), lengths


def measured(model: Transformer, batch: Batch, precision: str) -> Measured:
    model.zero_grad()
    with autocast(batch.labels_N.device, precision):
        loss = batch_loss(model, batch, SMOOTHING)
    loss.backward()
    return loss.item(), gradients_of(model)


def gradients_of(model: Transformer) -> Tensor:
    return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])


def differences(ours: Measured, theirs: Measured) -> tuple[float, float]:
    """The relative differences of the loss and of the gradients."""
    return abs(ours[0] / theirs[0] - 1), float((ours[1] - theirs[1]).norm() / theirs[1].norm())


def fault(layers: Layers, config: ModelConfig, vocabulary_size: int, device: torch.device, precision: str) -> str | None:
    """Why a model of these layers cannot be trained on this device, or None. Takes seconds, and changes no random state.

    A model of at most two layers in each stack, without dropout, and the reference take the same batch forward and
    backward. An exception or a difference beyond NEAR is a fault. Raises what reports that memory has run out.
    """
    small = replace(config, N=min(config.N, 2), dropout=0.0, attention_dropout=0.0, relu_dropout=0.0)
    pairs, found, gpus = Sample(vocabulary_size), list[Measured](), [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(gpus), torch.cuda.device(device if gpus else -1):  # -1 changes nothing
            for chosen in (layers, REFERENCE):
                torch.manual_seed(SEED)
                model = Transformer(small, vocabulary_size, chosen).to(device).train()
                batch = layout_on(device, precision, model)(pairs, np.arange(len(pairs))).to(device)
                found.append(measured(model, batch, precision))
    except Exception as error:  # of Triton, the compiler or the driver
        if out_of_memory(error):
            raise
        said = next(filter(None, map(str.strip, str(error).splitlines())), "no message")
        return f"they fail on this GPU: {type(error).__name__}: {said[:200]}"
    loss, gradients = differences(*found)
    if loss <= NEAR[precision][0] and gradients <= NEAR[precision][1]:  # false for nan
        return None
    return f"they differ from torch's operations on this GPU: the loss by {loss:.1e}, the gradients by {gradients:.1e}"


def proved(
    device: torch.device, kernels: Literal["auto", "off"], config: ModelConfig, vocabulary_size: int, precision: str
) -> tuple[Layers, str | None]:
    """The layers of a training, and on a GPU why they are not those with our kernels, unless `kernels` is off."""
    chosen = fast.layers(device, kernels)
    if device.type != "cuda" or kernels == "off":
        return chosen, None
    reason = fast.hindrance() or fault(chosen, config, vocabulary_size, device, precision)
    return (REFERENCE if reason else chosen), reason
