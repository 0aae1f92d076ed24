"""Makes Snakemake end after SIGTERM.

Snakemake's signal handler waits for locks. If the interrupted code holds one of them, the handler waits for ever.
"""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snakemake.scheduling.job_scheduler import JobScheduler


def handled_in_a_thread(scheduler: "type[JobScheduler]") -> None:
    """Run the signal handler of `scheduler` in a thread. The interrupted code then continues and releases its locks."""
    exit_gracefully = scheduler.exit_gracefully

    def start(self: Any, *_: Any) -> None:
        threading.Thread(target=exit_gracefully, args=(self,), daemon=True).start()

    scheduler.exit_gracefully = start
