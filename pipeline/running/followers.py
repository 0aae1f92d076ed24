"""What follows a training and its scores without a change to them: the modules `client` of the extras, as MLflow's.

Without such an extra, these functions do nothing.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.registry import parts


@contextlib.contextmanager
def following(run: str, log: Path, description: Mapping[str, Any]) -> Iterator[None]:
    """Follow the training.jsonl of a training while the block runs. `description` identifies the training."""
    with contextlib.ExitStack() as stack:
        for follower in parts("pipeline.extras.*.client"):
            stack.enter_context(follower.following(run, log, description))
        yield


@contextlib.contextmanager
def mirroring(path: Path) -> Iterator[None]:
    """Show the followers a folder of a run, its training.json or the file of a search, as it is when the block ends."""
    with contextlib.ExitStack() as stack:
        for follower in parts("pipeline.extras.*.client"):
            stack.enter_context(follower.mirroring(path))
        yield
