"""The terminal output of a workflow: one line for each finished stage, and a live line with the running stages.

`Screen` replaces Snakemake's own handler on its logger. A logger plug-in is not possible, because `snakemake --logger`
does not find plug-ins in an editable installation, and Snakemake refuses every command if a profile names a missing
plug-in. Snakemake's full log stays in .snakemake/log, and `snakemake --verbose` prints it.
"""

import contextlib
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from snakemake.logging import DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent

from pipeline.running.progress import WARNING, place_of, text_since
from pipeline.running.times import duration

LOGS = Path("work/logs")
LAST = 15  # lines of a log that are shown when its stage fails
BETWEEN = (60, 1800)  # without a terminal: first and maximum number of seconds between two lines about a stage
REDRAW = 0.5  # seconds
IN_SHORT = r"ERROR: failed to reproduce '.*': failed to run: "  # DVC's message, which follows the message of the stage
ALL = "all"  # the rule that depends on all stages and runs nothing
STOPPED = r"stopped by .*; the same command resumes"  # the last message of a training or search after a signal
# Snakemake's messages about a failed job. The log of the job states the cause.
IMPLIED = ("CalledProcessError in file", "Exiting because a job execution failed", "At least one job did not complete")


@dataclass
class Running:
    stage: str
    since: float = field(default_factory=time.time)
    due: float = BETWEEN[0]  # seconds after the start at which the next line about the stage is printed

    @property
    def seconds(self) -> float:
        return time.time() - self.since

    @property
    def path(self) -> Path:
        return LOGS / f"{self.stage}.log"

    def __str__(self) -> str:
        return f"{self.stage}: {place_of(self.stage, self.since) or duration(self.seconds)}"


class Screen(logging.Handler):
    """The logging handler that writes to the terminal.

    It calls `results` if there is nothing to do. After stages have run, `onsuccess` in the Snakefile calls the same
    function. `stale` returns the stages that DVC found stale, including those that are no targets. `warned` returns what
    a stage warns of by its counts. Warnings of this machine are in the log of the stage.
    """

    def __init__(
        self,
        results: Callable[[], None],
        stale: Callable[[], Collection[str]] = tuple,
        warned: Callable[[str], Iterable[str]] = lambda stage: (),
        stream: TextIO = sys.stderr,
    ) -> None:
        super().__init__(logging.INFO)
        self.results, self.stale, self.warned = results, stale, warned
        self.stream, self.formatter = stream, DefaultFormatter()
        self.live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.running: dict[int, Running] = {}
        self.total = self.done = 0
        self.stopping = False
        self.started, self.drawn = time.monotonic(), False
        self.ticker: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Call the method for the record's event, which determines the attributes that Snakemake adds to the record."""
        handlers: dict[Any, Callable[[logging.LogRecord], None]] = {
            LogEvent.RUN_INFO: self.planned,
            LogEvent.JOB_INFO: self.begun,
            LogEvent.JOB_FINISHED: self.finished,
            LogEvent.JOB_ERROR: self.broken,
        }
        handlers.get(getattr(record, "event", None), self.other)(record)

    def planned(self, record: Any) -> None:
        stages = [rule for rule in record.stats if rule not in (ALL, "total")]
        if not stages:  # as with --until, if only later stages are stale
            return self.nothing_to_do()
        kinds = Counter(stage.partition("@")[0] for stage in stages)
        names = [f"{number} {kind}" if number > 1 else kind for kind, number in kinds.items()]
        self.total = len(stages)
        self.say(f"{self.total} {'stage' if self.total == 1 else 'stages'} to do: {', '.join(names)}")
        self.say(f"Their output is in {LOGS}/. After a stop, the same command resumes.")

    def nothing_to_do(self) -> None:
        number = len(self.stale())
        others = f"the targets are up to date; {number} other stage{'s are' if number > 1 else ' is'} stale"
        self.say(f"Nothing to do: {others if number else 'every stage is up to date'}.")
        self.results()

    def begun(self, record: Any) -> None:
        if record.rule_name != ALL:
            self.running[record.jobid] = Running(record.rule_name)
        if not self.ticker:
            self.ticker = threading.Thread(target=self.tick, daemon=True)
            self.ticker.start()

    def finished(self, record: Any) -> None:
        job = self.running.pop(record.job_id, None)
        if job:  # not the rule ALL
            self.done += 1
            log = text_since(job.path, 0)
            note = "" if "Running stage" in log else " (not run: DVC has its result)"
            of_machine = [line.removeprefix(WARNING) for line in log.splitlines() if line.startswith(WARNING)]
            # If DVC cannot copy a folder into its cache, as on a full disk, it says so and records the stage all the same.
            not_cached = [line for line in log.splitlines() if line.startswith("ERROR: failed to transfer")]
            place = f"[{self.done:>{len(str(self.total))}}/{self.total}] "
            self.say(f"{place}{job.stage}  {duration(job.seconds)}{note}")
            for text in dict.fromkeys([*self.warned(job.stage), *of_machine, *not_cached[-1:]]):
                self.say(f"{'':{len(place)}}{text}")
            if self.done == self.total:
                self.say(f"Done in {duration(time.monotonic() - self.started)}.")

    def broken(self, record: Any) -> None:
        job = self.running.pop(record.jobid, None)
        if job:
            log = text_since(job.path, job.since)  # an executor can fail before the stage writes one
            lines = [line for line in log.splitlines() if line and not re.match(IN_SHORT, line)]
            stopped = self.stopping or (lines and re.match(STOPPED, lines[-1]))
            said = f"{job.stage} {'stopped' if stopped else 'failed'} after {duration(job.seconds)}."
            if record.rule_msg:  # a message of the executor, for example of sbatch
                said = f"{said}\n{record.rule_msg.strip()}"
            if lines:
                said = f"{said} The end of {job.path}:"
            self.say("\n".join([said, *lines[-LAST:]]))

    def other(self, record: logging.LogRecord) -> None:
        """Print warnings and errors, except IMPLIED. Some of Snakemake's messages are worded for users of this project."""
        text = self.format(record)
        if text.startswith("Nothing to be done"):
            self.nothing_to_do()
        elif text.startswith("Terminating processes on user request"):
            self.stopping = True
            self.say("Stopping what is running. A training saves its state first.")
        elif missing := re.match(r"MissingRuleException:\s+No rule to produce (\S+)", text):
            self.say(f"{missing[1]} is not a stage of dvc.yaml; `snakemake --list` lists the stages.")
        elif record.levelno >= logging.WARNING and text and not any(implied in text for implied in IMPLIED):
            self.say(text)

    def say(self, text: str) -> None:
        """Write `text` in place of the live line. The next tick draws the live line again."""
        if self.drawn:
            self.stream.write("\r\x1b[2K")
            self.drawn = False
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def tick(self) -> None:
        while True:
            time.sleep(REDRAW)
            with self.lock or contextlib.nullcontext():
                self.draw() if self.live else self.report_places()

    def draw(self) -> None:
        if self.running:
            columns = shutil.get_terminal_size().columns
            line = "   ".join(map(str, self.running.values()))
            line = line if len(line) < columns else f"{line[: columns - 4]}..."
            self.stream.write(f"\r\x1b[2K{line}")
            self.stream.flush()
            self.drawn = True

    def report_places(self) -> None:
        """Print a line for each stage after 1, 2, 4, 8, 16 and 32 minutes, and then every half hour."""
        for job in self.running.values():
            if job.seconds >= job.due:
                self.say(str(job))
                job.due = job.seconds + min(max(job.seconds, BETWEEN[0]), BETWEEN[1])


def take_over(logger: logging.Logger, screen: Screen) -> None:
    """Replace Snakemake's handler for the terminal. A logger plug-in that the user has chosen is not replaced."""
    logging.raiseExceptions = False  # on a full disk, each message for Snakemake's log file would print a traceback
    for handler in list(logger.handlers):
        if handler.name == "DefaultStreamHandler":
            logger.removeHandler(handler)
            logger.addHandler(screen)
            screen.say("Asking DVC what is stale.")
