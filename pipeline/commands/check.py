"""Check all of params.yaml and studies.yaml, so that an invalid setting is found before any stage starts.

    python -m pipeline.commands.check

Prints a line for each error: what is wrong, where, and what would be valid. Snakemake runs the check before it
plans, and every stage checks params.yaml before it starts. The exit status is 1 if a setting is invalid.
"""

import argparse

from pipeline.running import stage
from pipeline.settings.blocks import with_studies
from pipeline.settings.params import load


def main(_: argparse.Namespace) -> None:
    stage.require_sound(with_studies(load()))


if __name__ == "__main__":
    stage.run(main, stage.parser("check", __doc__), checked=False)
