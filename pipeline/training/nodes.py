"""Starts the workers of a training on the nodes of a Slurm allocation.

srun starts the workers. They connect through the TCPStore of torch.distributed, which worker 0 serves on the first node.
"""

import ctypes
import os
import signal
import subprocess
import sys
from typing import Any

from pipeline.orchestrating import slurm
from pipeline.running import stage
from pipeline.running.programs import said
from pipeline.training.workers import forward
from transformer.config.reading import UserError

PR_SET_PDEATHSIG = 1  # of sys/prctl.h

# Sets RANK and LOCAL_RANK, as torchrun does. Slurm's block distribution puts worker 0 on the first node.
WORKER = 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID exec "$@"'


def start(nodes: int, processes: int) -> int:
    """Run this command in `processes` workers on each node, forward signals, and return the exit status of srun."""
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise UserError(
            f"params.yaml: machine.nodes: {nodes} needs an allocation of Slurm (docs/how-to/cluster.md); 1 is possible here"
        )
    allocation = slurm.describe(job)
    hosts = said("scontrol", "show", "hostnames", allocation["NodeList"]).split()
    if len(hosts) != nodes:
        raise UserError(f"params.yaml: machine.nodes is {nodes}, but job {job} has the nodes {', '.join(hosts)}")
    return run(job, hosts, processes, allocation["CPUs/Task"])


def run(job: str, hosts: list[str], processes: int, cpus: str) -> int:
    number = len(hosts) * processes
    port = 20000 + int(job) % 12000  # another for each job, below the ports that Linux assigns to clients
    place = {"MASTER_ADDR": address(hosts[0]), "MASTER_PORT": str(port), "WORLD_SIZE": str(number)}
    command = ["srun", f"--nodes={len(hosts)}", f"--ntasks={number}", f"--ntasks-per-node={processes}"]
    command += [f"--cpus-per-task={cpus}", "--kill-on-bad-exit=1", "sh", "-c", WORKER, "sh"]
    forward(lambda number: subprocess.run(["scancel", f"--signal={signal.Signals(number).name}", job], check=False))
    # srun kills the workers at SIGINT and SIGTERM. In its own session, it does not get the signals of this process group.
    # It ends with the main thread of this process, even if this process is killed.
    libc = ctypes.CDLL(None)
    how: Any = {"start_new_session": True, "preexec_fn": lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)}
    srun = subprocess.Popen([*command, sys.executable, *sys.orig_argv[1:]], env={**os.environ, **place}, **how)
    try:
        status = srun.wait()
    finally:
        srun.kill()
    if status not in (0, stage.INTERRUPTED):
        raise UserError(
            f"the training on {', '.join(hosts)} ended with status {status} (the lines above say why); the same command "
            "resumes from the last saved state"
        )
    return status


def address(host: str) -> str:
    """The address by which Slurm reaches a node: the name of the node, unless slurm.conf states another address."""
    found = said("sinfo", "--noheader", "--all", "--Node", f"--nodes={host}", "--format=%o").split()
    if not found:
        raise UserError(f"sinfo shows no node {host}, which this job has; `sinfo --all --Node` lists the nodes")
    return found[0]
