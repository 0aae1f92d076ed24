"""The progress of a running stage, as a bar on a terminal and as a file that other processes read.

DVC sets DVC_STAGE to the name of the stage. The bar then writes work/progress/STAGE.txt about once a second.
Snakemake's live line (screen.py) and `make status` read the file. A completed bar removes its file. The file of a
stopped stage remains and shows where the stage stopped.
"""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pipeline.running.times import duration

PLACES = Path("work/progress")
WARNING = "warning: "  # begins a line of a log that Snakemake's terminal repeats under the line of the stage


def place_of(stage: str, since: float = 0.0) -> str:
    """Return the progress of a stage, such as `step 420 of 1,200, loss 2.310, 5 s left`, if it was written after `since`.

    It is empty if the stage has no bar or has completed its bar.
    """
    return text_since(PLACES / f"{stage}.txt", since)


def text_since(path: Path, since: float) -> str:
    """Return the text of a file, or "" if there is none that was written at the time `since` or later."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_mtime >= since else ""
    except OSError:
        return ""


def say(text: str) -> None:
    """Write a line to standard error without breaking a bar, which is drawn on a terminal only.

    tqdm's `write` goes through its bars, and fails if one that nobody closed is collected meanwhile.
    """
    if sys.stderr.isatty():
        Progress.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Warn of something that only this machine has, and that is therefore in no output: one line on standard error."""
    say(f"{WARNING}{' '.join(text.split())}")


class Progress(tqdm):
    """A bar that is drawn on a terminal only and writes the stage's progress file. The arguments are those of tqdm."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        stage = os.environ.get("DVC_STAGE")
        self.place = PLACES / f"{stage}.txt" if stage else None
        self.drawn = sys.stderr.isatty()
        # The rate is that of the last minute, about. With tqdm's default, a pause of seconds makes hours of the time left.
        options |= {"mininterval": 1.0, "smoothing": 0.02, "file": None if self.drawn else io.StringIO()}
        super().__init__(*arguments, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the bar and write the progress file. tqdm calls this about once a second.

        The file is not synced and OSError is ignored, because no result depends on the file.
        """
        if self.drawn:
            super().display(msg, pos)
        if not self.place or msg is not None:
            return
        shown = self.format_dict
        rate = shown["rate"] or (shown["elapsed"] and (self.n - self.initial) / shown["elapsed"])
        left = f"{duration((self.total - self.n) / rate)} left" if rate and self.total is not None else ""
        text = ", ".join(filter(None, [self.desc.removesuffix(": "), self.reached(), str(self.postfix or ""), left]))
        with contextlib.suppress(OSError):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.place.with_name(f".{self.place.name}.partial")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.place)

    def reached(self) -> str:
        """Return a text such as `step 420 of 1,200` or `12.0 of 40.0 MB`."""
        numbers = [self.n] if self.total is None else [self.n, self.total]
        if self.unit == "B":
            return " of ".join(f"{number / 1e6:,.1f}" for number in numbers) + " MB"
        return f"{self.unit} " + " of ".join(f"{number:,}" for number in numbers)

    def close(self) -> None:
        super().close()
        if self.place and self.n == self.total:
            with contextlib.suppress(OSError):
                self.place.unlink(missing_ok=True)
