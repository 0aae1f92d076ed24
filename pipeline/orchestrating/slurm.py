"""Slurm: the resources that a stage requests, and the requeueing of a training that stopped at its time limit.

Slurm sends SIGTERM to all processes of a job step. JOB makes the shell and DVC ignore the signal. Otherwise they would
end while the training saves its state, and Slurm would then kill the training.
"""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.running.programs import said
from pipeline.settings.machine import MachineConfig

MARK = "STAGE_IS_A_SLURM_JOB"
JOB = f"trap '' TERM; export {MARK}=1; "  # precedes the command of a stage; DVC, a child of the shell, also ignores SIGTERM


def requests(stage: str, needs: Mapping[str, Any], machine: MachineConfig) -> dict[str, Any]:
    """Return `threads`, `minutes` and the resources of Snakemake's Slurm plugin for a stage.

    `needs` is `meta.snakemake` of dvc.yaml with the threads of `threads_of`. Its CPUs and memory are those of one
    process. The plugin reads `mem_mb` as memory per node, and `threads` as CPUs per task.
    """
    if machine.device == "cpu":
        needs = {**needs, "gpu": 0}
    if stage.partition("@")[0] != "train":
        return dict(needs)
    gpus = machine.processes if needs["gpu"] else 0
    needs = {**needs, "mem_mb": needs["mem_mb"] * machine.processes, "gpu": gpus}
    if machine.nodes == 1:
        return {**needs, "threads": needs["threads"] * machine.processes}
    # With `mpi`, the stage itself calls srun. The plugin refuses `tasks_per_node: 1`, so one process per node is stated
    # as `tasks`. `tasks_per_gpu: 0` stops the plugin from requesting all tasks of the job for each GPU.
    tasks = {"tasks": machine.nodes} if machine.processes == 1 else {"tasks_per_node": machine.processes}
    per_node = {"gres": f"gpu:{gpus}", "tasks_per_gpu": 0} if gpus else {}
    return {**needs, "gpu": 0, "mpi": "srun", "nodes": machine.nodes, **tasks, **per_node}


def describe(job: str) -> dict[str, str]:
    """Return the fields of a job in `scontrol show job`. Raises OSError if scontrol fails."""
    return dict(re.findall(r"(?:^| )([\w/:]+)=(\S*)", said("scontrol", "show", "job", "--oneliner", job)))


def requeue(environment: Mapping[str, str]) -> str | None:
    """Queue the job of this stage again, unless it was cancelled. Returns a message, or None if nothing was tried."""
    job = environment.get("SLURM_JOB_ID")
    if not job or MARK not in environment or "RANK" in environment:  # with RANK: a worker, whose parent requeues
        return None
    try:
        if describe(job)["JobState"] != "RUNNING":
            return None
        said("scontrol", "requeue", job)
    except (OSError, KeyError) as error:
        return f"job {job} was not queued again: {error}"
    return f"job {job} is queued again"
