"""Gradient accumulation: a batch in parts that fit into memory, and in smaller ones once it turns out that they do not."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from transformer.config.reading import UserError
from transformer.data import Batches
from transformer.memory import out_of_memory

Result = TypeVar("Result")
Add = Callable[[np.ndarray, bool], None]


class Accumulation:
    """Takes batches part by part, each of at most `limit` tokens on either side; `limit` only ever falls."""

    def __init__(self, batches: Batches, limit: int, warn: Callable[[str], None]) -> None:
        self.batches, self.limit, self.warn = batches, limit, warn

    def run(self, numbers: np.ndarray, begin: Callable[[], None], add: Add) -> None:
        """Call `begin`, then `add` with each part of the batch `numbers`; where memory runs out, again by smaller parts.

        `begin` has to undo what `add` did, which is told whether a part is the last. Raises UserError where not even one pair fits.
        """
        limit = self.limit
        while (part := self.first_too_large(numbers, begin, add)) is not None:
            self.lower(part)
        if self.limit < limit:
            self.warn(f"out of memory: gradients are now summed over parts of at most {self.limit:,} tokens")

    def without_gradients(self, work: Callable[[int], Result]) -> Result:
        """`work` of the limit, by smaller ones where memory runs out; it needs less than a step, so it rarely does."""
        while True:
            try:
                return work(self.limit)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error) or self.limit == 1:
                    raise
            self.limit //= 2
            self.warn(f"out of memory: dev losses and gradients are now of at most {self.limit:,} tokens at a time")

    def first_too_large(self, numbers: np.ndarray, begin: Callable[[], None], add: Add) -> np.ndarray | None:
        begin()
        parts = list(self.batches.micro_batches(numbers, self.limit))
        for number, part in enumerate(parts, 1):
            try:
                add(part, number == len(parts))
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                return part
        return None

    def lower(self, part: np.ndarray) -> None:
        """Halve what did not fit. The error is gone by now, and with it the memory that its frames held."""
        source, target = (int(side[part].sum()) for side in (self.batches.source, self.batches.target))
        if len(part) == 1:
            raise UserError(
                f"out of memory on one pair of {source} source and {target} target pieces: "
                "lower training.max_length, or take a smaller model"
            )
        self.limit = max(source, target) // 2
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()  # pieces of the sizes before would be in the way
