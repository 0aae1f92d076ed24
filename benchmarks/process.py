"""A process of its own for each system of a benchmark."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


class Process:
    """A new Python process, which calls functions of a module. What one call leaves in the module, the next one finds."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of the function. Raises what it raises."""
        return self.pool.submit(function, *arguments).result()

    def end(self) -> None:
        self.pool.shutdown()
