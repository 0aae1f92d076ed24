"""Check the whole of params.yaml, so that nothing starts that a wrong setting would stop hours later.

    python -m pipeline.commands.check

Prints the first error in one line: what is wrong, where, and what would be valid. Snakemake calls it before it plans,
and every stage before it works. Called by a person it also names the long trainings that a change of code alone has
made stale, which `dvc repro` would begin without a question; Snakemake asks. It exits with status 0 unless there is an
error.
"""

import argparse
import os
import sys
from pathlib import Path

from pipeline.settings.check import check
from pipeline.settings.params import load
from pipeline.workflow import stage


def main(_: argparse.Namespace) -> None:
    check(load())
    if "DVC_STAGE" not in os.environ and Path(".dvc").is_dir():  # as the first command of a stage it has to be fast
        warn()


def warn() -> None:
    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo

    from pipeline.workflow.costly import costly

    try:
        with Repo(_wait_for_lock=True) as repo, lock_repo(repo):
            for training in costly(repo.index.graph, repo.status()):
                print(f"check: {training}", file=sys.stderr)
    except DvcException as error:
        print(f"check: which trainings are stale is unknown: {' '.join(str(error).split())}", file=sys.stderr)


if __name__ == "__main__":
    stage.run(main, argparse.ArgumentParser(prog="check", description=__doc__.split("\n\n")[0]), checked=False)
