"""Copy the scores of runs and searches to MLflow, for example to fill a new store.

    python -m pipeline.extras.tracking [PATH...]

PATH is the folder of a run or the file of a search in scores/. Without a PATH, all of scores/ is copied.
"""

import argparse
import contextlib
import logging
import sys
import warnings
from pathlib import Path

from pipeline.extras.tracking.store import opened, uri, without_user
from pipeline.extras.tracking.trainings import mirror_run, mirror_search, mirror_trained
from pipeline.running import stage
from transformer.config.reading import UserError, placed

SCORES, TRAINING = Path("scores"), "training.json"


def main(arguments: argparse.Namespace) -> None:
    logging.disable()  # MLflow and Alembic log to standard error
    warnings.simplefilter("ignore")
    if arguments.after_input:
        with contextlib.suppress(Exception):  # `opened` says what is wrong
            import mlflow  # noqa: F401  takes seconds
        sys.stdin.read()
    runs = [path.parent for path in SCORES.glob(f"*/{TRAINING}")]
    paths = arguments.paths or sorted([*runs, *SCORES.glob("searches/*.json")])
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; the folder of a run or the file of a search in scores/ is expected")
        with placed(str(path), ": "), opened():
            if path.name == TRAINING:  # for `flops`: the scores beside it may be of the training before
                mirror_trained(path.parent)
            else:
                (mirror_search if path.is_file() else mirror_run)(path)
    print(f"{without_user(uri())} now has {len(paths)} runs and searches")


if __name__ == "__main__":
    parser = stage.parser("track", __doc__)
    parser.add_argument("--after-input", action="store_true", help="read the files once standard input has ended")
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="scores/RUN or scores/searches/NAME.json")
    stage.run(main, parser, checked=False)
