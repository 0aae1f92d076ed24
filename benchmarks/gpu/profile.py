"""The time of training steps by kernels, from torch.profiler, and the waits of the host."""

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

# Operators that copy a tensor's value, or a size that depends on it, to the host.
READ_BY_HOST = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal"}
# On a CPU, this operator reads the number of steps with an operator of READ_BY_HOST; on a GPU, it does not. Calls within it
# are therefore not counted.
READS_ITSELF = "aten::_fused_adamw_"


def profiled(run: Callable[[], object], device: torch.device) -> tuple[Counter[str], Counter[str]]:
    """Call `run`. Returns the microseconds of each kernel (on a CPU, of each operator) and the calls of each operator."""
    cuda = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiler:
        run()
        if cuda:
            torch.cuda.synchronize()
    kernels, calls = Counter[str](), Counter[str]()
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CPU and not within(event, READS_ITSELF):
            calls[event.name] += 1
    for event in profiler.key_averages():
        on_cpu = event.device_type == torch.autograd.DeviceType.CPU
        if on_cpu != cuda and not event.is_user_annotation:
            kernels[event.key] += event.self_device_time_total if cuda else event.self_cpu_time_total
    return kernels, calls


def within(event: Any, name: str) -> bool:
    parent = event.cpu_parent
    return parent is not None and (parent.name == name or within(parent, name))


def host_waits(run: Callable[[], object], device: torch.device) -> list[str]:
    """Call `run`, and name each place at which the host waits for the GPU, which is then idle.

    On a CPU these are the operators that would wait for a GPU.
    """
    if device.type != "cuda":
        _, calls = profiled(run, device)
        return [name for name, count in calls.items() if name in READ_BY_HOST for _ in range(count)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = [warning for warning in seen if "called a synchronizing" in str(warning.message)]
    return [f"{Path(warning.filename).name}:{warning.lineno}" for warning in waits]
