"""Training data for benchmarks: random pieces, or a smaller corpus repeated; by default as many pairs as WMT14 EN-DE."""

import numpy as np

from transformer.batch import Pairs

WMT14_EN_DE = 4_500_000


class LogNormalPairs:
    """Pairs with log-normal lengths of mean 27, as after BPE. With few pairs, batches would need more padding."""

    def __init__(self, vocabulary: int, pairs: int = WMT14_EN_DE) -> None:
        random = np.random.default_rng(1)
        source = np.clip(random.lognormal(3.1, 0.6, pairs), 3, 200)
        target = np.clip(source * random.lognormal(0.05, 0.2, pairs), 3, 200)
        self.vocabulary, self.sides = vocabulary, (source.astype(np.int64), target.astype(np.int64))

    def __len__(self) -> int:
        return len(self.sides[0])

    def lengths(self, side: str) -> np.ndarray:
        return self.sides[side == "target"]

    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids are drawn at each call. They depend only on the number of the pair and the side."""
        second, lengths = side == "target", self.lengths(side)[numbers]
        drawn = (
            np.random.default_rng([1, number, second]).integers(4, self.vocabulary, length)
            for number, length in zip(numbers, lengths)
        )
        return np.concatenate([*drawn]), lengths


class Repeated:
    """A corpus, repeated to `pairs` pairs. By default, an epoch has as many different batches as that of WMT14 EN-DE."""

    def __init__(self, corpus: Pairs, pairs: int = WMT14_EN_DE) -> None:
        self.corpus, self.pairs = corpus, pairs

    def __len__(self) -> int:
        return self.pairs

    def lengths(self, side: str) -> np.ndarray:
        return np.resize(self.corpus.lengths(side), self.pairs)

    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.corpus.sentences(side, numbers % len(self.corpus))
