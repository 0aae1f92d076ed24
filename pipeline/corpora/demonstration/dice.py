"""Choices that come out the same for a seed in every version of Python."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Choices from Random.random() alone: the one method whose sequence Python promises to keep for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def below(self, bound: int) -> int:
        return int(self.random() * bound)

    def choose(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def weigh(self, table: Sequence[tuple[int, Item]]) -> Item:
        """An item of a table of whole weights and items."""
        left = self.below(sum(weight for weight, _ in table))
        for weight, item in table:
            left -= weight
            if left < 0:
                return item
        raise AssertionError("weights below 1")
