"""Batches of about `batch_tokens` tokens a side: of pairs of similar length (section 5.1), or of all lengths.

A batch is an array of pair numbers. It is a function of the seed and the step, so a training needs only its step to
resume exactly. `Prefetch` prepares batches, and the order of an epoch, while the training thread waits for the device.

Shapes: P pairs, Q pools of pairs.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from transformer.batch import Batch, Pairs
from transformer.layout import Layout, rounded_up, split, tabled

WIDTH_STEP = 16  # the width of a table is a multiple of this
USUAL = 0.995  # the fraction of the pairs that fit into tables of the usual width
POOL = 1000  # pairs that are put into rows together; a larger pool takes longer and fills the rows no better
POOLS = 300  # pools that first_fit fills at a time

Item = TypeVar("Item")


class Batches:
    """The batches of a training, one a step, of pairs of similar length.

    An epoch takes every pair once, except pairs with more than `max_length` tokens on a side. Pairs are sorted by length.
    For each epoch, the order of equally long pairs and the order of the batches are drawn anew. The sorted lengths are
    therefore the same in every epoch, and batches are cut at the same places.

    With BPE-dropout, `pairs` has the training text in several `segmentations`, one after the other. Epoch e takes the
    pairs of segmentation e modulo `segmentations`. Each segmentation has its own lengths and its own cuts.
    """

    def __init__(self, pairs: Pairs, seed: int, batch_tokens: int, max_length: int, segmentations: int = 1) -> None:
        self.pairs, self.seed, self.batch_tokens = pairs, seed, batch_tokens
        # Lengths include EOS, which is read and predicted like any other piece.
        self.source, self.target = (pairs.lengths(side) + 1 for side in ("source", "target"))
        self.used = np.flatnonzero((self.source <= max_length) & (self.target <= max_length))
        self.left_out = round((len(pairs) - len(self.used)) / segmentations)  # in an epoch, on average
        # Sorting takes seconds for millions of pairs, so the next epoch is ordered during this one.
        self.epoch, self.orders = -1, Prefetch(self.ordered, 1)
        self.segmentations: list[tuple[np.ndarray, ...]] = []  # the pairs of each, their ranks, and the result of `cut`
        if len(self.used):
            starts = np.arange(1, segmentations) * (len(pairs) // segmentations)
            for used in np.split(self.used, self.used.searchsorted(starts)):
                rank_P = self.by_length(used)
                in_order = used[np.argsort(rank_P, kind="stable")]
                self.segmentations.append((used, rank_P, *self.cut(self.source[in_order], self.target[in_order])))
        self.ends = np.cumsum([len(starts) - 1 for *_, starts in self.segmentations])  # batches up to the end of each

    def cut(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Divide sorted pairs with these lengths into batches. Return two arrays.

        The first array holds the places of the pairs in the sorted order, batch after batch. The second array holds the
        index at which each batch starts in the first array, followed by the number of pairs.
        """
        return np.arange(len(source)), split(source, target, self.batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch; the mean, rounded up, where there are several segmentations."""
        return -(-int(self.ends[-1]) // len(self.ends)) if len(self.used) else 0

    def batch(self, step: int) -> np.ndarray:
        """Pair numbers of the batch for `step`, which counts from 0."""
        cycle, place = divmod(step, int(self.ends[-1]))
        segmentation = int(self.ends.searchsorted(place, "right"))
        epoch = cycle * len(self.ends) + segmentation
        if epoch != self.epoch:
            self.epoch, self.batches = epoch, self.orders(epoch)
        return self.batches[place - self.ends[segmentation]]  # counted back from the last one

    def ordered(self, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch: its pairs, arranged as `cut` arranged the sorted pairs."""
        random = np.random.default_rng([self.seed, epoch])
        used, rank_P, arrangement, starts = self.segmentations[epoch % len(self.segmentations)]
        shuffled = np.argsort(random.random(len(used)), kind="stable")
        in_order = shuffled[np.argsort(rank_P[shuffled], kind="stable")]
        arranged = used[in_order][arrangement]
        return [arranged[starts[number] : starts[number + 1]] for number in random.permutation(len(starts) - 1)]

    def by_length(self, used: np.ndarray) -> np.ndarray:
        """The rank of each pair in `used`, by source length in bands of 10%, then target length, then source length.

        Equally long pairs have equal ranks. Sorted by rank, both sides of a batch need little padding. Ranks are small
        numbers, which numpy sorts faster than several keys.
        """
        source, target = self.source[used], self.target[used]
        bands = np.floor(np.log(source) / np.log(1.1)).astype(np.int64)
        size = max(source.max(initial=0), target.max(initial=0)) + 1
        key_P = (bands * size + target) * size + source
        distinct = np.unique(key_P)
        return distinct.searchsorted(key_P).astype(np.min_scalar_type(len(distinct)))

    def micro_batches(self, numbers: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
        """The batch in parts of at most `tokens` source and `tokens` target tokens, or of one longer pair."""
        starts = split(self.source[numbers], self.target[numbers], tokens)
        return (numbers[start:stop] for start, stop in pairwise(starts))

    def lay_out(self, numbers: np.ndarray, tokens: int, layout: Layout) -> Batch:
        """The tensors of a part that `micro_batches` made for the same number of `tokens`."""
        return layout(self.pairs, numbers)

    def sums(self, numbers: np.ndarray) -> dict[str, int]:
        """The tokens of each side and the sums of products of lengths, from which flops.py counts the operations."""
        source, target = self.source[numbers], self.target[numbers]
        return {
            "source_tokens": int(source.sum()),
            "target_tokens": int(target.sum()),
            "source_squared": int(source @ source),
            "target_squared": int(target @ target),
            "source_target": int(source @ target),
        }


class MixedBatches(Batches):
    """The batches of a training, one a step, of pairs of all lengths: most batches are tables of one shape.

    On a CPU in bfloat16, each new shape costs time, because oneDNN plans its kernels for each shape.

    The rows are composed once: first-fit decreasing puts pairs that are drawn at random into rows, and rows that are
    drawn at random form a batch. Each epoch puts other pairs of the same lengths into these rows. The few pairs that are
    longer than the usual width have batches of their own, in tables as wide as the longest pair needs.

    A table holds a whole batch if the batch has at most `micro_batch_tokens` positions. Otherwise the batch is divided into
    parts of equal size, and a table holds one part. A table has at least one row. With several workers, a worker's share
    of a batch fills its tables only if `micro_batch_tokens` is at most that share.
    """

    @cached_property
    def widths(self) -> tuple[int, int]:
        """The usual width of a table, and the width for the longest pairs."""
        longest = np.maximum(self.source, self.target)[self.used]
        lengths = int(np.quantile(longest, USUAL, method="higher")), int(longest.max())
        usual, widest = (max(length, min(rounded_up(length, WIDTH_STEP), self.batch_tokens)) for length in lengths)
        return usual, widest

    def rows(self, width: int) -> int:
        """The rows of a batch of this width."""
        return max(1, self.batch_tokens // width)

    def cut(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # numpy pads seeds with zeros: a lone seed would give the stream of epoch 0.
        random, longest = np.random.default_rng([self.seed, 0, 1]), np.maximum(source, target)
        arrangement, starts = np.empty(0, np.int64), np.zeros(1, np.int64)
        for width, kind in zip(self.widths, (longest <= self.widths[0], longest > self.widths[0])):
            places = random.permutation(np.flatnonzero(kind))
            row_P = filled(source[places], target[places], width)
            count = row_P.max(initial=-1) + 1
            row_P = random.permutation(count)[row_P]
            ends = np.cumsum(np.bincount(row_P, minlength=1))
            batches = -(-count // self.rows(width))
            last_rows = count * np.arange(1, batches + 1) // max(1, batches) - 1  # batches differ by at most one row
            starts = np.append(starts, len(arrangement) + ends[last_rows])
            arrangement = np.append(arrangement, places[np.argsort(row_P, kind="stable")])
        return arrangement, starts

    def shape(self, numbers: np.ndarray, tokens: int) -> tuple[int, int]:
        """The rows and the width of the tables for the pairs `numbers`: at most `tokens` positions, or one row."""
        longest = max(self.source[numbers].max(initial=0), self.target[numbers].max(initial=0))
        usual, widest = self.widths
        width = usual if longest <= usual else widest
        parts = -(-self.rows(width) // max(1, tokens // width))
        return -(-self.rows(width) // parts), width

    def micro_batches(self, numbers: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
        """The batch in parts. Each part has as many rows as a table; the last part may have fewer."""
        rows, width = self.shape(numbers, tokens)
        starts = split(self.source[numbers], self.target[numbers], min(width, tokens))
        return (numbers[start:stop] for start, stop in pairwise([*starts[:-1:rows], len(numbers)]))

    def lay_out(self, numbers: np.ndarray, tokens: int, layout: Layout) -> Batch:
        """As in `Batches`, but always in tables. `layout` is not used."""
        return tabled(self.pairs, numbers, *self.shape(numbers, tokens))


def filled(source_P: np.ndarray, target_P: np.ndarray, width: int) -> np.ndarray:
    """The row of each pair: `first_fit` of `POOL` pairs at a time."""
    number, more = len(source_P), -len(source_P) % POOL  # empty pairs, in the first row of the last pool
    source_QP, target_QP = (np.pad(side, (0, more)).reshape(-1, POOL) for side in (source_P, target_P))
    row_QP = np.empty(source_QP.shape, np.int64)
    for start in range(0, len(row_QP), POOLS):
        pools = slice(start, start + POOLS)
        row_QP[pools] = first_fit(source_QP[pools], target_QP[pools], width)
    rows_Q = row_QP.max(1) + 1
    return (row_QP + (np.cumsum(rows_Q) - rows_Q)[:, None]).flatten()[:number]


def first_fit(source_QP: np.ndarray, target_QP: np.ndarray, width: int) -> np.ndarray:
    """The row of each of the P pairs of Q pools: its number within the rows of its pool, [Q, P].

    Each pair of a pool, the longest first, goes into the first row with room for both of its sides.
    """
    row_QP, pool_Q, rows = np.empty(source_QP.shape, np.int64), np.arange(len(source_QP)), 0
    source_room, target_room = np.full((2, *source_QP.shape), width)
    for pair_Q in np.argsort(-np.maximum(source_QP, target_QP), axis=1, kind="stable").T:
        source_Q, target_Q = source_QP[pool_Q, pair_Q], target_QP[pool_Q, pair_Q]
        open_rows = np.s_[:, : rows + 1]  # any pair fits into an empty row
        row_Q = np.argmax((source_room[open_rows] >= source_Q[:, None]) & (target_room[open_rows] >= target_Q[:, None]), 1)
        source_room[pool_Q, row_Q] -= source_Q
        target_room[pool_Q, row_Q] -= target_Q
        row_QP[pool_Q, pair_Q] = row_Q
        rows = max(rows, int(row_Q.max()) + 1)
    return row_QP


def in_order(
    pairs: Pairs,
    batch_tokens: int,
    share: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda numbers, sizes: numbers,
) -> Iterator[np.ndarray]:
    """Batches for the dev loss. Each pair occurs once, the longest targets last.

    Each side of a batch has at most `batch_tokens` tokens, unless the batch is one longer pair. Each worker divides its own
    share of the pairs, because `batch_tokens` may differ between workers.
    """
    source, target = (pairs.lengths(side) + 1 for side in ("source", "target"))
    order = np.lexsort((source, target))
    order = share(order, source[order] + target[order])
    starts = split(source[order], target[order], batch_tokens)
    return (order[start:stop] for start, stop in pairwise(starts))


@dataclass
class Prefetch(Generic[Item]):
    """Calling it with a step returns `make(step)`, and starts `make` for the next `depth` steps in one thread.

    Any step may be requested next. An exception of `make` is raised by the call for its step. At exit the process waits
    until the calls of `make` that have been submitted end. The thread calls `begin` first.
    """

    make: Callable[[int], Item]
    depth: int
    begin: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "prefetch", self.begin)
        self.made: dict[int, Future[Item]] = {}

    def __call__(self, step: int) -> Item:
        coming = range(step, step + 1 + self.depth)
        for other in self.made.keys() - set(coming):
            self.made.pop(other).cancel()
        for number in coming:
            if number not in self.made:
                self.made[number] = self.thread.submit(self.make, number)
        return self.made.pop(step).result()

    def close(self) -> None:
        """Cancel the calls of `make` that have not started, and wait for the one that is running."""
        self.thread.shutdown(cancel_futures=True)
