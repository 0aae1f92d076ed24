"""Where torch.compile can be used. Its GPU kernels need Triton, a C compiler, Python.h and a GPU of 2017 or later."""

import functools
import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import torch
from torch import nn


@functools.cache
def hindrance() -> str | None:
    """The reason why torch.compile cannot be used on this machine's GPU, or None if it can.

    Without torch.compile, results are the same up to rounding, and training is slower.
    """
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if torch.cuda.get_device_capability() < (7, 0):
        return f"{torch.cuda.get_device_name()} is too old for Triton's kernels"
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "no C compiler is found (gcc or clang, or CC)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h is not installed; Triton needs it to compile kernels"
    return None


def compiles(device_type: str) -> bool:
    """Whether training on this type of device uses torch.compile: true for a GPU without a `hindrance`.

    Kernels for a CPU would need a C++ compiler and gain little.
    """
    return device_type == "cuda" and hindrance() is None


def usable() -> bool:
    """Whether the kernels can be used on this machine's GPU. Their matrix products need one of 2020 or later."""
    return compiles("cuda") and torch.cuda.get_device_capability() >= (8, 0)


def compiled(layer: nn.Module, backend: Any) -> None:
    """Compile the layer by torch.compile, for any number of rows of any width, unless `backend` is None.

    All layers of a kind share one program, so this takes a sixth of the time of compiling the whole model.
    """
    if backend is not None:
        configure()
        layer.compile(dynamic=True, backend=backend)


def configure() -> None:
    """Set the options of torch.compile for the programs that it makes from now on.

    Floats, such as a dropout rate, become constants. By default, they are inputs of the compiled programs, and the host
    computes with these inputs at every call. Sizes that are equal in the first batch may differ later. By default, a layer
    would then be compiled again. The last batch of an epoch is small. By default, newer versions of torch would compile the
    layers again for it, because they choose another kind of reduction for large inputs.
    """
    import torch._dynamo  # takes a second, and a process that compiles nothing does not need it
    import torch._inductor.config
    import torch.fx.experimental._config

    torch._dynamo.config.specialize_float = True
    torch.fx.experimental._config.use_duck_shape = False
    triton = torch._inductor.config.triton
    if hasattr(triton, "mix_order_reduction_non_strict_mode"):
        triton.mix_order_reduction_non_strict_mode = True
