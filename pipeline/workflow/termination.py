"""SIGTERM to Snakemake, whose handler waits for locks that the code it interrupts may hold, and then for ever."""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snakemake.scheduling.job_scheduler import JobScheduler


def handled_in_a_thread(scheduler: "type[JobScheduler]") -> None:
    """Let the `scheduler`'s handler run in a thread, which can wait while the interrupted code goes on."""
    exit_gracefully = scheduler.exit_gracefully

    def start(self: Any, *_: Any) -> None:
        threading.Thread(target=exit_gracefully, args=(self,), daemon=True).start()

    scheduler.exit_gracefully = start
