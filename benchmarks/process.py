"""A process of its own for each system of a benchmark."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

DEFAULT_SPINS = "300000"  # libgomp's default if there are no more threads than CPUs


class Process:
    """A new Python process, which calls functions of a module. Between the calls, the module's variables keep their values.

    With `ours`, OpenMP threads spin as long as in the stages; otherwise as long as GNU's OpenMP lets them by default.
    """

    def __init__(self, ours: bool) -> None:
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        before = os.environ["GOMP_SPINCOUNT"]  # set by the package transformer
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
