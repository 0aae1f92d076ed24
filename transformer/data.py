"""Batches (section 5.1): pairs of similar length together, about N source and N target tokens each.

A batch is an array of pair numbers, chosen without regard to how it will be laid out; `padded` is one layout of it.
The order is a function of the seed and the step, so a resumed training needs only its step to go on exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from transformer.config.vocabulary import BOS, EOS


class Pairs(Protocol):
    """What batches are made of: the pieces of a source and its target, without BOS and EOS."""

    def __len__(self) -> int: ...
    def lengths(self, side: str) -> np.ndarray: ...
    def pair(self, number: int) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass
class PaddedBatch:
    """Ids padded at the end to the longest of the batch: source + EOS, and BOS + target.

    The labels, target + EOS, are those of the real positions alone, which `real_N` numbers row by row.
    """

    source_BS: Tensor
    target_BT: Tensor
    real_N: Tensor
    labels_N: Tensor

    def to(self, device: torch.device) -> "PaddedBatch":
        if device.type == "cpu":
            return self
        tensors = (self.source_BS, self.target_BT, self.real_N, self.labels_N)
        return PaddedBatch(*(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors))


def padded(pairs: Pairs, numbers: np.ndarray) -> PaddedBatch:
    """The pairs of these numbers, in this order."""
    sources, targets = zip(*(pairs.pair(int(number)) for number in numbers))
    labels_BT = pad([[*target, EOS] for target in targets]).flatten()
    real_N = labels_BT.nonzero()[:, 0]
    return PaddedBatch(
        pad([[*source, EOS] for source in sources]),
        pad([[BOS, *target] for target in targets]),
        real_N,
        labels_BT[real_N],
    )


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, longest], zeros (PAD) behind the shorter rows."""
    table = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for row, ids in zip(table, rows):
        row[: len(ids)] = ids
    return torch.from_numpy(table)


class Batches:
    """The batches of a training, one a step.

    An epoch takes every pair once. Pairs are sorted by length; which of several equally long pairs comes first, and the
    order of the batches, are drawn anew for each epoch. So the lengths that follow each other are the same in every
    epoch, the batches begin at the same places, and the place of a step is one division.
    """

    def __init__(self, pairs: Pairs, seed: int, batch_tokens: int, max_length: int) -> None:
        self.pairs, self.seed = pairs, seed
        # EOS counts: it is read and predicted like any other piece.
        self.source, self.target = (pairs.lengths(side).astype(np.int64) + 1 for side in ("source", "target"))
        self.used = np.flatnonzero((self.source <= max_length) & (self.target <= max_length))
        self.left_out = len(pairs) - len(self.used)
        self.epoch, self.order = -1, np.empty(0, np.int64)
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
            random = np.random.default_rng([self.seed, epoch])
            self.order = self.used[self.by_length(random.random(len(self.used)))]
            self.epoch, self.places = epoch, random.permutation(len(self))
        start, stop = self.starts[self.places[place] : self.places[place] + 2]
        return self.order[start:stop]

    def by_length(self, tie_break: np.ndarray) -> np.ndarray:
        """Sorted by source length in bands a tenth wide, then by target length, so that both sides pad little."""
        source, target = self.source[self.used], self.target[self.used]
        bands = np.floor(np.log(source) / np.log(1.1))
        return np.lexsort((tie_break, source, target, bands))

    def micro_batches(self, numbers: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
        """The batch in parts of at most `tokens` source and `tokens` target tokens, for gradient accumulation."""
        starts = split(self.source[numbers], self.target[numbers], tokens)
        return (numbers[start:stop] for start, stop in pairwise(starts))

    def sums(self, numbers: np.ndarray) -> dict[str, int]:
        """What operation counts need of a batch: tokens of each side and the squares that attention costs."""
        source, target = self.source[numbers], self.target[numbers]
        return {
            "source_tokens": int(source.sum()),
            "target_tokens": int(target.sum()),
            "source_squared": int((source**2).sum()),
            "target_squared": int((target**2).sum()),
            "source_target": int((source * target).sum()),
        }


def split(source: np.ndarray, target: np.ndarray, tokens: int) -> np.ndarray:
    """Where to cut a sequence of pairs so that no part has over `tokens` on either side; starts, and the end."""
    ends = [np.concatenate([[0], np.cumsum(side)]) for side in (source, target)]
    starts = [0]
    while starts[-1] < len(source):
        reach = min(int(np.searchsorted(end, end[starts[-1]] + tokens, "right")) - 1 for end in ends)
        starts.append(max(reach, starts[-1] + 1))
    return np.array(starts)


def in_order(pairs: Pairs, batch_tokens: int) -> Iterator[np.ndarray]:
    """All pairs once, longest last, in batches that fit; for dev losses and decoding."""
    source, target = (pairs.lengths(side).astype(np.int64) + 1 for side in ("source", "target"))
    order = np.lexsort((source, target))
    starts = split(source[order], target[order], batch_tokens)
    return (order[start:stop] for start, stop in pairwise(starts))
