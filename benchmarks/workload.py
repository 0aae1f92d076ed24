"""What trainers are compared on: as many pairs as WMT14 EN-DE has, sentences as long as its, of random pieces."""

import numpy as np

WMT14_EN_DE = 4_500_000


class LogNormalPairs:
    """Lengths as after BPE: log-normal, mean 27. Few pairs would be of less similar lengths in a batch, and pad more."""

    def __init__(self, vocabulary: int, pairs: int = WMT14_EN_DE) -> None:
        random = np.random.default_rng(1)
        source = np.clip(random.lognormal(3.1, 0.6, pairs), 3, 200)
        target = np.clip(source * random.lognormal(0.05, 0.2, pairs), 3, 200)
        self.vocabulary, self.sides = vocabulary, (source.astype(np.int64), target.astype(np.int64))

    def __len__(self) -> int:
        return len(self.sides[0])

    def lengths(self, side: str) -> np.ndarray:
        return self.sides[side == "target"]

    def pair(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Drawn when it is asked for, and the same each time."""
        random = np.random.default_rng([1, number])
        source, target = (random.integers(4, self.vocabulary, lengths[number]) for lengths in self.sides)
        return source, target
