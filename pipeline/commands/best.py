"""Print the best trial of a search as a line of `runs`, which trains it once it is in params.yaml.

    python -m pipeline.commands.best NAME

Reads scores/searches/NAME.json or, without it, results/searches/NAME.json.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from pipeline.commands.status import not_done
from pipeline.settings import params
from pipeline.settings.score_files import within
from pipeline.settings.searches import line
from pipeline.workflow import stage
from transformer.config.reading import UserError, convert
from transformer.files import read_json

FOLDERS = (Path("scores/searches"), Path("results/searches"))


def best_run(name: str) -> dict[str, Any]:
    """Return the entry of `runs` that the search `name` found."""
    paths = [folder / f"{name}.json" for folder in FOLDERS]
    for path in paths:
        if path.is_file():
            return convert(dict[str, Any], within(read_json(path), "best", "run"), f"{path}: best.run")
    known = sorted({*params.load()["searches"], *(path.stem for path in FOLDERS[1].glob("*.json"))})
    params.require_named(name, known, f"a search of params.yaml or of {FOLDERS[1]}")
    raise UserError(f"{name}: neither {paths[0]} nor {paths[1]} exists; `snakemake tune@{name}` creates the first")


def main(arguments: argparse.Namespace) -> None:
    run = best_run(arguments.name)
    made_here = FOLDERS[0] / f"{arguments.name}.json"
    for stale in not_done(arguments.name).values() if made_here.is_file() else []:
        print(f"best: {stale}; {made_here} may be of other settings", file=sys.stderr)
    print(line(f"{arguments.name}-best", run))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="best", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a search of params.yaml, or of results/searches")
    stage.run(main, parser)
