"""How a batch of pairs lies in tensors: `padded`, a pair a row, or `packed`, several.

A batch is a list of pair numbers, chosen without regard to this; both layouts of it give the same loss.

Shapes: P pairs, B rows, S source and T target positions a row, N ids of all pairs, M of them without BOS and EOS.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from transformer.config.vocabulary import BOS, EOS

# Packed rows are at most so wide, unless a sentence is wider: the narrower, the less attention costs; the wider, the
# less of a row is left over. A side whose rows are not full is narrower by whole steps.
WIDTHS, STEP = (128, 256), 16


class Pairs(Protocol):
    """What batches are made of: the pieces of a source and its target, without BOS and EOS."""

    def __len__(self) -> int: ...
    def lengths(self, side: str) -> np.ndarray: ...
    def pair(self, number: int) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Rows:
    """One side of a batch. Without the last two, a row is one sentence, with PAD behind it."""

    ids_BS: Tensor
    position_BS: Tensor | None = None  # within the sentence
    sentence_BS: Tensor | None = None  # counted from 1 in each row, the same for source and target; 0 at padding

    def map(self, function: Callable[[Tensor], Tensor]) -> "Rows":
        tensors = (self.ids_BS, self.position_BS, self.sentence_BS)
        return Rows(*(tensor if tensor is None else function(tensor) for tensor in tensors))


@dataclass(frozen=True)
class Batch:
    """Source + EOS, BOS + target, and the labels, target + EOS, of the target's real positions alone."""

    source: Rows
    target: Rows
    real_N: Tensor  # the real positions, numbered row by row
    labels_N: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(
            self.source.map(function), self.target.map(function), function(self.real_N), function(self.labels_N)
        )

    def pinned_for(self, device: torch.device) -> "Batch":
        """In memory from which `to` a GPU copies while the processor does something else."""
        return self.map(Tensor.pin_memory) if device.type == "cuda" else self

    def to(self, device: torch.device) -> "Batch":
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


Layout = Callable[[Pairs, np.ndarray], Batch]


def layout_for(device: torch.device) -> Layout:
    """Packed on a GPU, padded on a processor, where a mask of all positions costs more than the padding it saves.

    It follows from the device alone, which a resumed training has to keep, so it is no setting.
    """
    return packed if device.type == "cuda" else padded


def padded(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs of these numbers, in this order, one a row."""
    return laid_out(pairs, numbers, lambda source_P, target_P: np.arange(len(source_P)), shared=False)


def packed(pairs: Pairs, numbers: np.ndarray) -> Batch:
    """The pairs of these numbers, in this order, whole ones in a row; a row of targets has the pairs of its sources."""
    return laid_out(pairs, numbers, rows_of, shared=True)


def laid_out(pairs: Pairs, numbers: np.ndarray, rows_of: Callable[..., np.ndarray], shared: bool) -> Batch:
    """The pairs in the rows that `rows_of` their lengths says; `shared` rows tell their sentences apart."""
    sources, targets = zip(*(pairs.pair(int(number)) for number in numbers))
    source_P, target_P = (np.array([len(ids) for ids in side]) for side in (sources, targets))
    row_P = rows_of(source_P + 1, target_P + 1)
    step = STEP if shared else 1
    source, target = Places(row_P, source_P + 1, step), Places(row_P, target_P + 1, step)
    source_M, target_M = (np.concatenate(side).astype(np.int64) for side in (sources, targets))
    return Batch(
        source.rows(np.insert(source_M, np.cumsum(source_P), EOS), shared),
        target.rows(np.insert(target_M, np.cumsum(target_P) - target_P, BOS), shared),
        torch.from_numpy(target.cell_N),
        torch.from_numpy(np.insert(target_M, np.cumsum(target_P), EOS)),
    )


class Places:
    """Where the ids of one side go: sentence behind sentence in their rows, `row_P`, which never fall."""

    def __init__(self, row_P: np.ndarray, length_P: np.ndarray, step: int) -> None:
        end_P = np.cumsum(length_P)
        first_P = np.searchsorted(row_P, row_P)  # of the sentences of the same row
        offset_P = end_P - length_P - (end_P - length_P)[first_P]
        width = -(-(offset_P + length_P).max() // step) * step
        self.shape = (row_P[-1] + 1, width)
        self.position_N = np.arange(end_P[-1]) - np.repeat(end_P - length_P, length_P)
        self.cell_N = np.repeat(row_P * width + offset_P, length_P) + self.position_N
        self.sentence_N = np.repeat(np.arange(len(row_P)) - first_P + 1, length_P)

    def table(self, value_N: np.ndarray) -> Tensor:
        """[B, width], zeros (PAD) where nothing is."""
        table_BS = np.zeros(self.shape, dtype=np.int64)
        table_BS.flat[self.cell_N] = value_N
        return torch.from_numpy(table_BS)

    def rows(self, ids_N: np.ndarray, shared: bool) -> Rows:
        values = (ids_N, self.position_N, self.sentence_N) if shared else (ids_N,)
        return Rows(*map(self.table, values))


def rows_of(source_P: np.ndarray, target_P: np.ndarray) -> np.ndarray:
    """The row of each pair: the next as long as it has room, in rows of the width that leaves fewest positions empty."""
    longest = max(source_P.max(), target_P.max())
    choices = []
    for width in [width for width in WIDTHS if width >= longest] or [longest]:
        starts = split(source_P, target_P, width)
        row_P = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        shapes = [Places(row_P, length_P, STEP).shape for length_P in (source_P, target_P)]
        choices.append((sum(rows * positions for rows, positions in shapes), row_P))
    return min(choices, key=lambda choice: choice[0])[1]


def split(source: np.ndarray, target: np.ndarray, tokens: int) -> np.ndarray:
    """Where to cut a sequence of pairs so that no part has over `tokens` on either side; starts, and the end."""
    ends = [np.concatenate([[0], np.cumsum(side)]) for side in (source, target)]
    starts = [0]
    while starts[-1] < len(source):
        reach = min(int(end.searchsorted(end[starts[-1]] + tokens, "right")) - 1 for end in ends)
        starts.append(max(reach, starts[-1] + 1))
    return np.array(starts)


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, longest], zeros (PAD) behind the shorter rows."""
    length_B = np.array([len(ids) for ids in rows])
    return Places(np.arange(len(rows)), length_B, 1).table(np.concatenate(rows))
