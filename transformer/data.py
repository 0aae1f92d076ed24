"""Batches (section 5.1): pairs of similar length together, about N source and N target tokens each.

A batch is an array of pair numbers and does not depend on the layout (layout.py). It is a function of the seed and the
step, so a training needs only its step to resume exactly.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from transformer.layout import Pairs, split
from transformer.prefetch import Prefetch


class Batches:
    """The batches of a training, one a step.

    An epoch takes every pair once. Pairs are sorted by length. For each epoch, the order of equally long pairs and the
    order of the batches are drawn anew. The sequence of lengths is therefore the same in every epoch, batches are cut
    at the same places, and one division finds the batch of a step.
    """

    def __init__(self, pairs: Pairs, seed: int, batch_tokens: int, max_length: int) -> None:
        self.pairs, self.seed = pairs, seed
        # Lengths include EOS, which is read and predicted like any other piece.
        self.source, self.target = (pairs.lengths(side).astype(np.int64) + 1 for side in ("source", "target"))
        self.used = np.flatnonzero((self.source <= max_length) & (self.target <= max_length))
        self.left_out = len(pairs) - len(self.used)
        # Sorting takes seconds for millions of pairs, so the next epoch is ordered during this one.
        self.epoch, self.orders = -1, Prefetch(self.ordered, 1)
        if len(self.used):
            in_order = self.used[self.by_length(np.zeros(len(self.used)))]
            self.starts = split(self.source[in_order], self.target[in_order], batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.starts) - 1 if len(self.used) else 0

    def batch(self, step: int) -> np.ndarray:
        """Pair numbers of the batch for `step`, which counts from 0."""
        epoch, place = divmod(step, len(self))
        if epoch != self.epoch:
            self.epoch, (self.order, self.places) = epoch, self.orders(epoch)
        start, stop = self.starts[self.places[place] : self.places[place] + 2]
        return self.order[start:stop]

    def ordered(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs in the order of length, and the order of the batches."""
        random = np.random.default_rng([self.seed, epoch])
        order = self.used[self.by_length(random.random(len(self.used)))]
        return order, random.permutation(len(self))

    def by_length(self, tie_break: np.ndarray) -> np.ndarray:
        """The order by source length in bands of 10%, then by target length, so that both sides need little padding."""
        source, target = self.source[self.used], self.target[self.used]
        bands = np.floor(np.log(source) / np.log(1.1))
        return np.lexsort((tie_break, source, target, bands))

    def micro_batches(self, numbers: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
        """The batch in parts of at most `tokens` source and `tokens` target tokens."""
        starts = split(self.source[numbers], self.target[numbers], tokens)
        return (numbers[start:stop] for start, stop in pairwise(starts))

    def sums(self, numbers: np.ndarray) -> dict[str, int]:
        """What counting operations needs: the tokens of each side, and the products of lengths that attention costs."""
        source, target = self.source[numbers], self.target[numbers]
        return {
            "source_tokens": int(source.sum()),
            "target_tokens": int(target.sum()),
            "source_squared": int((source**2).sum()),
            "target_squared": int((target**2).sum()),
            "source_target": int((source * target).sum()),
        }


def in_order(
    pairs: Pairs,
    batch_tokens: int,
    share: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda numbers, sizes: numbers,
) -> Iterator[np.ndarray]:
    """Each pair once, longest last, in batches of at most `batch_tokens` on either side; for dev losses.

    Each of several workers divides its share of the pairs, because `batch_tokens` may differ between workers.
    """
    source, target = (pairs.lengths(side).astype(np.int64) + 1 for side in ("source", "target"))
    order = np.lexsort((source, target))
    order = share(order, source[order] + target[order])
    starts = split(source[order], target[order], batch_tokens)
    return (order[start:stop] for start, stop in pairwise(starts))
