"""The progress of a running stage, as a bar on a terminal and as a file that other processes read.

DVC sets DVC_STAGE to the name of the stage. The bar then writes work/progress/STAGE.json about once a second.
Snakemake's live line (screen.py) and `make status` read the file. A completed bar removes its file. The file of a
stopped stage remains and shows where the stage stopped.
"""

import contextlib
import io
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pipeline.workflow.times import duration

PLACES = Path("work/progress")


@dataclass(frozen=True)
class Place:
    """The progress of a task of a stage. `left` is the remaining time in seconds. `total` and `left` may be unknown."""

    when: float  # the time of writing, in seconds since 1970
    task: str
    unit: str
    done: float
    total: float | None
    left: float | None
    note: str

    def reached(self) -> str:
        """Return a text such as `step 420 of 1,200` or `12.0 of 40.0 MB`."""
        if self.unit == "B":
            numbers = [self.done / 1e6, *([] if self.total is None else [self.total / 1e6])]
            return " of ".join(f"{number:,.1f}" for number in numbers) + " MB"
        return f"{self.unit} {self.done:,}" + ("" if self.total is None else f" of {self.total:,}")

    def __str__(self) -> str:
        left = "" if self.left is None else f"{duration(self.left)} left"
        return ", ".join(filter(None, [self.task, self.reached(), self.note, left]))


def place_of(stage: str) -> Place | None:
    """Return the progress of a running or stopped stage. None if the stage has no bar or has completed its bar."""
    try:
        return Place(**json.loads((PLACES / f"{stage}.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


class Progress(tqdm):
    """A bar that is drawn on a terminal only and writes the stage's progress file. The arguments are those of tqdm."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        stage = os.environ.get("DVC_STAGE")
        self.place = PLACES / f"{stage}.json" if stage else None
        self.drawn = sys.stderr.isatty()
        # The rate is that of the last minute, about. With tqdm's default, a pause of seconds makes hours of the time left.
        options |= {"mininterval": 1.0, "smoothing": 0.02, "file": None if self.drawn else io.StringIO()}
        super().__init__(*arguments, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the bar and write the progress file. tqdm calls this about once a second."""
        if self.drawn:
            super().display(msg, pos)
        if self.place and msg is None:
            self.write_place(self.place)

    def write_place(self, path: Path) -> None:
        """Write the progress to `path`. The file is not synced and OSError is ignored: no result depends on the file."""
        shown = self.format_dict
        rate = shown["rate"] or (shown["elapsed"] and (self.n - self.initial) / shown["elapsed"])
        left = (self.total - self.n) / rate if rate and self.total is not None else None
        task, note = self.desc.removesuffix(": "), str(self.postfix or "")
        place = Place(time.time(), task, self.unit, self.n, self.total, left, note)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.partial")
            temporary.write_text(json.dumps(asdict(place)), encoding="utf-8")
            temporary.replace(path)

    def close(self) -> None:
        super().close()
        if self.place and self.n == self.total:
            with contextlib.suppress(OSError):
                self.place.unlink(missing_ok=True)
