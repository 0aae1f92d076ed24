"""What is only for speed: kernels, CUDA graphs, compiled layers, the loss without all logits, a CPU's dropout.

>>> layers = fast.layers(config, device)
>>> model = Transformer(config, vocabulary_size, layers)

A training uses all of it through the classes that `layers` returns. Results are those of the reference up to rounding.
"""

from functools import partial
from typing import Any, Literal

import torch

from transformer.fast.compilation import hindrance, usable
from transformer.fast.dropout import Dropout
from transformer.fast.fused import FastDecoderLayer, FastEncoderLayer
from transformer.layers import Layers


def layers(device: torch.device, kernels: Literal["auto", "off"] = "auto") -> Layers:
    """The classes of a model that is trained on this device.

    On a GPU and unless `kernels` is off, these are layers with kernels of our own, compiled where that is possible. A
    training also uses CUDA graphs and a kernel of the loss if the model has such layers. On a CPU, only dropout differs.
    """
    if device.type != "cuda":
        return Layers(dropout=Dropout)
    if kernels == "off":
        return Layers()
    options: dict[str, Any] = {"kernels": usable(), "backend": None if hindrance() else "inductor"}
    return Layers(partial(FastEncoderLayer, **options), partial(FastDecoderLayer, **options))
