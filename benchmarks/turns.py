"""Systems that take turns, each in a process of its own."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from operator import truediv
from typing import Any, NamedTuple
from unittest.mock import patch

# How often a waiting thread of OpenMP spins: ours as in the stages, those of other libraries as libgomp's default, if
# there are no more threads than CPUs.
SPINS = {True: os.environ["GOMP_SPINCOUNT"], False: "300000"}

Turn = Callable[[], tuple[int, Any]]
"""Takes one turn. Returns the number of tokens that it processed, and its result."""


class Entrant(NamedTuple):
    """A system: whether it is ours, what makes its turn of which argument, and the variables of its process.

    One of others may fail at its start, for example if its library is not installed.
    """

    ours: bool
    make: Callable[..., Turn]
    argument: Any
    variables: Mapping[str, str] = {}


class Turns(NamedTuple):
    """Of each system by its name: tokens per second in each round, the result of the last round, or why it cannot run."""

    speeds: dict[str, list[float]]
    results: dict[str, Any]
    reasons: dict[str, str]

    def speed(self, name: str) -> str:
        return f"{statistics.median(self.speeds[name]):,.0f}"

    def ratio(self, name: str, other: str) -> str:
        """The speed of `name` divided by that of `other`, as the median over the rounds."""
        return f"{statistics.median(map(truediv, self.speeds[name], self.speeds[other])):.2f}"


turn: Turn  # of this process


def begin(make: Callable[..., Turn], *arguments: Any) -> None:
    """Make what takes the turns of this process, and let it take one to warm up."""
    global turn
    turn = make(*arguments)
    turn()


def timed() -> tuple[float, Any]:
    """Take a turn in this process. Returns its tokens per second, and its result."""
    started = time.perf_counter()
    tokens, result = turn()
    return tokens / (time.perf_counter() - started), result


def take_turns(systems: Mapping[str, Entrant], rounds: int) -> Turns:
    """Let the systems take turns."""
    turns = Turns({}, {}, {})
    processes: dict[str, ProcessPoolExecutor] = {}
    with ExitStack() as stack:
        for name, (ours, make, argument, variables) in systems.items():
            process = stack.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
            try:  # libraries read the variables at the start of the process
                with patch.dict(os.environ, variables, GOMP_SPINCOUNT=SPINS[ours]):
                    process.submit(begin, make, argument).result()
                processes[name], turns.speeds[name] = process, []
            except Exception as error:  # a failure of another library must not hide the other rows
                if ours:
                    raise
                turns.reasons[name] = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        for _ in range(rounds):
            for name, process in processes.items():
                speed, turns.results[name] = process.submit(timed).result()
                turns.speeds[name].append(speed)
    return turns
