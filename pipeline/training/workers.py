"""Several processes that train one model together: started here, and joined by each of them.

They are started as torchrun starts its own, so that `torchrun --nproc-per-node N -m pipeline.train ...`, which also
spans machines that share a file system, comes to the same.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.parallel import SINGLE_PROCESS, ProcessGroup, Workers

LOST = 74  # a worker's status where another one is gone: whoever died, it was not this one
GRACE = 10  # seconds that the others have to end by themselves once one has failed


def launched() -> bool:
    """Whether this process is one of several."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextmanager
def joined(device: str) -> Iterator[Workers]:
    """This process among the others, if there are any, on a GPU of its own where the device is `cuda`."""
    if not launched():
        yield SINGLE_PROCESS
        return
    if device == "cuda":
        place, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if place >= gpus:
            raise UserError(f"params.yaml: machine.processes: at most {gpus} is possible here, torch sees {gpus} GPUs")
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield ProcessGroup()
    finally:
        dist.destroy_process_group()


def start(processes: int) -> int:
    """Run this very command so many times at once, hand signals on, and give the status that all of it comes to."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(processes)}
    place["LOCAL_WORLD_SIZE"] = str(processes)
    workers: list[subprocess.Popen] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: [worker.send_signal(number) for worker in workers])
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
    """Their statuses once all have ended, or once one has failed and the others had time to follow."""
    failed = None
    while None in (statuses := [worker.poll() for worker in workers]):
        if failed is None and any(status not in (None, 0, stage.INTERRUPTED) for status in statuses):
            failed = time.monotonic()
        if failed is not None and time.monotonic() - failed > GRACE:
            break
        time.sleep(0.05)
    return statuses


def outcome(statuses: list[int | None]) -> int:
    """The status of it all. Raises UserError for what no worker could say itself."""
    for rank, status in enumerate(statuses):
        if status is not None and status < 0:
            raise UserError(
                f"worker {rank} of {len(statuses)} was killed by {signal.Signals(-status).name}, so all have ended; "
                "the same command goes on from the state that was saved last"
            )
    own = {status for status in statuses if status} - {LOST}
    if LOST in statuses and not own:
        raise UserError("the workers lost each other; TORCH_DISTRIBUTED_DEBUG=DETAIL makes torch say why")
    return max(own - {stage.INTERRUPTED}, default=stage.INTERRUPTED if own else 0)
