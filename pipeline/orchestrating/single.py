"""Run one stage as `dvc --wait-for-lock repro --single-item STAGE` does, with half of its overhead.

    python -m pipeline.orchestrating.single STAGE

The Snakefile starts it for each stage. DVC's own command line imports all commands of DVC. DVC parses params.yaml for each
group of settings.
"""

import argparse
import signal
import sys

import dvc.cli
from dvc import lock
from dvc.commands import repro

from pipeline.orchestrating.lock_files import write_atomically
from pipeline.orchestrating.project import read_settings_once

OPTIONS = {"cd": ".", "quiet": 0, "verbose": 0, "wait_for_lock": True}
OPTIONS |= dict.fromkeys(("glob", "no_commit", "no_run_cache"), False)


def options(argv: list[str]) -> argparse.Namespace:
    """DVC's options for the stage `argv[0]`."""
    parser = argparse.ArgumentParser()
    repro.add_arguments(parser)
    return parser.parse_args(["--single-item", "--", *argv], argparse.Namespace(func=repro.CmdRepro, **OPTIONS))


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # pipeline/__init__.py
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # when Snakemake is killed; DVC waits for the stage, which stops
        signal.signal(signal.SIGTERM, lambda *_: None)
    dvc.cli.parse_args = options
    read_settings_once()
    write_atomically()
    lock.DEFAULT_TIMEOUT = 0.3  # DVC tries six times in it, and as often while it waits for the other stages
    sys.exit(dvc.cli.main(sys.argv[1:]))
