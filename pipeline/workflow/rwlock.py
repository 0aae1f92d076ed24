"""Repairs `.dvc/tmp/rwlock`, DVC's list of the processes that read and write each path, after processes were killed.

DVC itself removes the entries of a process that no longer exists. It refuses to start if the list names a process that
is ending or a zombie, or if only a part of the list was written.
"""

import json
import time
from pathlib import Path
from typing import Any

import psutil
from dvc.fs import localfs
from dvc.rwlock import _edit_rwlock

RWLOCK = Path(".dvc/tmp/rwlock")
PATIENCE = 5.0  # seconds that a killed process may take to end, because freeing much memory takes time


def clear(path: Path = RWLOCK) -> None:
    """Remove the entries of killed processes. Waits up to PATIENCE seconds for processes that may be ending."""
    remove_damaged(path)
    deadline = time.monotonic() + PATIENCE
    while (alive := [pid for pid in holders(path) if not gone(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    if dead := holders(path) - set(alive):
        remove_entries(dead, path)


def remove_damaged(path: Path) -> None:
    """Remove a list of which only a part was written. DVC then creates a new one."""
    for pause in (0.5, 0):
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:
            return
        except ValueError:
            time.sleep(pause)  # another process may be writing the list
        else:
            return
    path.unlink(missing_ok=True)


def content(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):  # ValueError: another process may be writing the list
        return {}


def holders(path: Path) -> set[int]:
    """Return the ids of the processes in the list."""
    modes = content(path)
    readers = [info for infos in modes.get("read", {}).values() for info in infos]
    return {info["pid"] for info in [*readers, *modes.get("write", {}).values()] if info}


def writing() -> dict[str, int]:
    """Return the paths that running DVC processes are writing, each with the id of its process."""
    write = content(RWLOCK).get("write", {})
    return {name: info["pid"] for name, info in write.items() if info and not gone(info["pid"])}


def gone(pid: int) -> bool:
    """Return whether a process has ended. A zombie has ended, too: its parent has not yet read its exit status."""
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def remove_entries(pids: set[int], path: Path) -> None:
    with _edit_rwlock(str(path.parent), localfs, hardlink=False) as lock:
        for name, infos in list(lock["read"].items()):
            lock["read"][name] = [info for info in infos if info["pid"] not in pids]
        for mode, held in (("read", bool), ("write", lambda info: info and info["pid"] not in pids)):
            lock[mode] = {name: infos for name, infos in lock[mode].items() if held(infos)}
