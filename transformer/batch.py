"""A batch of sentence pairs in tensors, and the masks of its rows. layout.py makes batches and shows an example.

Shapes: P pairs, B rows, S positions in a row, Q queries, K keys, N positions of all target sentences.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from transformer.attention import Masks, position_mask


class Pairs(Protocol):
    """Sentence pairs as ids, without BOS and EOS."""

    def __len__(self) -> int: ...
    def lengths(self, side: str) -> np.ndarray:
        """The number of ids in each sentence of a side, [P] int64."""

    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the sentences `numbers` of a side, one sentence after the other, and the length of each."""


@dataclass(frozen=True)
class Rows:
    """One side of a batch. Where `position_BS` and `sentence_BS` are None, each row is one sentence, padded by PAD."""

    ids_BS: Tensor
    position_BS: Tensor | None = None  # within the sentence, from 0
    sentence_BS: Tensor | None = None  # within the row, from 1; 0 at padding; equal on both sides of a pair
    longest: int = 0  # at least the positions of the longest sentence; 0 where each row is one sentence

    def map(self, function: Callable[[Tensor], Tensor]) -> "Rows":
        changed: Any = {name: function(each) for name, each in vars(self).items() if isinstance(each, Tensor)}
        return replace(self, **changed)

    @property
    def place(self) -> tuple[Tensor, int] | None:
        """The positions, and a number above all of them; None where each row is one sentence."""
        return None if self.position_BS is None else (self.position_BS, self.longest)


@dataclass(frozen=True)
class Batch:
    """The source ids end with EOS and the target ids begin with BOS. A label is the next target id, or EOS."""

    source: Rows
    target: Rows
    real_N: Tensor  # indices into the flattened target: its positions without padding
    labels_N: Tensor  # the label at each of them

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(self.source.map(function), self.target.map(function), function(self.real_N), function(self.labels_N))

    def masks(self, neighbourhood: int) -> Masks:
        """The masks of the model's layers, as tensors."""
        source, target = self.source, self.target
        if source.position_BS is None or target.position_BS is None:
            return Masks.of(source.ids_BS, target.ids_BS, neighbourhood)
        decoder = sentence_mask(target, target) & position_mask(target.position_BS, True, neighbourhood)[:, None]
        encoder = sentence_mask(source, source)
        if neighbourhood:
            encoder &= position_mask(source.position_BS, False, neighbourhood)[:, None]
        return Masks(decoder, sentence_mask(target, source), encoder)

    def shares(self, number: int) -> list["Batch"]:
        """The batch in at most `number` parts of about equally many rows. A part without target tokens is left out."""
        ends = [len(self.target.ids_BS) * end // number for end in range(number + 1)]
        shares = [self.rows(start, stop) for start, stop in itertools.pairwise(ends)]
        return [share for share in shares if len(share.labels_N)]

    def rows(self, start: int, stop: int) -> "Batch":
        """The rows from `start` up to, not including, `stop`. `real_N` has to be in ascending order, as before `twice`."""
        width = self.target.ids_BS.shape[1]
        first, last = torch.searchsorted(self.real_N, torch.tensor([start * width, stop * width])).tolist()
        source, target = (rows.map(lambda tensor: tensor[start:stop]) for rows in (self.source, self.target))
        return Batch(source, target, self.real_N[first:last] - start * width, self.labels_N[first:last])

    def twice(self) -> "Batch":
        """The batch with each row twice, for two passes with different dropout masks.

        Elements 2i and 2i + 1 of the new `real_N` are element i of the old one in the first and in the second pass.
        """
        both_N2 = torch.stack([self.real_N, self.real_N + self.target.ids_BS.numel()], 1)
        source, target = (rows.map(lambda tensor: torch.cat([tensor, tensor])) for rows in (self.source, self.target))
        return Batch(source, target, both_N2.flatten(), self.labels_N.repeat_interleave(2))

    def pinned_for(self, device: torch.device) -> "Batch":
        """For a GPU, a copy in pinned memory, which `to` copies asynchronously. For a CPU, the batch itself."""
        return self.map(Tensor.pin_memory) if device.type == "cuda" else self

    def to(self, device: torch.device) -> "Batch":
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


def sentence_mask(queries: Rows, keys: Rows) -> Tensor:
    """The boolean mask of packed rows, [B, 1, Q, K]: a query attends only to keys of its own sentence.

    No sentence attends to padding. A query at padding, which belongs to none, may attend to all of its row, so that it has
    keys.
    """
    assert queries.sentence_BS is not None and keys.sentence_BS is not None
    sentence_BQ1, sentence_B1K = queries.sentence_BS[:, :, None], keys.sentence_BS[:, None, :]
    return ((sentence_BQ1 == sentence_B1K) | (sentence_BQ1 == 0))[:, None]
