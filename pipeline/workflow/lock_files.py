"""Repairs `dvc.lock` and `.dvc/tmp/rwlock` after processes were killed. DVC writes both files non-atomically."""

import json
import re
import time
from pathlib import Path
from typing import Any

import psutil
from dvc.fs import localfs
from dvc.rwlock import RWLockFileCorruptedError, RWLockFileFormatError, _edit_rwlock
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from transformer.config.reading import UserError
from transformer.files import atomic

LOCK, KEPT = Path("dvc.lock"), Path("work/.dvc.lock")  # not the folder of a run: no name of a run starts with a dot
RWLOCK = Path(".dvc/tmp/rwlock")
PATIENCE = 5.0  # seconds that a killed process may take to end, because freeing much memory takes time


def whole(content: bytes) -> bool:
    """Return whether this is a complete lock file.

    DVC accepts less: an empty file, and a file that ends within the last stage or within a value. For the stages that such
    a file lacks, DVC finds that they never ran. A file that ends exactly after an output or a stage counts as complete.
    """
    try:
        stages = YAML(typ="safe").load(content)["stages"].values()
        return content.endswith(b"\n") and all(map(complete, stages))
    except (YAMLError, ValueError, TypeError, KeyError, AttributeError):  # there is no mapping where DVC writes one
        return False


def complete(entry: dict[str, Any]) -> bool:
    """Return whether the entry of a stage in dvc.lock ends with a complete output, as DVC writes it."""
    outs = entry.get("outs", [])
    return bool(outs) and all(
        {"path", "md5", "size"} <= out.keys() and out["md5"].endswith(".dir") == ("nfiles" in out) for out in outs
    )


def keep_or_put_back() -> bool:
    """Copy a complete lock file, or restore a damaged one from the copy. Returns whether it was restored.

    The copy may lack the stages that finished last. DVC restores them from its run cache, or else runs them again. The
    caller must hold DVC's lock, so that no other process is writing the file. Raises UserError for the conflict markers
    of git.
    """
    content = LOCK.read_bytes() if LOCK.exists() else None
    if content and re.search(rb"^<<<<<<< ", content, re.MULTILINE):
        raise UserError(f"{LOCK} has the conflict markers of a merge; resolve the conflict first")
    if content is None or ((damaged := not whole(content)) and not KEPT.exists()):
        return False
    with atomic(LOCK if damaged else KEPT) as file:
        file.write(KEPT.read_bytes() if damaged else content)
    return damaged


def clear_rwlock() -> None:
    """Empty DVC's list of the processes that read and write each path, once all of them have ended.

    DVC refuses to start if the list names a process that is ending or a zombie, or if only a part of the list was written.
    Waits up to PATIENCE seconds. If a process is still alive then, the list stays as it is.
    """
    deadline = time.monotonic() + PATIENCE
    while RWLOCK.exists():
        try:
            with _edit_rwlock(str(RWLOCK.parent), localfs, hardlink=False) as modes:  # locks out other processes
                readers = [info for infos in modes["read"].values() for info in infos]
                if all(gone(info["pid"]) for info in [*readers, *modes["write"].values()]):
                    return modes.update(read={}, write={})
        except (RWLockFileCorruptedError, RWLockFileFormatError):
            return RWLOCK.unlink(missing_ok=True)
        if time.monotonic() > deadline:
            return
        time.sleep(0.25)


def writing() -> dict[str, int]:
    """Return the paths that running DVC processes are writing, each with the id of its process.

    There are none if DVC's list does not exist or only a part of it was written.
    """
    try:
        write = json.loads(RWLOCK.read_bytes()).get("write", {})
    except (FileNotFoundError, ValueError):
        return {}
    return {name: info["pid"] for name, info in write.items() if info and not gone(info["pid"])}


def gone(pid: int) -> bool:
    """Return whether a process has ended. A zombie has ended, too: its parent has not yet read its exit status."""
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True
