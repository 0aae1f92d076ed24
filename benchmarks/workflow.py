"""The overhead of Snakemake and DVC, without the work of the stages.

    python -m benchmarks.workflow [--rounds 3] [--record NAME]

The table has goals and times. The times are medians over the rounds. The CPU time is an estimate of the time on an
idle machine. The commands run in a copy of the project with the same DAG, whose stages do almost nothing
(tests/support/stubs.py). The time of a stage is that of the whole command, including the start of the tools, divided by the
number of stages that ran. The last four rows use the DAG of all trainings of the paper, in which DVC reads ten times as
many stages.
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import record
from benchmarks.record import Table
from pipeline.running import stage
from tests.support.stubs import StubProject

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


def measure(arguments: argparse.Namespace) -> Iterator[Table]:
    rounds, rows = range(arguments.rounds), []

    def add(what: str, command: list[str], goal: float, times: list[tuple[float, float]]) -> None:
        clock, processor = (f"{statistics.median(each):.1f} s" for each in zip(*times))
        rows.append([what, f"`{' '.join(command)}`", f"{goal:g} s", clock, processor])

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("demo", "paper"):
            (folder / place).mkdir()
        demo, paper = StubProject.new(folder / "demo"), StubProject.new(folder / "paper")
        paper.run("python", "-m", "pipeline.commands.study", "paper")
        for command in (ONE_CORE, DVC):
            times = [per_stage(demo, command, folder / f"{command[0]}-{turn}") for turn in rounds]
            add("a stage run", command, 3, times)
        demo.run(*SNAKEMAKE)
        for command in (SNAKEMAKE, DVC):
            add("nothing to do", command, 5, [timed(demo, command) for _ in rounds])
        for command in PLANS:
            add("planning 22 trainings", command, 15, [timed(paper, command) for _ in rounds])
        for command in ([*ONE_CORE, SCORE], [*DVC, SCORE]):
            times = [per_stage(paper, command, folder / f"paper-{command[0]}-{turn}") for turn in rounds]
            add("a stage run among 22 trainings", command, 3, times)
    yield {"columns": ["", "command", "goal", "seconds", "CPU"], "rows": rows}


if __name__ == "__main__":
    parser = stage.parser("benchmarks.workflow", __doc__)
    parser.add_argument("--rounds", type=int, default=3)
    record.run(measure, parser)
