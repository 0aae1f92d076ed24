"""Copy the score files of all runs to MLflow, for example into a new store.

python -m pipeline.commands.track [--scores scores]
"""

import argparse
import subprocess
from pathlib import Path

from pipeline.tracking.client import command, environment
from pipeline.workflow import stage


def main(arguments: argparse.Namespace) -> int:
    return subprocess.run(command("all", str(arguments.scores)), env=environment(), check=False).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tracking", description=__doc__.split("\n\n")[0])
    parser.add_argument("--scores", type=Path, default=Path("scores"))
    stage.run(main, parser, checked=False)
