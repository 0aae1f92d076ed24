"""Ends a stage or a worker whose launcher was killed: DVC, Snakemake, or the process that started the workers.

A launcher sets a variable in the environment of what it starts. It is therefore the nearest process above this one whose
own environment lacks the variable, also if shells are between them. The kernel's death signal would not do: it tells the
end of the thread that started the process, of its parent only, and DVC and Snakemake start processes from threads.
"""

import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

SET = ("RANK", "DVC_STAGE", "SNAKEMAKE_STAGES")  # by the parent of workers, by DVC, by the Snakefile


def above() -> Iterator[int]:
    process = os.getppid()
    while process > 0:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def launchers() -> list[int]:
    """Return file descriptors of the launchers. There are none without Linux's /proc and pidfd_open."""
    found: dict[int, int] = {}
    try:
        for name in filter(os.environ.get, SET):
            for process in above():
                if f"\0{name}=".encode() not in b"\0" + Path(f"/proc/{process}/environ").read_bytes():
                    found[process] = found.get(process) or os.pidfd_open(process)
                    break
    except (OSError, AttributeError):  # of another user, or gone
        pass
    return [*found.values()]


def watch() -> None:
    """Send SIGTERM to this process once a launcher has ended. A training then saves its state.

    If this process ignores SIGTERM, as stages do in a job of Slurm, it is killed.
    """
    if not (found := launchers()):
        return

    def wait() -> None:
        select.select(found, [], [])
        ignored = signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGKILL if ignored else signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
