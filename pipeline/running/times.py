"""The times of a stage and the hardware it ran on, in files that neither DVC nor git tracks: work/times/.

Outputs that DVC tracks do not contain times, so equal results have equal outputs. A times file maps the sha256 of each
output that the stage has made here to its times. Those of earlier outputs are kept, because DVC can restore these outputs,
for example after a change of branch.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import content, within
from transformer.config.reading import UserError
from transformer.files import sha256, write_json


def write_times(path: Path, output: Path, times: Mapping[str, Any]) -> None:
    """Write the times of the stage that made the file `output`. Those of other outputs are kept."""
    known = None
    with contextlib.suppress(UserError):  # a damaged file has no times to keep
        known = content(path)
    write_json(path, {**(known or {}), sha256(output): times})


def read_times(path: Path, output: Path) -> dict[str, Any] | None:
    """Return the times of the stage that made the file `output`, or None if there are none for its content."""
    return within(content(path), sha256(output)) if output.exists() else None


def training_times(run: str) -> dict[str, Any]:
    """Return the times of the training of a run, or {} if its outputs were not made on this machine."""
    return read_times(Path("work/times", run, "training.json"), Path("scores", run, "training.json")) or {}


def duration(seconds: float) -> str:
    """Return a time in its two largest units, for example `2 d 3 h`, `1 h 23 min` or `4 min 5 s`."""
    whole = round(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2])
