"""The question before a long stage runs again whose outputs may be right.

Its outputs are here. Only its code, its command or settings that it does not use have changed, or DVC's cache lacks them.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from pathlib import Path

from dvc.dependency import Dependency
from dvc.stage import PipelineStage

from pipeline import code
from pipeline.orchestrating.project import opened
from pipeline.running.durations import LONG, noted, seconds_of
from pipeline.running.times import duration
from pipeline.running.unchanged import shortened
from pipeline.settings.params import load
from pipeline.settings.score_files import content, within
from pipeline.settings.selection import run_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, read_saved
from transformer.config.training import TrainingConfig
from transformer.files import digest


def changes(stage: PipelineStage) -> tuple[dict[str, str], dict[str, str]]:
    """Return what differs from dvc.lock and how, as `dvc status` does.

    The first mapping has the code, with its changed modules, the command if it runs another script or another check, the
    outputs that are just not in DVC's cache, and the changed settings of a training that do not change its own. The second
    has all else: the options of the command, other dependencies, settings, and outputs.
    """
    light, heavy = dict[str, str](), dict[str, str]()
    if stage.changed_stage():
        recorded = within(stage.dvcfile._lockfile.load(), "stages", stage.name, "cmd") or ""  # "": it has no entry
        (light if options(stage.cmd) == options(recorded) else heavy)["its command"] = "changed"
    for entry in (*stage.deps, *stage.outs):
        for path, change in entry.status().items():
            if path == (code.FOLDER / stage.name.partition("@")[0]).as_posix():
                light[named_code(entry)] = change
            elif change == "not in cache":
                light[path] = change
            else:
                heavy |= change if isinstance(change, Mapping) else {path: change}  # those of settings are by name
    kind, _, run = stage.name.partition("@")
    settings = [path for path in heavy if path.startswith(("base.", "models.", "runs."))]
    if kind == "train" and settings and as_trained(run):
        light |= {path: heavy.pop(path) for path in settings}
    return light, heavy


def options(command: str | list[str]) -> list[str]:
    """Return a stage's commands without the name of the script's module, and without the check of earlier versions."""
    steps = [command] if isinstance(command, str) else command
    words = [shlex.join(shlex.split(step)) for step in steps if not step.endswith(".check")]
    return [re.sub(r"^python -m pipeline[.\w]+", "", each) for each in words]


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


def named_code(dep: Dependency) -> str:
    """Return `code`, with the modules that have changed if the recorded digests are still in DVC's cache."""
    before = dep.repo.cache.local.oid_to_path(dep.hash_info.value) if dep.hash_info else ""
    modules = (
        code.changed(Path(before).read_text(encoding="utf-8"), Path(dep.def_path).name) if Path(before).is_file() else []
    )
    return f"code ({shortened(modules)})" if modules else "code"


def told(changed: Mapping[str, str]) -> str:
    return ", ".join(f"{path} is {how}" for path, how in changed.items())


def costly(stages: Iterable[PipelineStage], stale: Collection[str]) -> dict[str, str]:
    """Return a line about each long stage whose changes are all light, by the stage's name.

    `stale` has the stages that DVC's status lists. A stage is left out if DVC can restore its outputs for the current code.
    """
    found = {}
    for stage in stages:
        seconds = seconds_of(stage.name) if stage.name in stale else 0
        light, heavy = changes(stage) if seconds > LONG else ({}, {})
        if light and not heavy and not remembered(stage):
            found[stage.name] = line(stage, light, seconds)
    return found


def line(stage: PipelineStage, light: Mapping[str, str], seconds: float) -> str:
    kind, _, name = stage.name.partition("@")
    keeps = f"`python -m pipeline.commands.accept {name if kind == 'train' else stage.name}` keeps it"
    return f"{stage.name} is stale only because {told(light)}; it took {duration(seconds)}. {keeps}"


def remembered(stage: PipelineStage) -> bool:
    """Return whether DVC would restore the stage's outputs for the current code from its run cache."""
    if any(out.persist for out in stage.outs):  # DVC has no run cache for them
        return False
    now = copy(stage)
    now.deps = [copy(dep) for dep in stage.deps]  # `stage` itself keeps the digests of dvc.lock
    now.save_deps()
    cache = stage.repo.stage_cache
    run = cache._load(now)
    return bool(run) and cache._create_stage(run, stage.wdir).outs_cached()


def confirm(found: Collection[str], running: Collection[str]) -> None:
    """Ask the user whether the stages of `found` that are in `running` may run. YES=1 in the environment means yes.

    It is then set for the stages that this process starts, so that they do not ask again (`confirm_started`). Raises
    UserError if the answer is no, and if there is no terminal to ask on.
    """
    asked = ", ".join(stage for stage in found if stage in running)
    if asked and os.environ.get("YES") != "1":
        if not (sys.stdin and sys.stdin.isatty()):
            raise UserError(f"not started: {asked} would run again; YES=1 in the environment allows it")
        print(f"Run again: {asked}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UserError("not started; nothing was changed")
    os.environ["YES"] = "1"


def confirm_started(name: str, described: str) -> None:
    """Ask, in the long stage `name` that `dvc repro` has started, if only its code or its command has changed.

    DVC has removed its outputs before. They are put back from its cache unless the answer is yes. There is no question if
    they are not in the cache, if an attempt with the present code has begun before, and if `dvc repro --force` runs a
    stage that is not stale. Raises UserError as `confirm` does.
    """
    seconds = seconds_of(name)
    if seconds <= LONG or os.environ.get("YES") == "1" or noted(name).get("code") == digest(described):
        return
    with opened(locked=False) as repo:
        stage = next(stage for stage in repo.index.stages if stage.name == name)
        outs = {str(out) for out in stage.outs}
        light, heavy = changes(stage)
        light = {path: how for path, how in light.items() if path not in outs}
        if not light or heavy.keys() - outs or not stage.outs_cached():
            return
        print(line(stage, light, seconds), file=sys.stderr)
        try:
            confirm([name], [name])
        except UserError:
            for out in stage.outs:
                out.checkout(force=True)
            raise
