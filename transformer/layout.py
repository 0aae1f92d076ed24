"""The layout of a batch in tensors: `padded` and `rounded` put one pair in each row, the others several.

`packed` fills rows of a few hundred positions, `tabled` fills tables of a given shape, and `joined` has one row. A batch is
an array of pair numbers. Without dropout, all layouts give the same loss up to rounding.

Example: the pairs (5 6, 8), (7, 9 10) and (4 5 6 7, 8 9), packed into two rows of at most five positions. BOS is 2 and
EOS is 3. Positions without a sentence are 0 in every table.

    source.ids_BS         5 6 3 7 3          target.ids_BS         2 8 2 9 10
                          4 5 6 7 3                                2 8 9 0 0
    source.position_BS    0 1 2 0 1          target.position_BS    0 1 0 1 2
                          0 1 2 3 4                                0 1 2 0 0
    source.sentence_BS    1 1 1 2 2          target.sentence_BS    1 1 2 2 2
                          1 1 1 1 1                                1 1 1 0 0

    real_N                0 1 2 3 4 5 6 7     the positions of the target without padding, in the flattened table
    labels_N              8 3 9 10 3 8 9 3    the id that follows each, or EOS

Shapes: P pairs, B rows, S positions in a row, N positions of all sentences, M ids of all sentences without BOS and EOS.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from transformer.attention import Masks
from transformer.config.vocabulary import BOS, EOS

# The maximum widths of packed rows that are tried. A row is wider only if one sentence needs it. Narrow rows cost less
# attention; wide rows leave fewer positions empty.
WIDTHS = (128, 256)
SIZES = 32  # the width of a joined row is rounded up to one of 32 sizes between two powers of two
STEP = 16  # the width of packed rows is rounded up to a multiple of this
COLUMNS = 8  # the width of `rounded` rows is rounded up to a multiple of this


class Pairs(Protocol):
    """Sentence pairs as ids, without BOS and EOS."""

    def __len__(self) -> int: ...
    def lengths(self, side: str) -> np.ndarray: ...
    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the sentences `numbers` of a side, one sentence after the other, and the length of each."""


@dataclass(frozen=True)
class Rows:
    """One side of a batch. Where `position_BS` and `sentence_BS` are None, each row is one sentence, padded by PAD."""

    ids_BS: Tensor
    position_BS: Tensor | None = None  # within the sentence, from 0
    sentence_BS: Tensor | None = None  # within the row, from 1; 0 at padding; equal on both sides of a pair
    longest: int = 0  # positions of the longest sentence, at least

    def map(self, function: Callable[[Tensor], Tensor]) -> "Rows":
        position_BS, sentence_BS = (
            None if each is None else function(each) for each in (self.position_BS, self.sentence_BS)
        )
        return Rows(function(self.ids_BS), position_BS, sentence_BS, self.longest)

    @property
    def tensors(self) -> list[Tensor]:
        return [tensor for tensor in (self.ids_BS, self.position_BS, self.sentence_BS) if tensor is not None]

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
        if source.sentence_BS is None:
            return Masks.of(source.ids_BS, target.ids_BS, neighbourhood)
        decoder = sentence_mask(target, target, True, neighbourhood)
        return Masks(decoder, sentence_mask(target, source), sentence_mask(source, source, False, neighbourhood))

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


Layout = Callable[[Pairs, np.ndarray], Batch]


def sentence_mask(queries: Rows, keys: Rows, causal: bool = False, neighbourhood: int = 0) -> Tensor:
    """The boolean mask of packed rows, [B, 1, Q, K]: a query attends only to keys of its own sentence.

    `causal` and `neighbourhood` are those of `position_mask`. A query at padding is not restricted to
    one sentence, since a softmax over no keys would be NaN. No sentence attends to padding.
    """
    assert queries.sentence_BS is not None and keys.sentence_BS is not None
    sentence_BQ1, sentence_B1K = queries.sentence_BS[:, :, None], keys.sentence_BS[:, None, :]
    allowed_BQK = (sentence_BQ1 == sentence_B1K) | (sentence_BQ1 == 0)
    if causal or neighbourhood:
        assert queries.position_BS is not None and keys.position_BS is not None
        distance_BQK = queries.position_BS[:, :, None] - keys.position_BS[:, None, :]
        if causal:
            allowed_BQK &= distance_BQK >= 0
        if neighbourhood:
            allowed_BQK &= distance_BQK.abs() <= neighbourhood
    return allowed_BQK[:, None]


def padded(pairs: Pairs, numbers: np.ndarray, multiple: int = 1, rows: int = 0) -> Batch:
    """The pairs `numbers` in their order, one in each row. The last rows are empty if there are fewer pairs than `rows`.

    The width of the rows is a multiple of `multiple`.
    """
    source, target = sentences(pairs, numbers)
    return batch_of(source, target, np.arange(len(numbers)), numbered=False, multiple=multiple, least=(rows, 0))


def rounded(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """As `padded`, with more padding, so that many batches have the same shape.

    For bfloat16 on a CPU, oneDNN plans its kernels anew for each shape. docs/results.md has the speed for several
    numbers of shapes.
    """
    return padded(pairs, numbers, COLUMNS, coarse(len(numbers)))


def packed(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs `numbers` in their order, as many in each row as fit. Both sides of a pair are in the same row.

    The last rows may be empty.
    """
    source, target = sentences(pairs, numbers)
    row_P = packed_rows(source.length_P + 1, target.length_P + 1)
    return batch_of(source, target, row_P, numbered=True, multiple=STEP, least=(packed_height(row_P), 0))


def joined(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs `numbers` in their order, all in one row. Fewer widths need fewer CUDA graphs (graphs.py)."""
    source, target = sentences(pairs, numbers)
    return batch_of(source, target, np.zeros(len(numbers), dtype=np.int64), numbered=True, sizes=SIZES)


def tabled(pairs: Pairs, numbers: np.ndarray, rows: int, width: int) -> Batch:
    """The pairs `numbers` in their order, as many in each row as fit, in tables of `rows` rows of `width` positions.

    The last rows may be empty. A table is larger only where the pairs do not fit.
    """
    source, target = sentences(pairs, numbers)
    row_P = rows_of(split(source.length_P + 1, target.length_P + 1, width))
    return batch_of(source, target, row_P, numbered=True, least=(rows, width))


@dataclass(frozen=True)
class Sentences:
    """One side of the pairs: the ids of all sentences one after the other, and the length of each."""

    ids_M: np.ndarray
    length_P: np.ndarray

    @classmethod
    def of(cls, pairs: Pairs, side: str, numbers: np.ndarray) -> "Sentences":
        ids_M, length_P = pairs.sentences(side, numbers)
        return cls(ids_M.astype(np.int64), length_P)

    def with_bos(self) -> np.ndarray:
        return np.insert(self.ids_M, np.cumsum(self.length_P) - self.length_P, BOS)

    def with_eos(self) -> np.ndarray:
        return np.insert(self.ids_M, np.cumsum(self.length_P), EOS)


def sentences(pairs: Pairs, numbers: np.ndarray) -> tuple[Sentences, Sentences]:
    """Source and target of the pairs `numbers`."""
    return Sentences.of(pairs, "source", numbers), Sentences.of(pairs, "target", numbers)


def batch_of(
    source: Sentences,
    target: Sentences,
    row_P: np.ndarray,
    numbered: bool,
    multiple: int = 1,
    least: tuple[int, int] = (0, 0),
    sizes: int | None = None,
) -> Batch:
    """The batch with pair p in row `row_P[p]`. `numbered` rows have positions and sentence numbers.

    The width of the rows is a multiple of `multiple`. `least` is the minimum number of rows and of positions in a row. With
    `sizes`, the width is rounded up by `coarse`.
    """
    source_places = Places.of(row_P, source.length_P + 1, multiple, least, sizes)
    target_places = Places.of(row_P, target.length_P + 1, multiple, least, sizes)
    return Batch(
        source_places.rows(source.with_eos(), numbered),
        target_places.rows(target.with_bos(), numbered),
        torch.from_numpy(target_places.cell_N),
        torch.from_numpy(target.with_eos()),
    )


@dataclass(frozen=True)
class Places:
    """Where each position of the sentences of one side lies in a table [B, S]."""

    shape: tuple[int, int]
    cell_N: np.ndarray  # its index in the flattened table
    position_N: np.ndarray  # its position within its sentence
    sentence_N: np.ndarray  # the number of its sentence within the row

    @classmethod
    def of(
        cls,
        row_P: np.ndarray,
        length_P: np.ndarray,
        multiple: int,
        least: tuple[int, int] = (0, 0),
        sizes: int | None = None,
    ) -> "Places":
        """Sentence p is in row `row_P[p]`, after the earlier sentences of this row. `row_P` is in ascending order."""
        start_P = np.cumsum(length_P) - length_P  # in the concatenation of all sentences
        first_P = np.searchsorted(row_P, row_P)  # the first sentence in the same row
        column_P = start_P - start_P[first_P]
        width = max(rounded_up((column_P + length_P).max(), multiple), least[1])
        width = coarse(int(width), sizes) if sizes else width
        position_N = np.arange(length_P.sum()) - np.repeat(start_P, length_P)
        cell_N = np.repeat(row_P * width + column_P, length_P) + position_N
        sentence_N = np.repeat(np.arange(len(row_P)) - first_P + 1, length_P)
        return cls((max(row_P[-1] + 1, least[0]), width), cell_N, position_N, sentence_N)

    def rows(self, ids_N: np.ndarray, numbered: bool) -> Rows:
        if not numbered:
            return Rows(self.table(ids_N))
        ids_BS, position_BS, sentence_BS = map(self.table, (ids_N, self.position_N, self.sentence_N))
        return Rows(ids_BS, position_BS, sentence_BS, int(self.position_N.max()) + 1)

    def table(self, value_N: np.ndarray) -> Tensor:
        """The values in their cells, and 0, which is PAD, in all other cells: [B, S]."""
        table_BS = np.zeros(self.shape, dtype=np.int64)
        table_BS.flat[self.cell_N] = value_N
        return torch.from_numpy(table_BS)


def packed_rows(source_P: np.ndarray, target_P: np.ndarray) -> np.ndarray:
    """The row of each pair, given the lengths of its sides, at the width that gives the smallest tables.

    A pair begins the next row if one of its sides does not fit into the current row.
    """
    longest = max(source_P.max(), target_P.max())
    choices = []
    for width in [width for width in WIDTHS if width >= longest] or [longest]:
        row_P = rows_of(split(source_P, target_P, width))
        width_of_both = sum(Places.of(row_P, length_P, STEP).shape[1] for length_P in (source_P, target_P))
        choices.append((packed_height(row_P) * width_of_both, row_P))
    return min(choices, key=lambda choice: choice[0])[1]


def packed_height(row_P: np.ndarray) -> int:
    """The number of rows of a packed table, given the row of each pair. Fewer shapes need fewer CUDA graphs (graphs.py)."""
    return coarse(int(row_P[-1]) + 1, 16)


def split(source: np.ndarray, target: np.ndarray, tokens: int) -> np.ndarray:
    """Split pairs with these lengths into parts of at most `tokens` on either side. A part has at least one pair.

    Returns the first pair of each part, followed by the number of pairs.
    """
    sources, targets = (np.concatenate([[0], np.cumsum(side)]) for side in (source, target))
    starts, start = [0], 0
    while start < len(source):
        reach = (
            sources.searchsorted(sources[start] + tokens, "right"),
            targets.searchsorted(targets[start] + tokens, "right"),
        )
        start = max(int(min(reach)) - 1, start + 1)
        starts.append(start)
    return np.array(starts)


def rows_of(starts: np.ndarray) -> np.ndarray:
    """The row of each pair. `starts` has the first pair of each row, followed by the number of pairs."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def rounded_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def coarse(number: int, sizes: int = 8) -> int:
    """The number rounded up to one of `sizes` numbers between two powers of two, so by less than 1 / `sizes`.

    `sizes` is a power of two. Up to twice `sizes`, the number stays the same.
    """
    return rounded_up(number, 1 << max(0, (number // sizes).bit_length() - 1))


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, longest]: the ids of each row, followed by PAD; [0, 0] for no rows."""
    table_BS = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    for row_S, ids in zip(table_BS, rows):
        row_S[: len(ids)] = ids
    return torch.from_numpy(table_BS)
