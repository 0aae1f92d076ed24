"""Kill every stage of the pipeline at random moments, run it again, and compare every byte of its outputs.

    python -m tests.kill_everything [--stages train report] [--kills 10] [--seed 1]      (make kill)

A copy of the project with a small corpus and model is built once. Then DVC and Snakemake start each stage in turn.
SIGKILL or SIGTERM is sent to the process of the stage, to the tool or to the process group. A kill of the tool orphans
the stage. The moment is random: from the start of the stage to its end or, if the tool is killed, to the end of DVC.

The tool is then started again without any clean-up. It must succeed and write the same bytes as an undisturbed run, and
no file of the stage may be partial after the kill. If the orphan still runs and the tool refuses to start, the script
waits for the orphan.

The random choices for a kill depend only on the seed, the stage and the number of the kill, so subsets can run
separately and in parallel. test_end_to_end kills each kind of stage once.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Self

import psutil
from ruamel.yaml import YAML
from tqdm import tqdm

from pipeline.workflow import stage as command_line
from tests.projects import Project
from tests.shortened import OUTPUTS, content, shortened
from transformer.checkpoint import read_tensors

TOOLS = {"dvc": ("dvc", "repro", "--single-item"), "snakemake": ("snakemake", "--cores", "2", "--quiet", "all", "--")}
TARGETS = ("stage", "tool", "group")
WAYS = tuple(product(TOOLS, TARGETS, (signal.SIGKILL, signal.SIGTERM)))
MADE = ("data", "models", "scores", "results", "reports", "work", "dvc.lock")
PATIENCE = 300  # seconds, a limit for every wait


def copy(source: Path, target: Path) -> None:
    for name in MADE:
        old = target / name
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        (shutil.copytree if (source / name).is_dir() else shutil.copy2)(source / name, old)


@dataclass
class Built:
    """The shortened project, and a copy of the outputs of an undisturbed run."""

    project: Project
    kept: Path

    @classmethod
    def new(cls, root: Path) -> Self:
        (root / "project").mkdir()
        (root / "kept").mkdir()
        project = shortened(root / "project")
        project.run("snakemake", "--cores", "2")
        copy(project.root, root / "kept")
        return cls(project, root / "kept")

    def restore(self, stage: str) -> None:
        """Restore all outputs, and remove `stage` from dvc.lock and from the run cache, so that it has to run."""
        copy(self.kept, self.project.root)
        shutil.rmtree(self.project.root / ".dvc/cache/runs", ignore_errors=True)
        path, yaml = self.project.root / "dvc.lock", YAML()
        lock = yaml.load(path.read_text())
        del lock["stages"][stage]
        yaml.dump(lock, path)

    def differing(self, stage: str) -> tuple[list[str], list[str]]:
        """The files of the stage that differ from the undisturbed run, and those of them that exist."""
        now, then = content(self.project, stage), content(Project(self.kept), stage)
        return [name for name in now | then if now.get(name) != then.get(name)], [n for n in now if now[n] != then.get(n)]

    def step_reached(self) -> int:
        """The step of the state that an unfinished training has saved, or 0."""
        states = list(self.project.root.glob("work/*/*/state.safetensors"))
        return max((read_tensors(path)[1]["numbers"]["step"] for path in states), default=0)

    def processes(self) -> Iterator[psutil.Process]:
        """The processes whose working directory is the project."""
        for process in psutil.process_iter(["cwd"]):
            if process.info["cwd"] == str(self.project.root) and process.status() != psutil.STATUS_ZOMBIE:
                yield process

    def alone(self) -> None:
        """Wait until no process works in the project."""
        deadline = time.monotonic() + PATIENCE
        while left := list(self.processes()):
            assert time.monotonic() < deadline, f"still at work: {left}"
            time.sleep(0.02)


@dataclass
class Start:
    """A tool that runs a stage."""

    built: Built
    stage: str
    tool: str

    def __enter__(self) -> Self:
        # Concurrent writes of a progress bar and a line can split a character.
        self.log = open(self.built.project.root.parent / "log", "w+", encoding="utf-8", errors="replace")
        line = self.built.project.command(*TOOLS[self.tool], self.stage)
        self.process = subprocess.Popen(**line, stdout=self.log, stderr=self.log, start_new_session=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    def worker(self) -> psutil.Process | None:
        """The process of the stage, as soon as it exists. None if the tool ends without starting it."""
        module = f"pipeline.{self.stage.partition('@')[0]}"
        while self.process.poll() is None:
            for process in psutil.Process(self.process.pid).children(recursive=True):
                try:
                    if module in process.cmdline():
                        return process
                except psutil.Error:
                    continue
            time.sleep(0.005)
        return None

    def end(self) -> int:
        return self.process.wait(PATIENCE)

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()


def undisturbed(built: Built, stage: str) -> dict[str, float]:
    """For each target, the seconds from the start of the stage to its end or to DVC's end. Asserts equal outputs."""
    built.restore(stage)
    with Start(built, stage, "dvc") as start:
        worker, began = start.worker(), time.monotonic()
        assert worker, start.said()
        worker.wait(PATIENCE)
        alone = time.monotonic() - began
        assert start.end() == 0, start.said()
    assert built.differing(stage) == ([], []), f"{stage} makes other bytes undisturbed: {built.differing(stage)}"
    return dict.fromkeys(TARGETS, time.monotonic() - began) | {"stage": alone}


@dataclass
class Kill:
    """One kill and its outcome."""

    number: int
    way: tuple
    moment: float
    hit: bool = False
    half: tuple[str, ...] = ()
    waited: bool = False
    mended: bool = False
    wrong: str = ""


def strike(start: Start, worker: psutil.Process, target: str, number: signal.Signals) -> bool:
    """Send the signal. Returns False if the target has ended already."""
    victim = worker if target == "stage" else psutil.Process(start.process.pid)
    if not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE:
        return False
    if target == "group":
        struck = [victim, *victim.children(recursive=True)]
        os.killpg(victim.pid, number)
        psutil.wait_procs(struck, PATIENCE)  # they do not all die at the same time
    else:
        victim.send_signal(number)
    return True


def kill(built: Built, stage: str, number: int, way: tuple, moment: float) -> Kill:
    tool, target, sent = way
    outcome = Kill(number, way, moment)
    while not outcome.hit:
        built.restore(stage)
        with Start(built, stage, tool) as start:
            worker = start.worker()
            assert worker, start.said()
            time.sleep(outcome.moment)
            outcome.hit = strike(start, worker, target, sent)
            outcome.moment *= 1 if outcome.hit else 0.7  # earlier, if the stage ended before the kill
            start.end()
    outcome.half = tuple(built.differing(stage)[1])
    again(built, stage, outcome)
    return outcome


def again(built: Built, stage: str, outcome: Kill) -> None:
    """Start the tool again, and once more if it refused to start beside an orphan of the kill.

    DVC refuses a partial dvc.lock, which it leaves if it is killed while writing the file. The Snakefile restores the
    last complete file. For DVC this function restores it, as `git checkout` would.
    """
    for _ in range(3):
        orphans, reached = list(built.processes()), built.step_reached()
        with Start(built, stage, outcome.way[0]) as start:
            status, said = start.end(), start.said()
        if status and orphans and not outcome.waited:
            outcome.waited = True
            built.alone()
        elif status and "'./dvc.lock' validation failed" in said and outcome.way[0] == "dvc":
            outcome.mended = True
            shutil.copy2(built.kept / "dvc.lock", built.project.root / "dvc.lock")
        else:
            break
    built.alone()
    if status:
        outcome.wrong = f"exit status {status}: {said[-1000:]}"
    elif reached and not orphans and (resumed := step_of(said)) < reached:
        outcome.wrong = f"the training was at step {reached} and went on at {resumed}"
    elif different := built.differing(stage)[0]:
        outcome.wrong = f"other bytes: {', '.join(different)}"


def step_of(said: str) -> int:
    """The step at which a restarted training resumed, according to its output."""
    match = re.search(r"resuming at step (\d+)", said)
    return int(match[1]) if match else 0


def kills(built: Built, stage: str, count: int, seed: int) -> Iterator[Kill]:
    takes, order = undisturbed(built, stage), random.Random(f"{seed} {stage}").sample(WAYS, len(WAYS))
    for number in range(count):
        way = order[number % len(order)]
        moment = random.Random(f"{seed} {stage} {number}").uniform(0, takes[way[1]])
        yield kill(built, stage, number, way, moment)


def show(stage: str, outcome: Kill) -> None:
    """Print a line about a kill that went wrong."""
    tool, target, sent = outcome.way
    what = f"{stage}, kill {outcome.number}: {sent.name} to the {target}, {tool}, after {outcome.moment:.2f} s"
    if outcome.half:
        tqdm.write(f"{what}: left in part: {', '.join(outcome.half)}", file=sys.stderr)
    if outcome.wrong:
        tqdm.write(f"{what}: {outcome.wrong}", file=sys.stderr)


def row(stage: str, outcomes: list[Kill]) -> str:
    targets = Counter(outcome.way[1] for outcome in outcomes)
    cells = [len(outcomes), *(targets[target] for target in TARGETS), sum(o.waited for o in outcomes)]
    cells += [sum(o.mended for o in outcomes), sum(not o.wrong for o in outcomes), sum(bool(o.half) for o in outcomes)]
    return f"| {stage} | {' | '.join(map(str, cells))} |"


def main(arguments: argparse.Namespace) -> int:
    os.environ["MLFLOW_TRACKING_URI"] = "off"
    stages = [stage for stage in OUTPUTS if stage.partition("@")[0] in arguments.stages or not arguments.stages]
    began, fine = time.monotonic(), True
    columns = ["stage", "kills", "stage", "tool", "group", "orphan waited for", "DVC's lock file in part"]
    print(f"| {' | '.join([*columns, 'bytes equal', 'files in part'])} |\n|---{8 * '|---:'}|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        built = Built.new(Path(folder).resolve())
        for stage in tqdm(stages, unit="stage"):
            outcomes = []
            for outcome in tqdm(kills(built, stage, arguments.kills, arguments.seed), stage, arguments.kills, False):
                show(stage, outcome)
                outcomes.append(outcome)
            print(row(stage, outcomes), flush=True)
            fine = fine and not any(outcome.wrong or outcome.half for outcome in outcomes)
    print(f"Seed {arguments.seed}, {time.monotonic() - began:.0f} s. No lock or other file was removed by hand.")
    return 0 if fine else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="kill_everything", description=__doc__.split("\n\n")[0])
    parser.add_argument("--stages", nargs="+", default=[], choices=[name.partition("@")[0] for name in OUTPUTS])
    parser.add_argument("--kills", type=int, default=10, help="kills of each stage")
    parser.add_argument("--seed", type=int, default=1)
    command_line.run(main, parser, checked=False)
