"""Gradient accumulation: a batch is computed in parts. The parts become smaller if memory runs out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from transformer.config.reading import UserError
from transformer.data import Batches
from transformer.layout import Batch
from transformer.memory import enough_memory, out_of_memory, release_cached
from transformer.store import TrainingState

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parts:
    """The pairs `numbers` of a batch, divided by `Batches.micro_batches` with this `limit`.

    `parts` has the pair numbers and the tensors of each part.
    """

    numbers: np.ndarray
    limit: int
    parts: list[tuple[np.ndarray, Batch]]


class Accumulation:
    """Divides batches into `Parts` with the limit `state.micro_batch_tokens`. Lowers the limit if memory runs out."""

    def __init__(
        self,
        batches: Batches,
        lay_out: Callable[[np.ndarray, int], Batch],
        state: TrainingState,
        warn: Callable[[str], None],
        release: Callable[[], bool] = lambda: False,
    ) -> None:
        """`release` is called when memory has run out. If it returns True, it has freed memory, and the limit stays."""
        self.batches, self.lay_out, self.state, self.warn, self.release = batches, lay_out, state, warn, release

    @property
    def limit(self) -> int:
        return self.state.micro_batch_tokens

    def divide(self, numbers: np.ndarray) -> Parts:
        limit = self.limit  # read once: the prefetch thread calls this while a step may lower the limit
        with enough_memory("for the next batches", "lower training.batch_tokens"):
            parts = [(part, self.lay_out(part, limit)) for part in self.batches.micro_batches(numbers, limit)]
        return Parts(numbers, limit, parts)

    def run(self, given: Parts, begin: Callable[[], None], add: Callable[[Batch, bool], None]) -> None:
        """Call `begin`, then `add(part, last)` for each part. `last` is True for the last part.

        If memory runs out, repeat this with smaller parts. `begin` must discard the sums of earlier calls of `add`.
        Raises UserError if memory does not suffice for the smallest part, which is one pair or one row of packed pairs.
        """
        before = self.limit
        parts = given if given.limit == before else self.divide(given.numbers)
        while (failed := self.add_all(parts, begin, add)) is not None:
            if not self.release():
                self.lower(failed)
            parts = self.divide(given.numbers)
        self.tell_if_lowered(before)

    def without_gradients(self, work: Callable[[int], Result]) -> Result:
        """Return `work(limit)`, called again with half the limit each time memory runs out.

        Memory rarely runs out here, because a training step needs more than `work`. Raises UserError if memory runs out
        at a limit of 1.
        """
        before = self.limit
        while True:
            try:
                result = work(self.limit)
                break
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            if self.limit == 1:
                raise UserError("out of memory in the dev loss, one pair at a time: take a smaller model")
            if not self.release():
                self.state.micro_batch_tokens //= 2
        self.tell_if_lowered(before)
        return result

    def tell_if_lowered(self, before: int) -> None:
        if self.limit < before:
            self.warn(f"out of memory: micro-batches now have at most {self.limit:,} tokens")

    def add_all(self, given: Parts, begin: Callable[[], None], add: Callable[[Batch, bool], None]) -> np.ndarray | None:
        """Call `begin`, then `add` with each part. Return the numbers of the part for which memory ran out, or None."""
        begin()
        for place, (numbers, batch) in enumerate(given.parts, 1):
            try:
                add(batch, place == len(given.parts))
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                return numbers
        return None

    def lower(self, failed: np.ndarray) -> None:
        """Lower the limit to half the size of the failed part. Raises UserError if the failed part cannot be divided."""
        release_cached()  # cached blocks of the old sizes would fragment the memory
        limit = self.batches.halved(failed, self.limit)
        if limit is None:
            source, target = (int(side[failed].sum()) for side in (self.batches.source, self.batches.target))
            what = "one pair" if len(failed) == 1 else f"one row of {len(failed)} pairs"
            raise UserError(
                f"out of memory on {what} of {source} source and {target} target pieces: "
                "lower training.max_length, or take a smaller model"
            )
        self.state.micro_batch_tokens = limit
