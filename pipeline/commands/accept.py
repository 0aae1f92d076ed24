"""Keep the outputs of a stage, or of all stages of a run, after a change that does not change them.

    python -m pipeline.commands.accept RUN|STAGE...
    python -m pipeline.commands.accept --all

docs/design.md says what counts as a change of code; the path of the script in the command does, too. A change of `base`
or of a model also makes trainings stale whose own settings stay the same. If nothing else has changed, this command
records in dvc.lock that the present code, command and settings made the outputs. It does not check whether the present
code would make the same outputs: the user has to know. A saved training of RUN is then resumed with the present code.
"""

import argparse
from collections.abc import Sequence

from pipeline import code
from pipeline.orchestrating.costly import changes, told
from pipeline.orchestrating.lock_files import keep_or_put_back, write_atomically
from pipeline.orchestrating.project import opened, read_settings_once, refresh
from pipeline.running import stage as command_line
from pipeline.settings.params import Name, load, require_named
from pipeline.training import workspace
from transformer.config.reading import UserError, convert
from transformer.files import digest


def accept(names: Sequence[str]) -> None:
    """Accept the stages with these names, or all. Raises UserError for a name that no stage has.

    Raises UserError, after the others are accepted, if a stage has changed in more than code.
    """
    read_settings_once()
    write_atomically()
    with opened() as repo:
        refresh(repo)
        of = {stage: (stage.name, *stage.name.split("@")[1:]) for stage in repo.index.stages}
        for name in names:
            known = list(dict.fromkeys(each for stage in of.values() for each in reversed(stage)))
            require_named(name, known, "an entry of params.yaml or a stage of dvc.yaml")
        refused, found = {}, False
        for stage in (stage for stage in of if not names or set(names) & set(of[stage])):
            light, heavy = changes(stage)
            heavy |= {str(output): "deleted" for output in stage.outs if not output.exists}  # also if not in the cache
            found |= bool(light or heavy)
            if heavy:
                refused[stage.name] = told(heavy)
            elif light:
                print(f"{stage.name}: stale only because {told(light)}; accepted")
                repo.commit(stage.addressing, force=True)
        keep_or_put_back()
    if not found:
        print("nothing is stale")
    if refused:
        listed = "; ".join(f"{stage}: {reasons}" for stage, reasons in refused.items())
        raise UserError(f"more than code has changed, so these remain stale: {listed}")


def main(arguments: argparse.Namespace) -> None:
    if bool(arguments.names) == arguments.all:
        raise UserError("the names of runs or stages are expected, or --all")
    for name in arguments.names or load()["runs"]:
        kind, _, run = name.rpartition("@")
        convert(Name, run, "RUN|STAGE")
        for place in workspace.saved(run) if kind in ("", "train") else []:
            with workspace.lock(run):
                workspace.accept(place, digest(code.described("train")))
            print(f"{place}: the next start resumes it with the present code")
    accept(arguments.names)


if __name__ == "__main__":
    parser = command_line.parser("accept", __doc__)
    parser.add_argument("names", metavar="RUN|STAGE", nargs="*", help="a run, or a stage such as train@RUN")
    parser.add_argument("--all", action="store_true", help="all stages")
    command_line.run(main, parser)
