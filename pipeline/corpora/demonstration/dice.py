"""Random choices that depend only on the seed, not on the version of Python."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Random choices made with Random.random(), the only method whose sequence Python guarantees for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def below(self, bound: int) -> int:
        return int(self.random() * bound)

    def choose(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def weigh(self, table: Sequence[tuple[int, Item]]) -> Item:
        """Draw an item from `table`, a list of pairs of an integer weight and an item."""
        left = self.below(sum(weight for weight, _ in table))
        for weight, item in table:
            left -= weight
            if left < 0:
                return item
        raise AssertionError("the weights add up to less than 1")
