"""The energy that GPUs use. Their counters (Volta and later) are read through NVML, a part of NVIDIA's driver."""

import contextlib
import ctypes
import os
from collections.abc import Callable

import torch


def meter(device: torch.device, processes: int) -> Callable[[], float | None]:
    """Return a function. It returns the energy in joules that the training's GPUs have used since `meter` was called.

    The energy of other work on these GPUs is included. The function returns None on a CPU, if NVML cannot read the
    counter of a GPU, and if some of the GPUs are in another machine.
    """
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
    if device.type != "cuda" or here != processes:
        return lambda: None
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        gpus = [gpu(nvml, str(torch.cuda.get_device_properties(number).uuid)) for number in range(processes)]
        before = joules(nvml, gpus)
    except OSError:
        return lambda: None

    def since() -> float | None:
        with contextlib.suppress(OSError):
            return joules(nvml, gpus) - before
        return None

    return since


def gpu(nvml: ctypes.CDLL, uuid: str) -> ctypes.c_void_p:
    """NVML's handle of a GPU. The UUID identifies the GPU, because NVML and CUDA may number GPUs in different orders."""
    handle = ctypes.c_void_p()
    require(nvml.nvmlInit_v2())
    require(nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode(), ctypes.byref(handle)))
    return handle


def joules(nvml: ctypes.CDLL, gpus: list[ctypes.c_void_p]) -> float:
    """Return the sum of the energy counters in joules. The counters start when the driver is loaded."""
    total, millijoules = 0, ctypes.c_ulonglong()
    for handle in gpus:
        require(nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)))
        total += millijoules.value
    return total / 1000


def require(status: int) -> None:
    if status:
        raise OSError(f"NVML returned status {status}")
