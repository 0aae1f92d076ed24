"""Check the whole of params.yaml, so that nothing starts that a wrong setting would stop hours later.

    python -m pipeline.commands.check

Prints the first error in one line: what is wrong, where, and what would be valid. Prints nothing and exits 0 if all is
well. Snakemake calls it before it plans, and every stage before it works. It needs no torch.
"""

import argparse

from pipeline.settings.check import check
from pipeline.settings.params import load
from pipeline.workflow import stage


def main(_: argparse.Namespace) -> None:
    check(load())


if __name__ == "__main__":
    stage.run(main, argparse.ArgumentParser(prog="check", description="Check the whole of params.yaml"), checked=False)
