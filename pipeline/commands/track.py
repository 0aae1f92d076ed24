"""Copy the scores of all runs and searches to MLflow, for example to fill a new store.

python -m pipeline.commands.track [--scores scores]
"""

import argparse
import logging
import warnings
from pathlib import Path

from pipeline.tracking.store import attempt, require_store, shown_uri
from pipeline.tracking.trainings import mirror_run, mirror_search
from pipeline.workflow import stage
from transformer.config.reading import UserError


def main(arguments: argparse.Namespace) -> None:
    require_store()
    logging.disable()  # MLflow and Alembic log to standard error
    warnings.simplefilter("ignore")
    folders = sorted(path.parent for path in arguments.scores.glob("*/training.json"))
    for folder in folders:
        if error := attempt(mirror_run, folder.name, folder):
            raise UserError(f"{folder}: {error}")
    searches = sorted(arguments.scores.glob("searches/*.json"))
    for path in searches:
        if error := attempt(mirror_search, path, set(), True):
            raise UserError(f"{path}: {error}")
    print(f"{shown_uri()} now has the runs ({len(folders)}) and searches ({len(searches)}) of {arguments.scores}/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="track", description=__doc__.split("\n\n")[0])
    parser.add_argument("--scores", type=Path, default=Path("scores"))
    stage.run(main, parser, checked=False)
