"""The times of a stage and the hardware it ran on, in files that neither DVC nor git tracks: work/times/.

Outputs that DVC tracks do not contain times, so equal results have equal outputs. A times file records the sha256 of
the output that it belongs to, so its times are not shown for another output.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import mapping
from transformer.files import read_json, sha256, write_json

DURATIONS = Path("work/times/stages.json")  # seconds that each stage took the last time that Snakemake ran it


def write_times(path: Path, output: Path, times: Mapping[str, Any]) -> None:
    """Write the times of the stage that made the file `output`."""
    write_json(path, {**times, "output_sha256": sha256(output)})


def read_times(path: Path, output: Path) -> dict[str, Any] | None:
    """Return the times of the stage that made the file `output`, or None if there are none for its content."""
    if not path.exists() or not output.exists():
        return None
    times = dict(mapping(read_json(path), str(path)))
    return times if times.pop("output_sha256", None) == sha256(output) else None


def duration(seconds: float) -> str:
    """Return a time in its two largest units, for example `2 d 3 h`, `1 h 23 min` or `4 min 5 s`."""
    whole = round(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2])
