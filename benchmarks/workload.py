"""What trainers are compared on: sentences as long as WMT14's, of random pieces."""

import numpy as np


class LogNormalPairs:
    """Random pieces in sentences as long as WMT14's after BPE: log-normal, mean 27."""

    def __init__(self, pairs: int, vocabulary: int) -> None:
        random = np.random.default_rng(1)
        source = np.clip(random.lognormal(3.1, 0.6, pairs), 3, 200)
        target = np.clip(source * random.lognormal(0.05, 0.2, pairs), 3, 200)
        sides = (source.astype(int), target.astype(int))
        self.sides = [[random.integers(4, vocabulary, n) for n in side] for side in sides]

    def __len__(self) -> int:
        return len(self.sides[0])

    def lengths(self, side: str) -> np.ndarray:
        return np.array([len(ids) for ids in self.sides[side == "target"]])

    def pair(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        return self.sides[0][number], self.sides[1][number]
