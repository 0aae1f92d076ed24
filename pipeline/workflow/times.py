"""The times of a stage and the hardware it ran on, in files that neither DVC nor git tracks: work/times/.

Outputs that DVC tracks do not contain times, so equal results have equal outputs. A times file records the sha256 of
the output that it belongs to, so the times of another result are not shown beside it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import mapping
from transformer.files import read_json, sha256, write_json


def write_times(path: Path, output: Path, times: Mapping[str, Any]) -> None:
    """Write the times of the stage that made the file `output`."""
    write_json(path, {**times, "output_sha256": sha256(output)})


def read_times(path: Path, output: Path) -> dict[str, Any] | None:
    """Return the times of the stage that made the file `output`, or None if there are none for its content."""
    if not path.exists() or not output.exists():
        return None
    times = dict(mapping(read_json(path), str(path)))
    return times if times.pop("output_sha256", None) == sha256(output) else None
