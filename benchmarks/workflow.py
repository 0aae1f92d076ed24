"""The overhead of Snakemake and DVC, without the work of the stages.

    python -m benchmarks.workflow [--rounds 3]

Prints a table of goals and times. The times are medians over the rounds. The CPU time is an estimate of the time on an
idle machine. The commands run in a copy of the project with the same DAG, whose stages do almost nothing
(tests/stubs.py). The time of a stage is that of the whole command, including the start of the tools, divided by the
number of stages that ran. The last four rows use the DAG of all trainings of the paper, in which DVC reads ten times as
many stages.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from pipeline.workflow import stage
from tests.stubs import StubProject

SNAKEMAKE, DVC = ["snakemake", "--cores", "all"], ["dvc", "repro"]
PLANS = (["snakemake", "--dry-run"], ["dvc", "repro", "--dry", "--force"])
ONE_CORE = ["snakemake", "--cores", "1"]  # one stage at a time, as DVC runs them
SCORE = "score@wmt14-en-de-base"


def timed(project: StubProject, command: list[str]) -> tuple[float, float]:
    """The wall-clock time and the CPU time of a command in the project, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    project.run(*command)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def per_stage(project: StubProject, command: list[str], scratch: Path) -> tuple[float, float]:
    """The times of `timed` per stage that the command runs, in a copy of the project."""
    copy = project.copy(scratch)
    (copy.root / "work").mkdir(exist_ok=True)  # for the list of stages that ran
    seconds = timed(copy, command)
    stages = len(copy.ran())
    return seconds[0] / stages, seconds[1] / stages


def row(what: str, command: list[str], goal: float, times: list[tuple[float, float]]) -> str:
    clock, processor = map(statistics.median, zip(*times))
    return f"| {what} | `{' '.join(command)}` | {goal:g} s | {clock:.1f} s | {processor:.1f} s |"


def main(arguments: argparse.Namespace) -> None:
    rounds = range(arguments.rounds)
    print("| | command | goal | seconds | CPU |\n|---|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("demo", "paper"):
            (folder / place).mkdir()
        demo, paper = StubProject.new(folder / "demo"), StubProject.new(folder / "paper")
        paper.run("python", "-m", "pipeline.commands.study", "paper")
        for command in (ONE_CORE, DVC):
            times = [per_stage(demo, command, folder / f"{command[0]}-{turn}") for turn in rounds]
            print(row("a stage run", command, 3, times), flush=True)
        demo.run(*SNAKEMAKE)
        for command in (SNAKEMAKE, DVC):
            print(row("nothing to do", command, 5, [timed(demo, command) for _ in rounds]), flush=True)
        for command in PLANS:
            print(row("planning 22 trainings", command, 15, [timed(paper, command) for _ in rounds]), flush=True)
        for command in ([*ONE_CORE, SCORE], [*DVC, SCORE]):
            times = [per_stage(paper, command, folder / f"paper-{command[0]}-{turn}") for turn in rounds]
            print(row("a stage run among 22 trainings", command, 3, times), flush=True)
    print(f"\n{os.cpu_count()} cores; load average over the last minute {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.workflow", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    stage.run(main, parser, checked=False)
