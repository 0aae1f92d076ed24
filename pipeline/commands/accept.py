"""Keep the outputs of a stage, or of all stages of a run, after a change that does not change them.

    python -m pipeline.commands.accept RUN|STAGE

Comments, docstrings and layout are no change of code. A rename, a move or another change is one, and makes the stages
stale. A change of `base` or of a model also makes trainings stale whose own settings stay the same. If nothing else has
changed, this command records in dvc.lock that the present code and settings made the outputs. Whether this code would
make the same ones is for the user to know. A saved training of RUN is resumed with the present code.
"""

import argparse

from pipeline import code
from pipeline.settings.params import Name, require_named
from pipeline.training import workspace
from pipeline.workflow import stage as command_line
from pipeline.workflow.costly import changes, told
from pipeline.workflow.lock_files import keep_or_put_back
from pipeline.workflow.project import opened, refresh
from transformer.config.reading import UserError, convert
from transformer.files import digest


def accept(name: str) -> None:
    """Raises UserError if no stage has this name, and, after the others, if a stage has changed in more than code."""
    with opened() as repo:
        refresh(repo)
        stages = repo.index.stages
        chosen = [stage for stage in stages if name in (stage.name, *stage.name.split("@")[1:])]
        if not chosen:
            known = dict.fromkeys(each for stage in stages for each in (*stage.name.split("@")[1:], stage.name))
            require_named(name, list(known), "an entry of params.yaml or a stage of dvc.yaml")
        refused = {}
        for stage in chosen:
            light, heavy = changes(stage)
            if heavy:
                refused[stage.name] = told(heavy)
            elif light:
                print(f"{stage.name}: stale only because {told(light)}; accepted")
                repo.commit(stage.addressing, force=True)
        keep_or_put_back()
    if refused:
        listed = "; ".join(f"{stage}: {reasons}" for stage, reasons in refused.items())
        raise UserError(f"more than code has changed, so these remain stale: {listed}")


def main(arguments: argparse.Namespace) -> None:
    kind, _, run = arguments.name.rpartition("@")
    convert(Name, run, "RUN|STAGE")
    for place in workspace.saved(run) if kind in ("", "train") else []:
        with workspace.lock(run):
            workspace.accept(place, digest(code.described("train")))
        print(f"{place}: resumed with the present code at the next start")
    accept(arguments.name)


if __name__ == "__main__":
    parser = command_line.parser("accept", __doc__)
    parser.add_argument("name", metavar="RUN|STAGE", help="a run, or a stage such as train@RUN")
    command_line.run(main, parser)
