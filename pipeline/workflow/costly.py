"""Finds long trainings with complete outputs here that are stale by code, a lost cache or settings they do not use."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from pathlib import Path

from dvc.dependency import Dependency
from dvc.stage import PipelineStage

from pipeline import code
from pipeline.settings.params import load
from pipeline.settings.score_files import content, within
from pipeline.settings.selection import run_settings
from pipeline.workflow.times import duration, training_times
from pipeline.workflow.unchanged import shortened
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, read_saved
from transformer.config.training import TrainingConfig

LONG = 30 * 60  # seconds


def seconds_of(stage: str) -> float:
    """Return the duration in seconds of the training that made the present outputs, or 0 for any other stage.

    If this machine has not recorded it, the duration comes from results/times/. If that has none, it is 0.
    """
    name, _, run = stage.partition("@")
    if name != "train":
        return 0
    recorded = within(content(Path("results/times", f"{run}.json")), "training", "seconds")
    return training_times(run).get("seconds") or recorded or 0


def changes(stage: PipelineStage) -> tuple[dict[str, str], dict[str, str]]:
    """Return what differs from dvc.lock and how, as `dvc status` does.

    The first mapping has the code, with its changed modules, the outputs that are just not in DVC's cache, and the changed
    settings of a training that do not change its own. The second has all else: the command, other dependencies, settings,
    and outputs.
    """
    light, heavy = dict[str, str](), {"its command": "changed"} if stage.changed_stage() else {}
    for entry in (*stage.deps, *stage.outs):
        for path, change in entry.status().items():
            if path == (code.FOLDER / stage.name.partition("@")[0]).as_posix():
                light[code_of(entry)] = change
            elif change == "not in cache":
                light[path] = change
            else:
                heavy |= change if isinstance(change, Mapping) else {path: change}  # those of settings are by name
    kind, _, run = stage.name.partition("@")
    settings = [path for path in heavy if path.startswith(("base.", "models.", "runs."))]
    if kind == "train" and settings and as_trained(run):
        light |= {path: heavy.pop(path) for path in settings}
    return light, heavy


def as_trained(run: str) -> bool:
    """Return whether params.yaml gives a run the settings with which it was trained.

    A change of `base` or of a model does not change them where the run has its own value, nor does a new setting whose
    value means the previous behaviour.
    """
    saved = within(content(Path("scores", run, "training.json")), "settings")
    try:
        _, *now = run_settings(load(), run)
        kinds = {"model": ModelConfig, "training": TrainingConfig}
        return now == [read_saved(kind, within(saved, part), run) for part, kind in kinds.items()]
    except UserError:  # the settings of now are invalid, or other code saved the others
        return False


def code_of(dep: Dependency) -> str:
    """Return `code`, with the modules that have changed if the recorded digests are still in DVC's cache."""
    before = dep.repo.cache.local.oid_to_path(dep.hash_info.value) if dep.hash_info else ""
    texts = [path.read_text(encoding="utf-8") for path in (Path(before), Path(dep.fs_path)) if path.is_file()]
    modules = code.changed(*texts) if len(texts) == 2 else []
    return f"code ({shortened(modules)})" if modules else "code"


def told(changed: Mapping[str, str]) -> str:
    return ", ".join(f"{path} is {how}" for path, how in changed.items())


def costly(stages: Iterable[PipelineStage], stale: Collection[str]) -> dict[str, str]:
    """Return a line about each long training that is stale only because of code or a lost cache, by the stage's name.

    `stale` has the stages that DVC's status lists. A training is left out if DVC can restore its outputs for the current
    code.
    """
    found = {}
    for stage in stages:
        seconds = seconds_of(stage.name) if stage.name in stale else 0
        light, heavy = changes(stage) if seconds > LONG else ({}, {})
        if light and not heavy and not remembered(stage):
            keeps = f"`python -m pipeline.commands.accept {stage.name.partition('@')[2]}` keeps it"
            found[stage.name] = f"{stage.name} is stale only because {told(light)}; it took {duration(seconds)}. {keeps}"
    return found


def remembered(stage: PipelineStage) -> bool:
    """Return whether DVC would restore the stage's outputs for the current code from its run cache."""
    now = copy(stage)
    now.deps = [copy(dep) for dep in stage.deps]  # `stage` itself keeps the digests of dvc.lock
    now.save_deps()
    cache = stage.repo.stage_cache
    run = cache._load(now)
    return bool(run) and cache._create_stage(run, stage.wdir).outs_cached()


def confirm(found: Collection[str], running: Collection[str]) -> None:
    """Ask the user whether the trainings of `found` that are in `running` may run. YES=1 in the environment means yes.

    Raises UserError if the answer is no, and if there is no terminal to ask on.
    """
    asked = ", ".join(stage for stage in found if stage in running)
    if not asked or os.environ.get("YES") == "1":
        return
    if not (sys.stdin and sys.stdin.isatty()):
        raise UserError(f"not started: {asked} would run again; YES=1 in the environment runs it again")
    print(f"Run again: {asked}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("not started; nothing was changed")
