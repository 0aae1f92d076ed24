"""The times of a stage and the hardware it ran on, in files that neither DVC nor git tracks: work/times/.

Outputs that DVC tracks do not contain times, so equal results have equal outputs. A times file records the sha256 of
the output that it belongs to, so its times are not shown for another output. The times of earlier outputs are kept,
because DVC can restore these outputs, for example after a change of branch.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.config.reading import UserError, convert
from transformer.files import read_json, sha256, write_json


def write_times(path: Path, output: Path, times: Mapping[str, Any]) -> None:
    """Write the times of the stage that made the file `output`. Those of other outputs are kept under `earlier`."""
    made, earlier = sha256(output), {}
    with contextlib.suppress(UserError):  # a damaged file has no times to keep
        earlier = {key: each for key, each in known_times(path).items() if key not in ("", made)}
    write_json(path, {**times, "output_sha256": made, "earlier": earlier})


def read_times(path: Path, output: Path) -> dict[str, Any] | None:
    """Return the times of the stage that made the file `output`, or None if there are none for its content."""
    return known_times(path).get(sha256(output)) if output.exists() else None


def known_times(path: Path) -> dict[str, dict[str, Any]]:
    """Return the times in a file by the sha256 of the output to which they belong."""
    newest = convert(dict[str, Any], read_json(path), str(path)) if path.exists() else {}
    return {
        **convert(dict[str, Any], newest.pop("earlier", {}), f"{path}: earlier"),
        newest.pop("output_sha256", ""): newest,
    }


def duration(seconds: float) -> str:
    """Return a time in its two largest units, for example `2 d 3 h`, `1 h 23 min` or `4 min 5 s`."""
    whole = round(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2])
