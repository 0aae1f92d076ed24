"""How long the stages took, for the question before a long one runs again.

DVC runs a stage in this process. `measured` writes how long it took to work/.times/STAGE.json, together with its earlier
attempts since it last ended. A killed attempt is not counted.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.running.times import training_times
from pipeline.settings.score_files import content, within
from transformer.config.reading import UserError
from transformer.files import digest, write_json

PLACES = Path("work/.times")  # not the folder of a run: no name of a run starts with a dot
LONG = 30 * 60  # seconds


def seconds_of(stage: str) -> float:
    """Return the duration in seconds of a stage such as `tune@NAME`, or 0 if it is not known.

    That of a training is the duration of the training that made the present outputs, here or in results/times/. That of
    any other stage is its last one here.
    """
    kind, _, run = stage.partition("@")
    if kind == "train" and (seconds := training_times(run).get("seconds")):
        return seconds
    recorded = within(content(Path("results/times", f"{run}.json")), "training", "seconds") if kind == "train" else None
    return recorded or within(noted(stage), "seconds") or 0


def noted(stage: str) -> dict[str, Any]:
    """Return `seconds` of the last complete run here, and `spent` and `code` of later attempts, as far as they exist."""
    with contextlib.suppress(UserError):  # a damaged file: the durations are not known
        return content(PLACES / f"{stage}.json") or {}
    return {}


@contextlib.contextmanager
def measured(stage: str, code: str) -> Iterator[list[Any]]:
    """Note how long the body takes. The body puts the stage's exit status into the list, if it comes to one.

    Nothing is noted without the stage's `code`, as when DVC does not run it, and of a worker, whose launcher is measured.
    """
    status, begun = list[Any](), time.monotonic()
    if not code or "RANK" in os.environ:
        yield status
        return
    path, known = PLACES / f"{stage}.json", noted(stage) | {"code": digest(code)}
    with contextlib.suppress(OSError):  # no result depends on the file
        write_json(path, known)
    try:
        yield status
    finally:
        spent = known.get("spent", 0) + time.monotonic() - begun
        ended = status and not status[0]
        with contextlib.suppress(OSError):
            write_json(path, {"seconds": spent} if ended else {**known, "spent": spent})
