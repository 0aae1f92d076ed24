"""Stops a workflow by a signal to Snakemake alone, as Ctrl-C stops it, which a terminal sends to all processes."""

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from snakemake.scheduling.job_scheduler import JobScheduler

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PAUSE = 2.0  # seconds after which the running stages are interrupted, if they are still there


def stop(*_: Any) -> None:
    """The handler of SIGNALS: let Snakemake end, and interrupt the stages that it is running.

    A later signal only interrupts them again. An exception would end Snakemake's wait for them with a traceback.
    """
    handle(lambda *_: interrupt_stages())
    timer = threading.Timer(PAUSE, interrupt_stages)
    timer.daemon = True  # Snakemake itself waits for its stages
    timer.start()
    raise KeyboardInterrupt


def interrupt_stages() -> None:
    """Send SIGINT to all processes below this one. After a Ctrl-C they have it already, and most have ended."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT)


def install(scheduler: "type[JobScheduler]") -> None:
    """Install the handlers.

    Snakemake's own handler of SIGTERM would wait for all running stages. `scheduler` installs it when it starts.
    """
    handle(stop)
    scheduler.exit_gracefully = stop


def handle(handler: Callable[..., None]) -> None:
    """Handle SIGNALS. A signal that this process was started to ignore, as by nohup, stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
