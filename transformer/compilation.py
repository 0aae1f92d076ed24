"""Whether torch.compile can work: its kernels for a GPU need Triton, a C compiler and no GPU from before 2017."""

import functools
import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path

import torch


@functools.cache
def hindrance() -> str | None:
    """What keeps torch.compile from this machine's GPU, in words; None where nothing does.

    Without it the results are the same up to rounding, and a training is slower.
    """
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if torch.cuda.get_device_capability() < (7, 0):
        return f"{torch.cuda.get_device_name()} is older than Triton's kernels need"
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "no C compiler is found (gcc or clang, or CC)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h is not installed, which Triton's kernels are compiled with"
    return None


@functools.cache
def compiles(device_type: str) -> bool:
    """On a GPU, where it can be. A processor's kernels would need a compiler of C++, and gain little.

    Numbers such as a rate of dropout are then constants of a program: as inputs the host would compute with them.
    """
    possible = device_type == "cuda" and hindrance() is None
    if possible:
        import torch._dynamo

        torch._dynamo.config.specialize_float = True
    return possible
