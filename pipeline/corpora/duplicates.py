"""De-duplication in little memory: finds the pairs that occurred earlier in the corpus."""

import hashlib
from collections.abc import Sequence

import numpy as np


class Seen:
    """The pairs seen so far, as 64-bit digests in sorted arrays: 8 bytes per pair, and up to 16 during a merge.

    Two different pairs with the same digest would count as equal. Among 40 million pairs, the probability that this
    happens at all is 4 in 100,000.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []  # each is at least twice as long as the next

    def new(self, sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
        """Return a Boolean array: True for a pair that occurs neither earlier in this call nor in an earlier call."""
        digests = np.array([digest(*pair) for pair in zip(sources, targets, strict=True)], dtype=np.uint64)
        distinct, first = np.unique(digests, return_index=True)
        fresh = np.ones(len(distinct), dtype=bool)
        for array in self.arrays:
            place = np.minimum(np.searchsorted(array, distinct), len(array) - 1)
            fresh &= array[place] != distinct
        self.add(distinct[fresh])
        result = np.zeros(len(digests), dtype=bool)
        result[first[fresh]] = True
        return result

    def add(self, digests: np.ndarray) -> None:
        if not len(digests):
            return
        self.arrays.append(digests)
        while len(self.arrays) > 1 and len(self.arrays[-2]) < 2 * len(self.arrays[-1]):
            merged = np.concatenate([self.arrays.pop(), self.arrays.pop()])
            merged.sort()
            self.arrays.append(merged)


def digest(source: str, target: str) -> int:
    both = f"{source}\n{target}".encode()
    return int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "little")
