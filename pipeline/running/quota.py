"""The CPUs that this process may use: those that the system gives it, but no more than the quota of its container.

Neither Python, Snakemake nor torch reads the quota, which `docker run --cpus` and Kubernetes set. More processes or
threads than the quota allows are stopped for a part of each period.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

OWN = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of CPUs, at least 1. Part of a CPU counts as one."""
    affinity = getattr(os, "sched_getaffinity", None)
    number = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([number, *map(math.ceil, quotas())]))


def quotas() -> Iterator[float]:
    """Yield the quota of each control group (version 1 or 2) that holds this process, in CPUs."""
    with contextlib.suppress(OSError):
        for line in OWN.read_text().splitlines():
            _, controllers, path = (*line.split(":", 2), "", "")[:3]
            if ":" not in line or (controllers and "cpu" not in controllers.split(",")):
                continue
            top = ROOT / "cpu" if controllers else ROOT
            group = top / path.lstrip("/")  # in a container, the group can lie at the top under a path of the host
            for folder in {top, group, *(each for each in group.parents if each.is_relative_to(top))}:
                yield from quota(folder, ["cpu.cfs_quota_us", "cpu.cfs_period_us"] if controllers else ["cpu.max"])


def quota(folder: Path, files: list[str]) -> Iterator[float]:
    """Yield the quota of a control group, if it has one: microseconds in each period, divided by the period."""
    with contextlib.suppress(OSError, ValueError):  # no such file, and `max`
        used, period = map(int, " ".join((folder / file).read_text() for file in files).split())
        if used > 0:  # -1 is no quota
            yield used / period
