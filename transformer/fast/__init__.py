"""What is only for speed: kernels, CUDA graphs, the loss without all logits, a CPU's dropout.

>>> layers = fast.layers(device)
>>> model = Transformer(config, vocabulary_size, layers)

The loss is used in every training. Layers, CUDA graphs and the kernel of the loss come with the classes that `layers`
returns. Without dropout, results are those of the reference up to rounding; with dropout, other elements are dropped.
"""

import functools
import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Literal

import torch

from transformer.fast.dropout import Dropout
from transformer.fast.fused import FastDecoderLayer, FastEncoderLayer
from transformer.layers import REFERENCE, Layers


def layers(device: torch.device, kernels: Literal["auto", "off"] = "auto") -> Layers:
    """The classes of a model that is trained on this device.

    On a GPU without a `hindrance` and unless `kernels` is off, these are layers with kernels of our own. A training also
    uses CUDA graphs and a kernel of the loss if the model has such layers. On a CPU, only dropout differs. `proved`, in
    proof.py, also tries the kernels.
    """
    if device.type != "cuda":
        return Layers(dropout=Dropout)
    return REFERENCE if kernels == "off" or hindrance() else Layers(FastEncoderLayer, FastDecoderLayer)


@functools.cache
def hindrance() -> str | None:
    """The reason why the kernels cannot be used on this machine's GPU, or None if they can.

    They need Triton, which needs a C compiler and Python.h, and matrix products in bfloat16. Without the kernels, results
    are the same up to rounding, and training is slower.
    """
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if torch.cuda.get_device_capability() < (8, 0):
        return f"{torch.cuda.get_device_name()} is too old for the kernels; one of 2020 or later is needed"
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "no C compiler is found (gcc or clang, or CC)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h is not installed; Triton needs it to compile kernels"
    return None
