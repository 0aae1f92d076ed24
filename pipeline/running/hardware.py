"""The device and the hardware that a stage runs on, and the git commit of the code."""

import ctypes
import functools
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline.running.programs import said
from pipeline.running.progress import warn
from pipeline.settings.machine import MachineConfig
from transformer.arithmetic import make_portable, portable
from transformer.config.reading import placed
from transformer.device import device_of

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h


def torch_device(config: MachineConfig, threads: int, arithmetic: str = "native") -> torch.device:
    """Return the device, and set the number of torch's CPU threads. Results on a CPU depend on this number.

    From then on, the process keeps the memory that it frees, and computes in this arithmetic on a CPU. It says so if
    portable arithmetic is not possible here.
    """
    keep_freed()
    torch.set_num_threads(threads)
    device = torch.device(device_type(config))
    if arithmetic == "portable" and device.type == "cpu" and (reason := make_portable()):
        tell_native(reason)
    return device


@functools.cache
def tell_native(reason: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        warn(f"arithmetic: portable is not possible here, so results depend on the type of the CPU: {reason}")


def keep_freed() -> None:
    """Keep memory that this process frees, for its next allocations. Does nothing unless the C library is glibc.

    By default, glibc returns freed buffers of some MB to the operating system. A training allocates the same sizes in
    each step. Each returned page costs a page fault at its next use, when it is filled with zeros. In threads other
    than the first, glibc still returns buffers of more than 64 MB.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)


def device_type(config: MachineConfig) -> str:
    with placed("params.yaml: machine"):
        return device_of(config.device).type


def hardware(device: torch.device, processes: int = 1) -> dict[str, Any]:
    """Return the hardware and the versions of torch, numpy and Python, which are recorded with measured times.

    `processes` is the number of processes of the stage. On GPUs, each process has its own GPU.
    """
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "device": device.type,
        "hardware": gpu or processor(),
        "gpus": processes if gpu else 0,
        "processor": processor(),
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),  # several CPUs may share a name, such as AMD EPYC
        "arithmetic": "portable" if device.type == "cpu" and portable() else "native",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def processor() -> str:
    path = Path("/proc/cpuinfo")  # of Linux
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit(*more: str) -> str | None:
    """Return the git commit of the code. If git cannot name it, print why, and return None.

    The suffix "-edited" means that files in pipeline/, transformer/ or `more` differ from the commit. Changes of
    params.yaml do not count, because each run records its own settings.
    """
    try:
        head = said("git", "rev-parse", "HEAD").strip()
        return f"{head}-edited" if said("git", "status", "--porcelain", "--", "pipeline", "transformer", *more) else head
    except OSError as error:
        warn(f"the commit of the code is not recorded: {error}")
        return None
