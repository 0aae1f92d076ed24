"""Finds long trainings whose outputs are complete on this machine, and which are stale because of code or a lost cache."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.stage import PipelineStage

from pipeline.settings.score_files import within
from pipeline.workflow.adoption import code_before, code_now, obstacles
from pipeline.workflow.text import content
from pipeline.workflow.times import duration, read_times
from transformer.config.reading import UserError

LONG = 30 * 60  # seconds
UNCACHED = "its outputs are not in DVC's cache"
TIMES = Path("work/times")


@dataclass(frozen=True)
class Costly:
    stage: str
    seconds: float
    modules: list[str]

    def __str__(self) -> str:
        more = f" and {len(self.modules) - 3} more" if len(self.modules) > 3 else ""
        code = f"of code ({', '.join(self.modules[:3])}{more})"
        return (
            f"{self.stage} is stale only because {code if self.modules else UNCACHED}; it took {duration(self.seconds)}. "
            f"`python -m pipeline.commands.adopt {self.stage.partition('@')[2]}` keeps its outputs"
        )


def seconds_of(stage: str) -> float:
    """Return the duration in seconds of the training that made the present outputs, or 0 for any other stage.

    If this machine has not recorded it, the duration comes from the record in results/. Without a record, it is 0.
    """
    name, _, run = stage.partition("@")
    if name != "train":
        return 0
    times = read_times(TIMES / run / "training.json", Path("scores", run, "training.json"))
    earlier = within(content(Path("scores", run, "timing.json")), "seconds")  # where earlier versions wrote the times
    recorded = within(content(Path("results", f"{run}.json")), "timing", "seconds")
    return within(times, "seconds") or earlier or recorded or 0


def costly(stages: Iterable[PipelineStage], stale: Mapping[str, Any]) -> list[Costly]:
    """Return the long trainings that are stale only because of code or because their outputs are not in DVC's cache.

    `stale` is the result of DVC's status. A training is left out if DVC can restore its outputs for the current code.
    """
    found = []
    for stage in stages:
        seconds = seconds_of(stage.name) if stage.name in stale else 0
        if seconds > LONG and not obstacles(stage) and not remembered(stage):
            before, now = code_before(stage), code_now(stage)
            modules = [path for path in sorted(before | now) if before.get(path) != now.get(path)]
            found.append(Costly(stage.name, seconds, modules))
    return found


def remembered(stage: PipelineStage) -> bool:
    """Return whether DVC would restore the stage's outputs for the current code from its run cache."""
    stage.save_deps()
    cache = stage.repo.stage_cache
    run = cache._load(stage)
    return bool(run) and cache._create_stage(run, stage.wdir).outs_cached()


def confirm(found: Iterable[Costly], running: Collection[str]) -> None:
    """Ask the user whether the trainings of `found` that are in `running` may run. YES=1 in the environment means yes.

    Raises UserError if the answer is no, and if there is no terminal to ask on.
    """
    asked = [one for one in found if one.stage in running]
    if not asked or os.environ.get("YES") == "1":
        return
    what = ", ".join(f"{one.stage} ({duration(one.seconds)})" for one in asked)
    if not sys.stdin.isatty():
        runs = ", ".join(f"`python -m pipeline.commands.adopt {one.stage.partition('@')[2]}`" for one in asked)
        raise UserError(
            f"not started: {what} would run again; {runs} keeps the outputs, YES=1 in the environment runs it again"
        )
    print(f"Run again: {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("not started; nothing was changed")
