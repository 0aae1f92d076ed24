"""The device and the hardware that a stage runs on, and the git commit of the code."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from pipeline.settings.machine import MachineConfig
from transformer.config.reading import placed
from transformer.device import device_of
from transformer.memory import keep_freed


def torch_device(config: MachineConfig, threads: int) -> torch.device:
    """Return the device, and set the number of torch's CPU threads. Results on a CPU depend on this number.

    From then on, the process keeps the memory that it frees.
    """
    keep_freed()
    torch.set_num_threads(threads)
    return torch.device(device_type(config))


def device_type(config: MachineConfig) -> str:
    with placed("params.yaml: machine"):
        return device_of(config.device).type


def hardware(device: torch.device, processes: int = 1) -> dict[str, Any]:
    """Return the hardware and the versions of torch and Python, which are recorded with measured times.

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
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def processor() -> str:
    """Return the name of the CPU, as the operating system states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit(*more: str) -> str | None:
    """Return the git commit of the code. If git cannot name it, print why, and return None.

    The suffix "-edited" means that files in pipeline/, transformer/ or `more` differ from the commit. Changes of
    params.yaml do not count, because each run records its own settings.
    """
    try:
        head = git("rev-parse", "HEAD")
        return f"{head}-edited" if git("status", "--porcelain", "--", "pipeline", "transformer", *more) else head
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or f"{error}; clone the project with git"
        print(f"the commit of the code is not recorded: {' '.join(said.split())}", file=sys.stderr)
        return None


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, timeout=10).stdout.strip()
