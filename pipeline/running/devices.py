"""The CPU threads and the GPUs that a stage uses.

A process numbers its visible GPUs from 0 and by default computes on GPU 0, so two stages at the same time would share
this GPU. A stage that needs GPUs therefore claims free GPUs and hides all others from itself by CUDA_VISIBLE_DEVICES.
A claim is a lock on a file, which ends with the process.
"""

import functools
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.running.merges import parsed
from pipeline.running.progress import warn
from pipeline.settings.machine import machine
from pipeline.settings.score_files import within

HELD: list[Any] = []  # the locks of this process, which end with it
STAGES = Path("dvc.yaml")
VISIBLE = "CUDA_VISIBLE_DEVICES"
ALL_PROCESSES = "${machine.processes}"  # in dvc.yaml: one GPU for each process


def threads_of(params: Mapping[str, Any], declared: int | Sequence[str]) -> int:
    """Return the threads of one process of a stage, from what dvc.yaml declares in `meta.snakemake.threads`.

    This is the number, or paths in params.yaml: the first mapping that has a setting `threads` gives it. In the space of a
    search, whose dimensions may also be lists of mappings or a range, it is the largest value.
    """
    if isinstance(declared, int):
        return declared
    found = (list(numbers_of(within(params, *path.split(".")))) for path in declared)
    return max(next(filter(None, found)))


def numbers_of(settings: Any) -> Iterator[int]:
    """Yield the values of `threads` in a mapping of settings, or in the space of a search."""
    for key, value in settings.items() if isinstance(settings, Mapping) else ():
        if key == "threads":
            yield from [value] if isinstance(value, int) else [int(value["high"])] if isinstance(value, Mapping) else value
        elif isinstance(value, list):  # a dimension of several settings
            for choice in value:
                yield from numbers_of(choice)


def visible() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them. Does not start CUDA."""
    named = os.environ.get(VISIBLE)
    if named is None:
        return [str(number) for number, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]
    entries = (entry.strip() for entry in named.split(","))
    # CUDA, too, ignores an invalid entry and all entries after it.
    return list(takewhile(lambda entry: re.fullmatch(r"\d+|(GPU|MIG)-\S+", entry), entries))


def usable(params: Mapping[str, Any]) -> list[str]:
    return [] if machine(params).device == "cpu" else visible()


def claim_for(stage: str, params: Mapping[str, Any]) -> None:
    """Claim the GPUs that dvc.yaml states for a stage. A worker of a training inherits the GPUs of its parent."""
    if usable(params) and "LOCAL_RANK" not in os.environ:
        claim(needed(stage, params))


def definitions() -> dict[str, Any]:
    """Return the stages of dvc.yaml by name, or {} if there is no dvc.yaml. Raises UserError for a damaged one."""
    return within(stages_of(STAGES.read_bytes()), "stages") or {} if STAGES.exists() else {}


@functools.lru_cache(maxsize=1)  # a stage asks for the same text several times
def stages_of(content: bytes) -> Any:
    return parsed(STAGES, content)


def needed(stage: str, params: Mapping[str, Any]) -> int:
    """Return the number of GPUs that dvc.yaml states for a stage, or 0 if dvc.yaml has no such stage."""
    stages = definitions()
    if stage not in stages:
        return 0
    gpus = stages[stage].get("do", stages[stage])["meta"]["snakemake"]["gpu"]
    return machine(params).processes if gpus == ALL_PROCESSES else gpus


def claim(number: int) -> None:
    """Restrict this process and its children to `number` of the visible GPUs. 0 restricts nothing.

    Takes free GPUs first. If too few are free, it also takes GPUs that another stage uses.
    """
    gpus = visible()
    free = [*islice(filter(locked, gpus), number)]
    shared = [gpu for gpu in gpus if gpu not in free][: number - len(free)]
    if shared:
        warn(f"GPU {', '.join(shared)}: shared with another stage, because no other GPU is free")
    if number:
        os.environ[VISIBLE] = ",".join(gpu for gpu in gpus if gpu in (*free, *shared))


def locked(gpu: str) -> bool:
    """Lock a GPU until this process ends. Returns whether it was free."""
    folder = Path(tempfile.gettempdir()) / f"gpus-of-{os.getuid()}"  # not at import, which would fail on a full disk
    folder.mkdir(parents=True, exist_ok=True)
    try:
        HELD.append(FileLock(folder / gpu.replace("/", "-"), blocking=False).acquire())
    except Timeout:
        return False
    return True
