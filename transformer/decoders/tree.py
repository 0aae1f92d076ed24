"""The step function of searches that return to an earlier prefix, such as depth-first search and tree search.

Shapes: B sentences, S source positions, K nodes of each to score, N slots, H heads, E d_k or d_v, D d_model, V vocabulary.
"""

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.attention import additive_mask
from transformer.layers import LayerCache
from transformer.model import Transformer


class Tree(Protocol):
    """Scores nodes of a tree of prefixes.

    Each node is kept in a slot, a number from 0. A new node replaces an earlier one in the same slot, so a depth-first
    search needs one slot per position. `hidden_BKD` is the decoder's output at the latest call; for an ensemble, the
    output of the first model.
    """

    hidden_BKD: Tensor

    def __call__(self, tokens_BK: Tensor, parent_BK: Tensor, slot_BK: Tensor, /) -> Tensor:
        """The logits of the next token after each node, [B, K, V].

        The arguments are the newest token of each node, the slot of its parent (the prefix without the newest token; -1
        if the newest token is BOS), and its own slot. The parent has been scored in an earlier call.
        """

    def select(self, sentences: Tensor) -> None:
        """Keep the sentences with these indices and drop the others."""


class SlotCache(LayerCache):
    """The keys and values of one decoder layer. Those of a node are in its slot."""

    slot_BK: Tensor

    def grow(self, slots: int) -> None:
        """Enlarge to `slots` slots. New slots are zero, since no mask would hide a NaN in uninitialised memory."""
        more = slots - self.k.shape[2]
        self.k, self.v = F.pad(self.k, (0, 0, 0, more)), F.pad(self.v, (0, 0, 0, more))

    def append(self, k_BHKE: Tensor, v_BHKE: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the nodes. Returns those of all slots, each [B, H, N, E]."""
        sentence_B1 = torch.arange(len(k_BHKE), device=k_BHKE.device)[:, None]
        self.k[sentence_B1, :, self.slot_BK] = k_BHKE.transpose(1, 2)
        self.v[sentence_B1, :, self.slot_BK] = v_BHKE.transpose(1, 2)
        return self.k, self.v


class TreeStep:
    """The `Tree` of a Transformer. All nodes of a sentence share the keys and values of their ancestors."""

    hidden_BKD: Tensor

    def __init__(self, model: Transformer, source_BS: Tensor, slots: int) -> None:
        self.model, started = model, model.start(source_BS)
        self.layers = [SlotCache(layer.source_k, layer.source_v) for layer in started.layers]
        self.source_mask, self.slots = started.source_mask, 0
        # There is one row more than slots. Index -1, the parent of BOS, reads the last row: no ancestors and position -1.
        self.path_BNN = torch.zeros(len(source_BS), 1, 0, dtype=torch.bool, device=source_BS.device)
        self.position_BN = torch.full((len(source_BS), 1), -1, device=source_BS.device)
        self.grow(slots)

    def grow(self, slots: int) -> None:
        """Enlarge to `slots` slots."""
        more, self.slots = slots - self.slots, slots
        for cache in self.layers:
            cache.grow(slots)
        self.path_BNN = F.pad(self.path_BNN, (0, more, 0, more))
        self.position_BN = F.pad(self.position_BN, (0, more), value=-1)

    def __call__(self, tokens_BK: Tensor, parent_BK: Tensor, slot_BK: Tensor) -> Tensor:
        needed = int(slot_BK.max()) + 1
        if needed > self.slots:
            self.grow(max(needed, self.slots * 3 // 2))
        sentence_B1 = torch.arange(len(tokens_BK), device=tokens_BK.device)[:, None]
        path_BKN = self.path_BNN[sentence_B1, parent_BK].scatter(2, slot_BK[:, :, None], True)
        position_BK = self.position_BN[sentence_B1, parent_BK] + 1
        self.path_BNN[sentence_B1, slot_BK], self.position_BN[sentence_B1, slot_BK] = path_BKN, position_BK
        if near := self.model.config.neighbourhood:
            path_BKN = path_BKN & (position_BK[:, :, None] - self.position_BN[:, None, :-1] <= near)
        x_BKD = self.embed(tokens_BK, position_BK)
        mask = additive_mask(path_BKN, x_BKD.dtype)[:, None]
        for layer, cache in zip(self.model.decoder, self.layers):
            cache.slot_BK = slot_BK
            x_BKD = layer.step(x_BKD, cache, mask, self.source_mask)
        self.hidden_BKD = self.model.decoder_norm(x_BKD)
        return self.model.logits(self.hidden_BKD)

    def embed(self, tokens_BK: Tensor, position_BK: Tensor) -> Tensor:
        """As `Transformer.embed`, for tokens that are each at a position of their own (3.4, 3.5)."""
        x_BKD = F.embedding(tokens_BK, self.model.embedding) * math.sqrt(self.model.config.d_model)
        return x_BKD + F.embedding(position_BK, self.model.target_positions(0, int(position_BK.max()) + 1))

    def select(self, sentences: Tensor) -> None:
        """Keep the sentences with these indices and drop the others."""
        for layer in self.layers:
            layer.select(sentences)
        self.source_mask = self.source_mask.index_select(0, sentences)
        self.path_BNN = self.path_BNN.index_select(0, sentences)
        self.position_BN = self.position_BN.index_select(0, sentences)
