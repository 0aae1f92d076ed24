"""The workflow itself: what Snakemake and DVC take beside the stages' own work.

    python -m benchmarks.workflow [--rounds 3]

Prints a table of seconds beside the goals, as medians over the rounds, with the processor time of the processes: on a
busy machine it says what a quiet one would take. Tried on a copy of the project whose stages do nothing (tests/stubs.py)
but has the same DAG. A stage run is the whole command over the stages that it ran, the tools' start and the stub's own
work with it. The last two are of the whole paper's DAG, where DVC reads ten times as many stages before it runs one.
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
ONE_CORE = ["snakemake", "--cores", "1"]  # stages one after the other, as DVC runs them
SCORE = "score@wmt14-en-de-base"


def timed(project: StubProject, command: list[str]) -> tuple[float, float]:
    """Seconds that a command takes in the project, on the clock and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    project.run(*command)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def per_stage(project: StubProject, command: list[str], scratch: Path) -> tuple[float, float]:
    """The same for each stage that the command runs, in a copy of the project."""
    copy = project.copy(scratch)
    (copy.root / "work").mkdir(exist_ok=True)  # where the stubs say that they ran
    seconds = timed(copy, command)
    stages = len(copy.ran())
    return seconds[0] / stages, seconds[1] / stages


def row(what: str, command: list[str], goal: float, times: list[tuple[float, float]]) -> str:
    clock, processor = map(statistics.median, zip(*times))
    return f"| {what} | `{' '.join(command)}` | {goal:g} s | {clock:.1f} s | {processor:.1f} s |"


def main(arguments: argparse.Namespace) -> None:
    rounds = range(arguments.rounds)
    print("| | command | goal | seconds | of the processor |\n|---|---|---:|---:|---:|", flush=True)
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
