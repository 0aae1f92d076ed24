"""The layout of a batch in tensors: `padded` and `rounded` put one pair in each row, the others several.

`packed` fills rows of 128 positions, or of as many as the longest sentence needs, `tabled` fills tables of a given shape,
and `joined` has one row. A batch is an array of pair numbers. Without dropout, all layouts give the same loss up to
rounding.

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

import sys
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.batch import Batch, Pairs, Rows
from transformer.config.vocabulary import BOS, EOS, PAD

WIDTH = 128  # of packed rows, or as wide as the longest sentence needs; wider rows cost more attention
SIZES = 32  # the width of a joined row is rounded up to one of 32 sizes between two powers of two
STEP = 16  # the width of packed rows is a multiple of this
COLUMNS = 8  # the width of `rounded` rows is a multiple of this

Layout = Callable[[Pairs, np.ndarray], Batch]
Size = Callable[[int, int], tuple[int, int]]
"""The number of rows and of positions in a row of a table, given the smallest numbers that hold the sentences."""


def padded(pairs: Pairs, numbers: np.ndarray, size: Size = lambda rows, width: (rows, width)) -> Batch:
    """The pairs `numbers` in their order, one in each row. The last rows are empty if `size` gives more."""
    return batch_of(pairs, numbers, None, size)


def rounded(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """As `padded`, with more padding, so that many batches have the same shape.

    For bfloat16 on a CPU, oneDNN plans its kernels anew for each shape.
    """
    return padded(pairs, numbers, lambda rows, width: (coarse(rows), rounded_up(width, COLUMNS)))


def packed(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs `numbers` in their order, as many in each row as fit. Both sides of a pair are in the same row.

    The last rows may be empty: fewer shapes need fewer CUDA graphs (graphs.py).
    """
    return batch_of(pairs, numbers, WIDTH, lambda rows, width: (coarse(rows, 16), rounded_up(width, STEP)))


def joined(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs `numbers` in their order, all in one row. Fewer widths need fewer CUDA graphs (graphs.py)."""
    return batch_of(pairs, numbers, sys.maxsize, lambda rows, width: (rows, coarse(width, SIZES)))


def tabled(pairs: Pairs, numbers: np.ndarray, rows: int, width: int) -> Batch:
    """The pairs `numbers` in their order, as many in each row as fit, in tables of `rows` rows of `width` positions.

    The last rows may be empty. A table is larger only where the pairs do not fit.
    """
    return batch_of(pairs, numbers, width, lambda *least: (max(rows, least[0]), max(width, least[1])))


def batch_of(pairs: Pairs, numbers: np.ndarray, width: int | None, size: Size) -> Batch:
    """The pairs `numbers` in their order, as many in each row as fit into `width` positions.

    Rows are wider where the longest pair needs more. Without `width`, each row is one pair, and the batch has no positions
    and sentence numbers.
    """
    (source_M, source_P), (target_M, target_P) = (pairs.sentences(side, numbers) for side in ("source", "target"))
    source_M, target_M = source_M.astype(np.int64), target_M.astype(np.int64)
    source_end_P, target_end_P = np.cumsum(source_P), np.cumsum(target_P)
    row_P = np.arange(len(numbers))
    if width:
        longest = 1 + max(source_P.max(), target_P.max())
        starts = split(source_P + 1, target_P + 1, width if longest <= width else rounded_up(longest, STEP))
        row_P = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    source_N, target_N = np.insert(source_M, source_end_P, EOS), np.insert(target_M, target_end_P - target_P, BOS)
    source, _ = laid_out(row_P, source_P + 1, source_N, size, width is not None)
    target, cell_N = laid_out(row_P, target_P + 1, target_N, size, width is not None)
    return Batch(source, target, torch.from_numpy(cell_N), torch.from_numpy(np.insert(target_M, target_end_P, EOS)))


def laid_out(
    row_P: np.ndarray, length_P: np.ndarray, ids_N: np.ndarray, size: Size, numbered: bool
) -> tuple[Rows, np.ndarray]:
    """One side of a batch, and the index of each of its positions in the flattened table.

    Sentence p is in row `row_P[p]`, after the earlier sentences of this row. `row_P` is in ascending order. A cell without
    a sentence is 0, which is PAD.
    """
    start_P = np.cumsum(length_P) - length_P  # in the concatenation of all sentences
    first_P = np.searchsorted(row_P, row_P)  # the first sentence in the same row
    column_P = start_P - start_P[first_P]
    rows, width = size(int(row_P[-1]) + 1, int((column_P + length_P).max()))
    position_N = np.arange(length_P.sum()) - np.repeat(start_P, length_P)
    cell_N = np.repeat(row_P * width + column_P, length_P) + position_N

    def table(value_N: np.ndarray) -> Tensor:
        table_BS = np.zeros((rows, width), dtype=np.int64)
        table_BS.flat[cell_N] = value_N
        return torch.from_numpy(table_BS)

    if not numbered:
        return Rows(table(ids_N)), cell_N
    sentence_N = np.repeat(np.arange(len(row_P)) - first_P + 1, length_P)
    return Rows(table(ids_N), table(position_N), table(sentence_N), int(position_N.max()) + 1), cell_N


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


def rounded_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def coarse(number: int, sizes: int = 8) -> int:
    """The number rounded up to one of `sizes` numbers between two powers of two, so by less than 1 / `sizes`.

    `sizes` is a power of two. Up to twice `sizes`, the number stays the same.
    """
    return rounded_up(number, 1 << max(0, (number // sizes).bit_length() - 1))


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, longest]: the ids of each row, followed by PAD."""
    return pad_sequence([torch.tensor(ids, dtype=torch.int64) for ids in rows], batch_first=True, padding_value=PAD)
