"""Check all of params.yaml and studies.yaml, so that an invalid setting is found before any stage starts.

    python -m pipeline.commands.check

Prints a line for each error: what is wrong, where, and what would be valid. Snakemake runs the check before it
plans, and every stage checks params.yaml before it starts. If a user runs this command, it also names the long trainings
that are stale only because code has changed. `dvc repro` would repeat these trainings without asking; Snakemake asks. The
exit status is 1 if a setting is invalid. A stale training does not change it.
"""

import argparse
import os
import sys
from pathlib import Path

from pipeline import code
from pipeline.settings.check import check
from pipeline.settings.params import load
from pipeline.settings.studies import with_studies
from pipeline.workflow import stage
from transformer.config.reading import UserError


def main(_: argparse.Namespace) -> None:
    params = load()
    if "DVC_STAGE" in os.environ:  # in a stage, the check has to be fast
        return check(params)
    check(with_studies(params))
    stage.require_within()
    if Path(".dvc").is_dir():
        warn()


def warn() -> None:
    from pipeline.workflow.costly import costly
    from pipeline.workflow.project import opened

    try:
        code.write()
        with opened() as repo:
            for training in costly(repo.index.graph, repo.status()).values():
                print(f"check: {training}", file=sys.stderr)
    except UserError as error:
        print(f"check: cannot find out which trainings are stale: {' '.join(str(error).split())}", file=sys.stderr)


if __name__ == "__main__":
    stage.run(main, argparse.ArgumentParser(prog="check", description=__doc__.split("\n\n")[0]), checked=False)
