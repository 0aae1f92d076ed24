"""The process that mirrors a training in MLflow while it runs. `following` in client.py starts it.

python -m pipeline.tracking.follower RUN LOG DESCRIPTION      until standard input ends
"""

import json
import logging
import signal
import sys
import threading
from pathlib import Path

from pipeline.tracking.client import PATIENCE, warn
from pipeline.tracking.store import opened
from pipeline.tracking.trainings import mirror_live
from transformer.config.reading import UserError

INTERVAL = 15  # seconds between two reads of the log


def follow(ended: threading.Event, run: str, log: Path, description: str) -> None:
    """Mirror the log every INTERVAL seconds, and once more when `ended` is set. Only the first error is printed."""
    warned = last = False
    while not last:
        last = ended.wait(INTERVAL)
        try:
            with opened():
                mirror_live(run, json.loads(description), log, last)
        except UserError as error:
            if not warned:
                warn(str(error))
            warned = True


def main(run: str, log: str, description: str) -> None:
    logging.disable()  # MLflow and Alembic log to standard error
    ended = threading.Event()

    def wait_for_end() -> None:  # then SIGALRM ends the process, should the store hang
        sys.stdin.read()
        signal.alarm(PATIENCE + 1)
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    follow(ended, run, Path(log), description)


if __name__ == "__main__":
    main(*sys.argv[1:])
