"""Trainings of many minutes that are whole on this machine and that a change of code alone has made stale."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.stage import PipelineStage

from pipeline.workflow.adoption import code_before, code_now, hindrances
from pipeline.workflow.times import duration
from transformer.config.reading import UserError
from transformer.files import read_json

LONG = 30 * 60  # seconds
TIMES = Path("work/times")


@dataclass(frozen=True)
class Costly:
    stage: str
    seconds: float
    modules: list[str]

    def __str__(self) -> str:
        more = f" and {len(self.modules) - 3} more" if len(self.modules) > 3 else ""
        return (
            f"{self.stage} is stale by code alone ({', '.join(self.modules[:3])}{more}); it took "
            f"{duration(self.seconds)}. `python -m pipeline.commands.adopt {self.stage.partition('@')[2]}` keeps what "
            "it made"
        )


def seconds_of(stage: str) -> float:
    """How long a training took by its record; 0 for another stage, and where there is no record."""
    name, _, run = stage.partition("@")
    earlier = Path("scores") / run / "timing.json"  # where times were written at first
    paths = [path for path in (TIMES / run / "training.json", earlier) if name == "train" and path.is_file()]
    return read_json(paths[0]).get("seconds", 0) if paths else 0


def costly(stages: Iterable[PipelineStage], stale: Mapping[str, Any]) -> list[Costly]:
    """Those of `stages` that DVC's status names in `stale`, that took long and that differ in code alone."""
    found = []
    for stage in stages:
        seconds = seconds_of(stage.name) if stage.name in stale else 0
        if seconds > LONG and not hindrances(stage) and not remembered(stage):
            before, now = code_before(stage), code_now(stage)
            modules = [path for path in sorted(before | now) if before.get(path) != now.get(path)]
            found.append(Costly(stage.name, seconds, modules))
    return found


def remembered(stage: PipelineStage) -> bool:
    """Whether DVC has the stage's outputs for the code of now in its cache of runs, and would not run it."""
    stage.save_deps()
    cache = stage.repo.stage_cache
    run = cache._load(stage)
    return bool(run) and cache._create_stage(run, stage.wdir).outs_cached()


def confirm(found: Iterable[Costly], running: Collection[str]) -> None:
    """Ask whether the stages that are going to run may begin; YES=1 answers. Raises UserError where they may not."""
    asked = [one for one in found if one.stage in running]
    if not asked or os.environ.get("YES") == "1":
        return
    what = ", ".join(f"{one.stage} ({duration(one.seconds)})" for one in asked)
    if not sys.stdin.isatty():
        runs = ", ".join(f"`python -m pipeline.commands.adopt {one.stage.partition('@')[2]}`" for one in asked)
        raise UserError(
            f"not begun: {what} would be made anew; {runs} keeps it, YES=1 in the environment makes it anew"
        )
    print(f"Make anew: {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("not begun, and nothing was changed")
