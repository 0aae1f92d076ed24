"""Sentence pairs in memory, with the methods of a binarised set."""

import numpy as np


class Listed:
    """The pairs of these two lists of ids."""

    def __init__(self, source, target):
        self.sides = [source, target]

    def __len__(self):
        return len(self.sides[0])

    def lengths(self, side):
        return np.array([len(ids) for ids in self.sides[side == "target"]])

    def pair(self, number):
        return self.sides[0][number], self.sides[1][number]

    def sentences(self, side, numbers):
        chosen = [self.sides[side == "target"][number] for number in numbers]
        return np.concatenate(chosen), np.array([len(ids) for ids in chosen])


class Pairs(Listed):
    """Random pairs."""

    def __init__(self, number=500, longest=30, seed=0):
        random = np.random.default_rng(seed)
        super().__init__(*([random.integers(4, 90, n) for n in random.integers(1, longest, number)] for _ in range(2)))
