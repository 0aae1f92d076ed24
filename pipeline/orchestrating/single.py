"""Run one stage as `dvc --wait-for-lock repro --single-item STAGE` does, with half of its overhead.

    python -m pipeline.orchestrating.single STAGE

The Snakefile starts it for each stage. DVC's own command line imports all commands of DVC. DVC parses params.yaml for each
group of settings. Before it writes dvc.lock, it reads it by a slow parser that keeps comments. dvc.lock has none.
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dvc.cli
from dvc import dvcfile, lock
from dvc.commands import repro
from dvc.utils.serialize import dumps_yaml, load_yaml

from pipeline.orchestrating.project import read_settings_once
from transformer.files import write_file

OPTIONS = {"cd": ".", "quiet": 0, "verbose": 0, "wait_for_lock": True}
OPTIONS |= dict.fromkeys(("glob", "no_commit", "no_run_cache"), False)


def options(argv: list[str]) -> argparse.Namespace:
    """DVC's options for the stage `argv[0]`."""
    parser = argparse.ArgumentParser()
    repro.add_arguments(parser)
    return parser.parse_args(["--single-item", "--", *argv], argparse.Namespace(func=repro.CmdRepro, **OPTIONS))


@contextlib.contextmanager
def lock_file(path: str, fs: Any) -> Iterator[dict[str, Any]]:
    """The content of dvc.lock, which is written when the block ends, atomically: DVC itself would truncate it first."""
    content = load_yaml(path, fs=fs) if fs.exists(path) else {}
    yield content
    write_file(Path(path), dumps_yaml(content))


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # pipeline/__init__.py
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # when Snakemake is killed; DVC waits for the stage, which stops
        signal.signal(signal.SIGTERM, lambda *_: None)
    dvc.cli.parse_args, dvcfile.modify_yaml = options, lock_file
    read_settings_once()
    lock.DEFAULT_TIMEOUT = 0.3  # DVC tries six times in it, and as often while it waits for the other stages
    sys.exit(dvc.cli.main(sys.argv[1:]))
