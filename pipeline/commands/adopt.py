"""Keep the outputs of a run after a change of code, instead of making them again.

    python -m pipeline.commands.adopt RUN|STAGE [--dry-run] [--accept-code-changes]
    python -m pipeline.commands.adopt RUN --anew

A stage can be adopted if only code has changed since it made its outputs. Changes of comments, layout and docstrings
and renamed modules are accepted automatically. Every other change of code is listed and needs --accept-code-changes;
work/adopted.json records the accepted changes. In dvc.lock, only the entries of the adopted stages are rewritten.

The command also lets the next start resume the unfinished trainings of RUN with the current code. This needs no
--accept-code-changes. --anew removes all unfinished trainings of RUN instead, including those with other settings.
"""

import argparse
from datetime import UTC, datetime

from dvc.repo import Repo
from dvc.stage import PipelineStage
from networkx import topological_sort

from pipeline.settings.params import require_name, require_named
from pipeline.training import workspace
from pipeline.training.workspace import WORK
from pipeline.workflow import stage as command_line
from pipeline.workflow.adoption import Change, code_before, code_changes, code_now, obstacles, rewrite
from pipeline.workflow.costly import UNCACHED
from pipeline.workflow.project import opened
from pipeline.workflow.text import content
from transformer.config.reading import UserError
from transformer.files import write_json

ADOPTED = WORK / "adopted.json"


def named(repo: Repo, name: str) -> list[PipelineStage]:
    """Return the stage `name`, or all stages of the entry `name` of params.yaml, in topological order."""
    graph = repo.index.graph
    stages = [stage for stage in reversed(list(topological_sort(graph))) if name in (stage.name, *keys(stage))]
    if not stages:
        every = list(dict.fromkeys(key for stage in graph for key in keys(stage)))
        require_named(name, [*every, *(stage.name for stage in graph)], "an entry of params.yaml or a stage of dvc.yaml")
    return stages


def keys(stage: PipelineStage) -> list[str]:
    return stage.name.split("@")[1:]


def adoptable(stages: list[PipelineStage]) -> dict[PipelineStage, list[Change]]:
    """Return the stages that are stale only because of code, with the changes that the user must accept.

    Prints for each other stage that it is up to date or why it stays stale. Raises UserError if the only stage stays stale.
    """
    found = {}
    for stage in stages:
        if not stage.status():
            print(f"{stage.name}: up to date")
        elif reasons := obstacles(stage):
            if len(stages) == 1:
                raise UserError(f"{stage.name} cannot be adopted: {'; '.join(reasons)}")
            print(f"{stage.name}: remains stale, more than code has changed: {'; '.join(reasons)}")
        else:
            found[stage] = code_changes(stage)
    return found


def note(stage: PipelineStage, changes: list[Change]) -> None:
    """Record the accepted changes in work/adopted.json, with the outputs that they apply to."""
    known = content(ADOPTED) or {}
    outs, before, now = {out.def_path: out.hash_info.value for out in stage.outs}, code_before(stage), code_now(stage)
    code = [vars(c) | {"old_md5": c.old and before.get(c.old), "new_md5": c.new and now.get(c.new)} for c in changes]
    accepted = {"accepted_by": "the user", "date": datetime.now(UTC).isoformat(timespec="seconds"), "code": code}
    earlier = known.get(stage.name, {"outs": None})
    history = earlier["accepted"] if earlier["outs"] == outs else []  # otherwise the outputs were made again
    write_json(ADOPTED, known | {stage.name: {"outs": outs, "accepted": [*history, accepted]}})


def adopt_unfinished(run: str, dry_run: bool, anew: bool) -> None:
    require_name(run, "RUN")
    unfinished = workspace.unfinished(run)
    if anew and not unfinished:
        raise UserError(f"{WORK / run} holds no unfinished training")
    if unfinished and not dry_run:
        with workspace.lock(run):
            workspace.release(run) if anew else workspace.adopt(run)
    outcome = "removed" if anew else "resumed with the current code at the next start"
    for place in unfinished:
        print(f"{place}: {'would be ' if dry_run else ''}{outcome}")


def adopt_finished(name: str, dry_run: bool, accepted: bool) -> None:
    with opened() as repo:
        found = adoptable(named(repo, name))
        for stage, changes in found.items():
            kept = UNCACHED if code_before(stage) == code_now(stage) else "of code (comments, layout, module names)"
            print(f"{stage.name}: stale only because {'of code' if changes else kept}")
            for change in changes:
                print(f"  {change}")
        if not accepted and (unproved := [stage.name for stage, changes in found.items() if changes]):
            raise UserError(
                f"the code of {', '.join(unproved)} has changed, which may change the result; dvc.lock is unchanged. "
                "--accept-code-changes adopts these stages and records the changes in work/adopted.json"
            )
        if dry_run or not found:
            return
        for stage, changes in found.items():
            if changes:
                note(stage, changes)
        rewrite(found)
        print(f"dvc.lock: adopted {', '.join(stage.name for stage in found)}")


def main(arguments: argparse.Namespace) -> None:
    run, _, key = arguments.name.partition("@")
    if key and arguments.anew:
        raise UserError(f"--anew removes unfinished trainings: {arguments.name!r} is a stage, a run is expected")
    if not key:
        adopt_unfinished(run, arguments.dry_run, arguments.anew)
    if not arguments.anew:
        adopt_finished(arguments.name, arguments.dry_run, arguments.accept_code_changes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adopt", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", metavar="RUN|STAGE", help="a run, or a stage such as train@RUN")
    parser.add_argument("--dry-run", action="store_true", help="print what would be adopted and change nothing")
    parser.add_argument(
        "--accept-code-changes",
        action="store_true",
        help="also adopt stages with changes beyond comments, layout and module names; records the changes",
    )
    parser.add_argument("--anew", action="store_true", help="remove all unfinished trainings of RUN")
    command_line.run(main, parser)
