"""A separate process for one system, or for all systems, of a benchmark."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

DEFAULT_SPINS = "300000"  # libgomp's default if there are no more threads than CPUs


class Process:
    """A new Python process that calls the functions passed to `do`. Module variables keep their values between the calls.

    If `ours`, a waiting OpenMP thread spins as often as in the stages, otherwise for libgomp's default time.
    """

    def __init__(self, ours: bool) -> None:
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        before = os.environ["GOMP_SPINCOUNT"]  # set by pipeline/__init__.py
        os.environ["GOMP_SPINCOUNT"] = before if ours else DEFAULT_SPINS
        try:
            self.do(int)  # starts the process, with a copy of this environment
        finally:
            os.environ["GOMP_SPINCOUNT"] = before

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of the function, called in the process. Raises the exception of the function."""
        return self.pool.submit(function, *arguments).result()

    def close(self) -> None:
        self.pool.shutdown()
