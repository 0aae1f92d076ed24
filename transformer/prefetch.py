"""Batches made before they are asked for, while the processor would wait for the GPU."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetch(Generic[Item]):
    """`make(step)` for the step that is asked for, and by then begun for the `depth` steps behind it, in one thread.

    It is no state: any step may be asked for next. An error of `make` is raised where its step is asked for. The process
    ends when what was begun is made.
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
        """Give up what was not asked for."""
        self.thread.shutdown(cancel_futures=True)
