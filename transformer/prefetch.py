"""Prepares batches, and the order of an epoch, in a thread while the training thread waits for the device."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """Calling it with a step returns `make(step)`, and starts `make` for the next `depth` steps in one thread.

    Any step may be requested next. An exception of `make` is raised by the call for its step. At exit the process waits
    until the calls of `make` that have been submitted end.
    """

    def __init__(self, make: Callable[[int], Item], depth: int) -> None:
        self.make, self.depth = make, depth
        self.thread = ThreadPoolExecutor(1, "prefetch")
        self.made: dict[int, Future[Item]] = {}

    def __call__(self, step: int) -> Item:
        coming = range(step, step + 1 + self.depth)
        for other in self.made.keys() - set(coming):
            self.made.pop(other).cancel()
        for number in coming:
            if number not in self.made:
                self.made[number] = self.thread.submit(self.make, number)
        return self.made.pop(step).result()

    def close(self) -> None:
        """Cancel the steps that have not been started, and wait for the one that has."""
        self.thread.shutdown(cancel_futures=True)
