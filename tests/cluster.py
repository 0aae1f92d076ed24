"""Run the demonstration through a real Slurm with two nodes on this machine, and kill a node during a training.

    THIS_MACHINE_MAY_RUN_SLURM=1 python -m tests.cluster      (make test-cluster)

Requires root and a machine without /etc/slurm, such as a container or a virtual machine. Debian's packages of Slurm are
unpacked below build/. At the end, even after a failure, /etc/slurm is removed and all Slurm processes are killed.

1. The shortened demonstration runs without Slurm.
2. The demonstration runs through Slurm. The training stops at its time limit. Later, its node is killed. All outputs
   must be equal to those of step 1.
3. A training runs on two nodes; one is killed. Its losses until step 40 must be those of one process, up to rounding.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ruamel.yaml import YAML

from pipeline.workflow.times import DURATIONS
from tests import local_slurm
from tests.local_slurm import Slurm, wait
from tests.projects import ROOT, Project
from tests.shortened import OUTPUTS, RUN, TRAIN, content, shortened

PATIENCE = 1800  # seconds for one run of the workflow
TOLERANCE = 1e-4  # relative, of a loss; the same as in tests/training/test_parallel.py
COMPARED = 40  # steps; rounding differences grow with every step
STEPS = 4100  # about 90 seconds; Slurm checks time limits every 30 seconds
STAGES = [name for name in OUTPUTS if name.partition("@")[0] not in ("decode_set", "ensemble", "train_value")]
# There is no accounting database, so squeue gives the status. A job is first checked 2 seconds after its submission.
OPTIONS = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")


def demonstration(root: Path) -> Project:
    """The shortened project in `root`, without decodings, ensembles and values. Its training can be interrupted."""
    root.mkdir()
    project = shortened(root)
    path = root / "params.yaml"
    text = re.sub(r"^(decodings|ensembles|values):\n(?:  .*\n)+", r"\1: {}\n", path.read_text(), flags=re.MULTILINE)
    path.write_text(text.replace("device: auto", "device: cpu"))
    project.edit("params.yaml", "steps: 60,", f"steps: {STEPS},")
    return project


class Workflow:
    """A run of `snakemake` through Slurm in a project. Its output goes to `log`."""

    def __init__(self, slurm: Slurm, project: Project, *targets: str) -> None:
        self.slurm, self.project, self.log = slurm, project, project.root.parent / f"{project.root.name}.log"
        command = ("snakemake", "--workflow-profile", "profiles/slurm", *OPTIONS, "--", *targets)
        with open(self.log, "w") as output:
            line = project.command(*command, **slurm.environment)
            line["env"]["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), line["env"]["PATH"]])
            self.process = subprocess.Popen(**line, stdout=output, stderr=output, start_new_session=True)

    def step(self) -> int:
        """The last step that the running training has recorded."""
        logs = self.project.root.glob(f"work/{RUN}/*/training.jsonl")
        steps = [int(step) for log in logs for step in re.findall(r'"step": (\d+)', log.read_text())]
        return max(steps, default=0)

    def job(self) -> str:
        """The id of the training's running job, or an empty string."""
        lines = self.slurm.run("squeue", "-h", "-t", "running", "-o", "%i %k").splitlines()
        return next((line.split()[0] for line in lines if line.endswith(f"rule_{TRAIN}")), "")

    def trains(self, beyond: int) -> None:
        """Wait until the training runs and has recorded a step after `beyond`."""
        self.until(lambda: self.job() and self.step() > beyond, f"no training beyond step {beyond}")

    def until(self, done, what: str) -> None:
        wait(lambda: done() or self.process.poll() is not None, what, PATIENCE)
        assert self.process.poll() is None, f"{what}\n{self.log.read_text()}"

    def finish(self) -> None:
        try:
            assert self.process.wait(PATIENCE) == 0, self.log.read_text()
        finally:
            self.process.kill()


def restarts(slurm: Slurm, job: str) -> int:
    return int(re.search(r"Restarts=(\d+)", slurm.run("scontrol", "show", "job", job))[1])


def reach_the_time_limit(slurm: Slurm, workflow: Workflow) -> str:
    """Set a time limit of 4 minutes, so that SIGTERM, due 5 minutes before the limit, is sent. Returns the job's id."""
    workflow.trains(beyond=0)
    job = workflow.job()
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=4")
    workflow.until(lambda: restarts(slurm, job) == 1, "the training that reached its limit was not queued again")
    print(f"   stopped by its time limit at step {workflow.step()} of {STEPS}, and queued again")
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=60")
    return job


def lose_a_node(slurm: Slurm, workflow: Workflow, node: str, before: int) -> None:
    """Kill a node of the running training. Start the node again once Slurm has queued the job again."""
    step = workflow.step()
    workflow.trains(beyond=step)
    job, killed = workflow.job(), time.monotonic()
    slurm.kill_node(node)
    print(f"   killed node {node} at step {workflow.step()}")
    workflow.until(lambda: restarts(slurm, job) == before + 1, "the job of the killed node was not queued again")
    print(f"   the job was queued again {time.monotonic() - killed:.0f} s later")
    slurm.start_node(node)


def durations(project: Project) -> dict[str, float]:
    return json.loads((project.root / DURATIONS).read_text())


def equal(one: Project, other: Project) -> None:
    for stage in STAGES:
        expected, found = content(one, stage), content(other, stage)
        differing = {name for name in expected | found if expected.get(name) != found.get(name)}
        assert not differing, f"{stage}: with Slurm, these differ: {sorted(differing)}"
    locks = [YAML(typ="safe").load(project.root / "dvc.lock") for project in (one, other)]
    assert locks[0] == locks[1], "dvc.lock differs"


def losses(project: Project) -> list[dict]:
    return [json.loads(line) for line in (project.root / f"scores/{RUN}/training.jsonl").open()]


def close(one: Project, other: Project) -> float:
    """The largest relative difference between the records of two trainings, up to step COMPARED."""
    records = [[record for record in losses(each) if record["step"] <= COMPARED] for each in (one, other)]
    assert len(records[0]) == len(records[1]) > 0
    worst = 0.0
    for expected, found in zip(*records):
        assert expected.keys() == found.keys()
        for key, value in expected.items():
            assert math.isclose(value, found[key], rel_tol=TOLERANCE), f"step {expected['step']}: {key} differs"
            worst = max(worst, abs(value - found[key]) / abs(value) if value else 0.0)
    return worst


def without_dropout(project: Project, root: Path, nodes: int) -> Project:
    """A copy of a finished project whose training is stale: it has no dropout, half the steps and `nodes` nodes."""
    shutil.copytree(project.root, root, symlinks=True)
    copy = Project(root)
    copy.keep_to_itself()
    copy.edit(
        "params.yaml",
        "demo-tiny: {corpus: demo, model: tiny, N: 1,",
        "demo-tiny: {corpus: demo, model: tiny, dropout: 0.0, N: 1,",
    )
    copy.edit("params.yaml", f"steps: {STEPS},", f"steps: {STEPS // 2},")
    copy.edit("params.yaml", "  nodes: 1 ", f"  nodes: {nodes} ")
    return copy


def check(slurm: Slurm, folder: Path) -> None:
    plain, through = demonstration(folder / "plain"), demonstration(folder / "slurm")
    print("1. the demonstration without Slurm")
    plain.run("snakemake", "--cores", "2")

    print("2. the demonstration through Slurm")
    workflow = Workflow(slurm, through)
    job = reach_the_time_limit(slurm, workflow)
    workflow.trains(beyond=workflow.step())
    lose_a_node(slurm, workflow, slurm.run("squeue", "-h", "-j", job, "-o", "%N"), before=1)
    workflow.finish()
    equal(plain, through)
    print(f"   the same bytes: {len(STAGES)} stages, dvc.lock")
    alone, on_slurm = durations(plain), durations(through)
    more = sorted(on_slurm[stage] - alone[stage] for stage in STAGES if stage != TRAIN)
    print(f"   Slurm adds {more[len(more) // 2]:.0f} s to a stage (median; {more[0]:.0f} to {more[-1]:.0f})")

    print("3. one training on two nodes")
    one, two = (without_dropout(plain, folder / name, nodes) for name, nodes in (("one", 1), ("two", 2)))
    one.run("snakemake", "--cores", "2", TRAIN)
    workflow = Workflow(slurm, two, TRAIN)
    workflow.trains(beyond=0)
    lose_a_node(slurm, workflow, "n2", before=0)
    workflow.finish()
    print(f"   losses differ from those of one process by at most {close(one, two):.1e}")
    for project, name in ((one, "one process"), (two, "two nodes")):
        times = json.loads((project.root / f"work/times/{RUN}/training.json").read_text())
        print(f"   {name}: {times['tokens_per_second']:,.0f} tokens/s, {times['processes']} workers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--keep", action="store_true", help="keep the folder of the runs and of Slurm's logs")
    arguments = parser.parse_args()
    if refusal := local_slurm.refusal():
        sys.exit(f"cluster: not started: {refusal}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cluster: stopped by SIGTERM"))
    root, started = local_slurm.unpacked(ROOT / "build/slurm"), time.monotonic()
    folder = Path(tempfile.mkdtemp())
    try:
        with Slurm(root, folder / "daemons") as slurm:
            check(slurm, folder)
        print(f"passed in {(time.monotonic() - started) / 60:.1f} min")
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
