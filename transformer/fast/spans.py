"""Which keys the attention of packed rows takes, in the form of its kernels.

Shapes: B rows, Q queries and K keys in a row, T tiles in a row.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.batch import Rows

TILE = 64  # positions of which one program of a kernel computes the attention
PADDING = 2**30  # the sentence number of padding among queries; among keys it is PADDING + 1, so the two never match


@dataclass
class Spans:
    """The positions of packed rows between which attention is computed: those of the same sentence."""

    query_BQ: Tensor  # the sentence of each query
    key_BK: Tensor  # the sentence of each key
    keys_BT2: Tensor  # for each tile of queries, the first key of its sentences and the end of the last
    queries_BT2: Tensor  # for each tile of keys, the first query of its sentences and the end of the last
    causal: bool  # whether a query attends only to positions up to its own

    @classmethod
    def between(cls, queries: Rows, keys: Rows, causal: bool = False) -> "Spans":
        """The sentences of a row are numbered in ascending order, and padding follows them. Padding attends to nothing."""
        query_BQ, key_BK = numbered(queries, PADDING), numbered(keys, PADDING + 1)
        return cls(query_BQ, key_BK, spans(query_BQ, key_BK), spans(key_BK, query_BQ), causal)


def numbered(rows: Rows, padding: int) -> Tensor:
    """The sentence of each position, [B, S], and at padding the number `padding`."""
    assert rows.sentence_BS is not None
    return rows.sentence_BS.masked_fill(rows.sentence_BS == 0, padding).int()


def spans(own_BQ: Tensor, other_BK: Tensor) -> Tensor:
    """For each tile of `own_BQ`, where its sentences begin and end in `other_BK`, [B, T, 2]."""
    length = own_BQ.shape[1]
    last_T = torch.arange(TILE - 1, length + TILE - 1, TILE, device=own_BQ.device).clamp(max=length - 1)
    begin_BT = torch.searchsorted(other_BK, own_BQ[:, ::TILE].contiguous())
    end_BT = torch.searchsorted(other_BK, own_BQ[:, last_T].clamp(max=PADDING - 1), right=True)
    return torch.stack([begin_BT, end_BT], -1).int()
