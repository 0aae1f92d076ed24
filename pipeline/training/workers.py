"""Starts the worker processes that train one model together, and joins this process to their process group.

The workers read the environment variables that torchrun sets. `torchrun --nproc-per-node N -m pipeline.train ...`
therefore starts workers, too, and nodes.py starts them on several nodes of Slurm.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller

import torch
import torch.distributed as dist

from pipeline.running import stage
from transformer.config.reading import UserError
from transformer.parallel import SINGLE_PROCESS, Workers

LOST = 74  # exit status of a worker that ended because another worker had ended or because the training diverged
GRACE = 10  # seconds in which the other workers must exit after one has failed


def launched() -> bool:
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextmanager
def joined(device: str) -> Iterator[Workers]:
    """Join the process group if this process is a worker. On `cuda`, each worker uses its own GPU."""
    if not launched():
        yield SINGLE_PROCESS
        return
    needed = ["MASTER_ADDR", "MASTER_PORT", *(["LOCAL_RANK"] if device == "cuda" else [])]
    if missing := [name for name in needed if name not in os.environ]:
        raise UserError(
            f"RANK and WORLD_SIZE are set, but not {', '.join(missing)}; start workers with torchrun, or unset both"
        )
    if device == "cuda":
        place, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if place >= gpus:
            raise UserError(f"params.yaml: machine.processes: at most {gpus} is possible here, torch sees {gpus} GPUs")
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        group = Workers(alone=False)
        yield group
        group.wait()  # all workers exit together, because srun kills the others once one exits with INTERRUPTED
    finally:
        dist.destroy_process_group()


def forward(send: Callable[[int], object]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: send(number))


def start(processes: int) -> int:
    """Run this command in `processes` workers, forward signals to them, and return their combined exit status."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(processes)}
    workers: list[subprocess.Popen] = []
    forward(lambda number: [*map(methodcaller("send_signal", number), workers)])
    try:
        for rank in range(processes):
            environment = {**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            workers.append(subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env=environment))
        return outcome(ends(workers))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def ends(workers: list[subprocess.Popen]) -> list[int | None]:
    """Wait until all workers have exited, or GRACE seconds after one has failed. Returns their exit statuses."""
    failed = None
    while None in (statuses := [worker.poll() for worker in workers]):
        if failed is None and any(status not in (None, 0, stage.INTERRUPTED) for status in statuses):
            failed = time.monotonic()
        if failed is not None and time.monotonic() - failed > GRACE:
            break
        time.sleep(0.05)
    return statuses


def outcome(statuses: list[int | None]) -> int:
    """Return the combined exit status of the workers. Raises UserError for a failure that no worker could report."""
    for rank, status in enumerate(statuses):
        if status is not None and status < 0:
            raise UserError(
                f"worker {rank} of {len(statuses)} was killed by {signal.Signals(-status).name}, so all have exited; "
                "the same command resumes from the last saved state"
            )
    own = {status for status in statuses if status} - {LOST}
    if LOST in statuses and not own:
        raise UserError("the workers lost their connections; with TORCH_DISTRIBUTED_DEBUG=DETAIL, torch prints details")
    return max(own - {stage.INTERRUPTED}, default=stage.INTERRUPTED if own else 0)
