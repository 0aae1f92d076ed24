"""The times of a stage and the hardware it ran on, in files that neither DVC nor git tracks: work/times/.

Outputs that DVC tracks do not contain times, so equal results have equal outputs. A times file records the sha256 of
the output that it belongs to, so its times are not shown for another output. The times of earlier outputs are kept,
because DVC can restore these outputs, for example after a change of branch.
"""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.score_files import mapping
from transformer.config.reading import UserError
from transformer.files import read_json, sha256, write_json

DURATIONS = Path("work/times/stages.json")  # seconds that each stage took the last time that Snakemake ran it


def write_times(path: Path, output: Path, times: Mapping[str, Any]) -> None:
    """Write the times of the stage that made the file `output`. The times of another output are copied to another file."""
    made = sha256(output)
    with contextlib.suppress(UserError):  # a damaged file has no times to keep
        if path.exists() and (earlier := mapping(read_json(path), str(path))) and earlier.get("output_sha256") != made:
            write_json(kept(path, str(earlier.get("output_sha256"))), earlier)
    write_json(path, {**times, "output_sha256": made})


def read_times(path: Path, output: Path) -> dict[str, Any] | None:
    """Return the times of the stage that made the file `output`, or None if there are none for its content."""
    return times_of(path, output)[1]


def times_of(path: Path, output: Path) -> tuple[Path, dict[str, Any] | None]:
    """Return the file with the times of `output` and the times. The file is `path` or, for earlier times, one beside it."""
    made = sha256(output) if output.exists() else ""
    for file in (path, kept(path, made)) if made else ():
        if file.exists():
            times = dict(mapping(read_json(file), str(file)))
            if times.pop("output_sha256", None) == made:
                return file, times
    return path, None


def kept(path: Path, output_sha256: str) -> Path:
    """Return the file for the times of an earlier output."""
    return path.with_name(f"{path.stem}-{re.sub('[^0-9a-f]', '', output_sha256)[:16]}.json")


def duration(seconds: float) -> str:
    """Return a time in its two largest units, for example `2 d 3 h`, `1 h 23 min` or `4 min 5 s`."""
    whole = round(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2])
