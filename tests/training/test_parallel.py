"""Data parallel training: two processes train the same model as one, stop together, and end if one is killed."""

import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from test_training import REFUSED, short_of_memory
from torch.multiprocessing import ProcessRaisedException, start_processes

from pipeline.orchestrating import slurm
from pipeline.running import launcher
from pipeline.training import workers, workspace
from tests.support import in_process
from tests.support.projects import ROOT
from tests.support.refusals import refused
from tests.support.small_run import PATIENCE, Training, saved
from tests.support.trainers import build, run
from transformer import parallel
from transformer.checkpoint import read_tensors
from transformer.config.reading import UserError
from transformer.fast.graphs import Graphs
from transformer.training import Trainer

pytestmark = pytest.mark.xdist_group("forkserver")  # one test process, since each one would start its own fork server


@pytest.fixture
def training(tmp_path):
    training = Training(tmp_path, processes=2)
    yield training
    training.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def of_rank(rank: int, number: int, port: int) -> dict[str, str]:
    """The environment of a worker."""
    return {"RANK": str(rank), "WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def worker(rank: int, folder: Path, config, model, port: int, until: int | None, disturb: Callable) -> None:
    """One of two workers."""
    torch.set_num_threads(1)
    os.environ |= of_rank(rank, 2, port)
    with workers.joined("cpu") as group:
        trainer = build(folder, config, model, group=group)
        if rank == 1:
            disturb(trainer)
        trainer.run(lambda record: None, lambda: rank == 1 and trainer.state.step == until)
        assert trainer.state.step == (until or config.steps)


def train_by_two(folder: Path, config, model, until: int | None = None, disturb: Callable = id) -> None:
    """`disturb` changes the second worker's trainer before it runs. They are forks of the server process of conftest.py."""
    start_processes(worker, (folder, config, model, free_port(), until, disturb), nprocs=2, start_method="forkserver")


def same(folder: Path, other: Path) -> None:
    """Assert that file names and counts are equal, and that losses are equal up to rounding."""
    logs = [[json.loads(line) for line in (place / "training.jsonl").open()] for place in (folder, other)]
    assert len(logs[0]) == len(logs[1]) > 0
    for record, expected in zip(*logs):
        assert record == pytest.approx(expected, rel=1e-4)
    files = [{str(file.relative_to(place)) for file in place.rglob("*")} for place in (folder, other)]
    assert files[0] == files[1]
    numbers = [read_tensors(place / "state.safetensors")[1]["numbers"] for place in (folder, other)]
    assert numbers[0]["sums"] == numbers[1]["sums"]


def graphed(trainer: Trainer) -> None:
    """Let the trainer use graphs, which a CPU does not have: a captured function is called again."""
    trainer.step.graphs = Graphs(trainer.state.model, torch.enable_grad(), pytest.fail)


def short_of_15_tokens(trainer: Trainer, module: str) -> None:
    trainer.step.warn = lambda text: None
    short_of_memory(pytest.MonkeyPatch(), 15, torch.OutOfMemoryError, importlib.import_module(module))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes, disturb",
    [
        ({"micro_batch_tokens": 20, "threads": 2}, id),
        # one pair, which the first worker does not get
        ({"batch_tokens": 12, "micro_batch_tokens": 12, "max_length": 12}, id),
        # graphs add to gradients outside of autograd, so nothing that is attached to the backward pass would see them
        ({"batching": "mixed"}, graphed),
        # memory runs out in one worker before the sum, so the step is repeated with smaller parts; dev losses are of every
        # pair once, though this worker has a lower limit
        *(
            ({"micro_batch_tokens": 40}, partial(short_of_15_tokens, module=f"transformer.{name}"))
            for name in ("step", "perplexity")
        ),
    ],
)
def test_two_processes_train_what_one_trains(tmp_path, settings, training_settings, sizes, disturb):
    """Without dropout, the losses, dev losses and counts are the same."""
    config = training_settings(**{"batch_tokens": 150, "micro_batch_tokens": 150, **sizes})
    run(build(tmp_path / "one", config, settings()))
    train_by_two(tmp_path / "two", config, settings(), disturb=disturb)
    same(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_two_processes_stop_together_and_two_and_one_go_on(tmp_path, settings, training_settings):
    """One process is told to stop between two records, so the state has to hold the losses since the last record."""
    config = training_settings(batch_tokens=150, micro_batch_tokens=150)
    run(build(tmp_path / "whole", config, settings()))
    for until in (5, 7):
        train_by_two(tmp_path / "parts", config, settings(), until)
    run(build(tmp_path / "parts", config, settings()))
    same(tmp_path / "parts", tmp_path / "whole")


def at_another_step(trainer: Trainer) -> None:
    trainer.state.step = 5


@pytest.mark.slow
def test_workers_that_resume_at_different_steps_end_with_an_error(tmp_path, settings, training_settings):
    with pytest.raises(ProcessRaisedException, match="the workers resume at different steps, 0 to 5"):
        train_by_two(tmp_path, training_settings(), settings(), disturb=at_another_step)


@pytest.mark.parametrize("device, missing", [("cpu", "MASTER_PORT"), ("cuda", "MASTER_PORT, LOCAL_RANK")])
def test_an_incomplete_environment_of_a_worker_is_named(monkeypatch, device, missing):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.setenv(name, "1")
    with pytest.raises(UserError, match=f"RANK and WORLD_SIZE are set, but not {missing};"), workers.joined(device):
        pass


@pytest.fixture
def group(monkeypatch):
    """A process group of one, in this process."""
    for name, value in of_rank(0, 1, free_port()).items():
        monkeypatch.setenv(name, value)
    with workers.joined("cpu") as group:
        yield group


def test_no_memory_for_the_sum_of_gradients_ends_the_training(tmp_path, settings, training_settings, group, monkeypatch):
    """The other workers go on with their sums, so the step cannot be repeated."""

    def fail(tensor):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(parallel.dist, "all_reduce", fail)
    monkeypatch.setattr(parallel.Workers, "highest", lambda self, *values: values)
    with refused("out of memory", "micro_batch_tokens"):
        run(build(tmp_path, training_settings(), settings(), group=group))


@pytest.mark.parametrize(
    "error, raised",
    [
        (torch.OutOfMemoryError("CUDA out of memory"), UserError),
        (REFUSED(), UserError),
        (MemoryError(), UserError),
        (RuntimeError("Invalid scalar type"), RuntimeError),
        (torch.distributed.DistBackendError("NCCL error: remote process exited"), parallel.WorkerLost),
        (torch.distributed.DistBackendError("NCCL error: Cuda failure 2 'out of memory'"), UserError),
        (torch.distributed.DistNetworkError("The client socket has timed out"), parallel.WorkerLost),
        (
            RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer"),
            parallel.WorkerLost,
        ),
    ],
)
def test_only_a_lost_connection_is_a_lost_worker(monkeypatch, group, error, raised):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(torch.distributed, "all_reduce", fail)
    with pytest.raises(raised) as caught:
        group.total(1.0)
    assert isinstance(caught.value, raised)
    assert raised is not UserError or "out of memory" in str(caught.value)


@pytest.mark.slow
def test_no_worker_outlives_its_launcher(training):
    """Both workers save the state. test_workspace.py has a signal to one of them."""
    process = training.start()
    saved(process, training.work)
    below = psutil.Process(process.pid).children()
    process.kill()
    assert len(below) == 2 and psutil.wait_procs(below, timeout=PATIENCE)[1] == []
    _, output = process.communicate(timeout=PATIENCE)
    stopped = int(re.search(r"stopped by SIGTERM at step (\d+)", output)[1])
    (state,) = training.work.glob("*/state.safetensors")
    assert read_tensors(state)[1]["numbers"]["step"] == stopped
    with in_process.inside(training.folder), workspace.lock("run"):
        pass


def killed(trainer: Trainer) -> None:
    trainer.state.optimiser.step = lambda: os.kill(os.getpid(), signal.SIGKILL)


def left_behind(rank: int, *given) -> None:
    """The first of two workers, of which the second is killed."""
    with pytest.raises(parallel.WorkerLost):
        worker(rank, *given, killed)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_noticed_by_the_other(tmp_path, settings, training_settings):
    given = tmp_path, training_settings(), settings(), free_port(), None
    context = start_processes(left_behind, given, nprocs=2, join=False, start_method="forkserver")
    for process in context.processes:
        process.join()
    assert [process.exitcode for process in context.processes] == [0, -signal.SIGKILL]


def watched(process: psutil.Process) -> bool:
    """Whether a process has imported `pipeline`, which starts a thread."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.num_threads() > 1
    return False


# As DVC and Snakemake do: a thread starts a shell, which starts the stage. The thread may end before the stage.
LAUNCHER = """
import os, subprocess, sys, threading, time
start = lambda: subprocess.Popen(["sh", "-c", sys.argv[2] + " & wait"], env={**os.environ, sys.argv[1]: "x"})
thread = threading.Thread(target=start)
thread.start()
thread.join()
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", launcher.SET)  # the first one is of the parent of workers
def test_no_stage_outlives_dvc_or_snakemake_and_each_outlives_the_thread_that_started_it(tmp_path, name):
    code = "import sys; sys.argv = ['-m']; import pipeline, time; time.sleep(600)"
    before = slurm.JOB if name == "DVC_STAGE" else ""  # in a job of Slurm, a stage ignores SIGTERM
    stage = f'{before}{sys.executable} -c "{code}"'
    environment = {key: value for key, value in os.environ.items() if key not in launcher.SET}
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER, name, stage], cwd=ROOT, env=environment)
    try:
        below: list[psutil.Process] = []
        while not any(watched(one) for one in below):
            time.sleep(0.02)
            below = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.5)
        assert all(one.is_running() for one in below), "its thread has ended, and it has not"
    finally:
        process.kill()
        process.wait()
    assert psutil.wait_procs(below, timeout=PATIENCE)[1] == []


def leave(rank: int, folder: Path, port: int) -> None:
    """The first of two workers has more to do than the second."""
    os.environ |= of_rank(rank, 2, port)
    with workers.joined("cpu"):
        if rank == 0:
            time.sleep(0.3)
            (folder / "saved").touch()
    assert (folder / "saved").exists()


@pytest.mark.slow
def test_no_worker_exits_before_the_first_has_saved_the_state(tmp_path):
    """srun kills the others as soon as one exits with the status of a stopped training."""
    start_processes(leave, (tmp_path, free_port()), nprocs=2, start_method="forkserver")


def test_a_worker_that_does_not_end_after_another_has_failed_is_killed(tmp_path, monkeypatch):
    """As one that waits for a GPU."""
    code = "import os, pathlib, sys, time; rank = os.environ['RANK']; pathlib.Path(rank).write_text(str(os.getpid()))"
    code += "; time.sleep(600 if rank == '0' else 0.5); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", code])
    monkeypatch.setattr(workers, "GRACE", 0.1)
    with in_process.inside(tmp_path), refused("worker 1 of 2 was killed by SIGKILL"):
        workers.start(2)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "0").read_text()), 0)


@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_shares_partition_a_batch_evenly(number):
    sizes = np.random.default_rng(0).integers(2, 50, 100)
    shares = []
    for rank in range(number):
        group = parallel.Workers()
        group.rank, group.number = rank, number
        shares.append(group.share(np.arange(100), sizes))
    assert np.concatenate(shares).tolist() == list(range(100))
    tokens = [sizes[share].sum() for share in shares]
    assert max(tokens) - min(tokens) <= 2 * sizes.max()


@pytest.mark.parametrize(
    "statuses, comes_to",
    [([0, 0], 0), ([75, 75], 75), ([1, workers.LOST], 1), ([0, 75], 75), ([75, 1], 1), ([workers.LOST, 2, None], 2)],
)
def test_the_exit_status_of_all_workers(statuses, comes_to):
    assert workers.outcome(statuses) == comes_to
    with pytest.raises(UserError, match="lost their connections"):
        workers.outcome([workers.LOST, workers.LOST])
