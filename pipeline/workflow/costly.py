"""Finds long trainings whose outputs are complete on this machine, and which are stale because of code or a lost cache."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from dvc.stage import PipelineStage

from pipeline import code
from pipeline.settings.score_files import within
from pipeline.workflow.text import content
from pipeline.workflow.times import duration, read_times
from pipeline.workflow.unchanged import shortened
from transformer.config.reading import UserError

LONG = 30 * 60  # seconds
TIMES = Path("work/times")


@dataclass(frozen=True)
class Costly:
    stage: str
    seconds: float
    why: str

    def __str__(self) -> str:
        return f"{self.stage} is stale only because {self.why}; it took {duration(self.seconds)}. `{self.remedy}` keeps it"

    @property
    def remedy(self) -> str:
        return f"python -m pipeline.commands.accept {self.stage.partition('@')[2]}"


def seconds_of(stage: str) -> float:
    """Return the duration in seconds of the training that made the present outputs, or 0 for any other stage.

    If this machine has not recorded it, the duration comes from results/times/. If that has none, it is 0.
    """
    name, _, run = stage.partition("@")
    if name != "train":
        return 0
    times = read_times(TIMES / run / "training.json", Path("scores", run, "training.json"))
    recorded = within(content(Path("results/times", f"{run}.json")), "training", "seconds")
    return within(times, "seconds") or recorded or 0


def more_than_code(stage: PipelineStage) -> list[str]:
    """Return what makes a stage stale, except a change of its code, and outputs that are just not in DVC's cache."""
    found = []
    for listed in stage.status().get(stage.addressing, []):
        if isinstance(listed, str):  # such as "changed command"
            found.append(listed)
            continue
        for path, state in next(iter(listed.values())).items():
            states = state if isinstance(state, Mapping) else {path: state}  # those of settings are by name
            found += [f"{one} is {how}" for one, how in states.items() if one != code_of(stage) and how != "not in cache"]
    return found


def code_of(stage: PipelineStage) -> str:
    return (code.FOLDER / stage.name.partition("@")[0]).as_posix()


def why(stage: PipelineStage) -> str:
    """Return the reason why a stage is stale for which `more_than_code` returns nothing, with the changed modules."""
    (dep,) = [dep for dep in stage.deps if dep.def_path == code_of(stage)]
    if not dep.changed():
        return "its outputs are not in DVC's cache"
    before = stage.repo.cache.local.oid_to_path(dep.hash_info.value) if dep.hash_info else ""
    texts = [path.read_text(encoding="utf-8") for path in (Path(before), Path(dep.fs_path)) if path.is_file()]
    modules = code.changed(*texts) if len(texts) == 2 else []
    return f"of code ({shortened(modules)})" if modules else "of code"


def costly(stages: Iterable[PipelineStage], stale: Collection[str]) -> list[Costly]:
    """Return the long trainings that are stale only because of code or because their outputs are not in DVC's cache.

    `stale` has the stages that DVC's status lists. A training is left out if DVC can restore its outputs for the current
    code.
    """
    found = []
    for stage in stages:
        seconds = seconds_of(stage.name) if stage.name in stale else 0
        if seconds > LONG and not more_than_code(stage) and not remembered(stage):
            found.append(Costly(stage.name, seconds, why(stage)))
    return found


def remembered(stage: PipelineStage) -> bool:
    """Return whether DVC would restore the stage's outputs for the current code from its run cache."""
    now = copy(stage)
    now.deps = [copy(dep) for dep in stage.deps]  # `stage` itself keeps the digests of dvc.lock, which `why` compares
    now.save_deps()
    cache = stage.repo.stage_cache
    run = cache._load(now)
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
        remedies = ", ".join(f"`{one.remedy}`" for one in asked)
        raise UserError(
            f"not started: {what} would run again; {remedies} keeps the outputs, YES=1 in the environment runs it again"
        )
    print(f"Run again: {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("not started; nothing was changed")
