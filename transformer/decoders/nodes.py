"""The steps of searches that use the decoder's output, and of those that decode single nodes of a tree.

A tree search decodes prefixes of any length in any order. Each sentence has a pool of slots, and the keys and values of a
node stay in its slot for as long as the node is in the tree, so that no prefix is decoded again. A mask selects the slots
of a node's ancestors.

Shapes: B sentences, K hypotheses of each or children of a node, D d_model, V vocabulary, H heads, E d_k or d_v, N slots.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.config.search import MctsConfig
from transformer.config.vocabulary import BOS, PAD
from transformer.decoders.steps import Batch, ModelStep, SourceBatch, mean_of
from transformer.layers import LayerCache
from transformer.model import Transformer
from transformer.value import Values

HiddenStep = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""A `Step` that returns the decoder's output, [B, K, D], and the logits."""


@dataclass(frozen=True)
class Request:
    """A node to decode: its token, and the slots of its ancestors from BOS on, followed by its own slot."""

    token: int
    path: list[int]


@dataclass(frozen=True)
class Decoded:
    """What the model says of a node: its likely children, and its value where there is a value function."""

    token_K: list[int]
    log_prob_K: list[float]
    prior_K: np.ndarray
    value: float | None


class NodeStep(Protocol):
    """Decodes one node of each sentence. The ancestors of a node were decoded by earlier calls."""

    def __call__(self, requests: Sequence[Request]) -> tuple[Tensor, Tensor]:
        """The decoder's output, [B, D], and the logits of the next token, [B, V]."""

    def select(self, rows: Sequence[int]) -> None:
        """Keep the sentences with these indices and drop the others."""


class SlotCache(LayerCache):
    """The keys and values of one decoder layer in slots. Each sentence writes to a slot of its own choice."""

    slot_B: Tensor  # the slots that the next `append` writes to
    row_B: Tensor  # 0 to B - 1

    def append(self, k_BH1E: Tensor, v_BH1E: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the nodes. Returns those of all slots up to `length`, each [B, H, N, E]."""
        if self.length > self.k.shape[2]:
            self.k, self.v = self.enlarged(self.k), self.enlarged(self.v)
        self.k[self.row_B, :, self.slot_B] = k_BH1E[:, :, 0]
        self.v[self.row_B, :, self.slot_B] = v_BH1E[:, :, 0]
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def enlarged(self, old: Tensor) -> Tensor:
        """A larger copy. Unused slots are zero: a mask cannot hide the NaN that uninitialised memory may hold."""
        new = super().enlarged(old)
        new[:, :, old.shape[2] :] = 0
        return new


class ModelNodes:
    """The `NodeStep` of a Transformer."""

    def __init__(self, model: Transformer, source_BS: Tensor) -> None:
        cache = model.start(source_BS)
        self.model, self.source_mask = model, cache.source_mask
        self.layers = [SlotCache(layer.source_k, layer.source_v) for layer in cache.layers]
        self.slots = 0  # that any sentence has used

    def __call__(self, requests: Sequence[Request]) -> tuple[Tensor, Tensor]:
        device = self.model.embedding.device
        paths = [request.path for request in requests]
        self.slots = max(self.slots, *(path[-1] + 1 for path in paths))
        mask = self.mask(paths)
        slot_B = torch.tensor([path[-1] for path in paths], device=device)
        row_B = torch.arange(len(paths), device=device)
        x_B1D = self.embed(requests, device)
        for layer, cache in zip(self.model.decoder, self.layers):
            cache.slot_B, cache.row_B, cache.length = slot_B, row_B, self.slots
            x_B1D = layer.step(x_B1D, cache, mask, self.source_mask)
        hidden_BD = self.model.decoder_norm(x_B1D)[:, 0]
        return hidden_BD, self.model.logits(hidden_BD)

    def embed(self, requests: Sequence[Request], device: torch.device) -> Tensor:
        """As `Transformer.embed`, with a position for each sentence: [B, 1, D]."""
        token_B1 = torch.tensor([[request.token] for request in requests], device=device)
        position_B1 = torch.tensor([[len(request.path) - 1] for request in requests], device=device)
        encodings = self.model.target_positions(0, max(len(request.path) for request in requests))
        x_B1D = F.embedding(token_B1, self.model.embedding) * math.sqrt(self.model.config.d_model)
        return x_B1D + F.embedding(position_B1, encodings)

    def mask(self, paths: Sequence[list[int]]) -> Tensor:
        """The additive mask that leaves to each node its ancestors in the neighbourhood and itself: [B, 1, 1, N]."""
        near = self.model.config.neighbourhood
        kept = [(row, slot) for row, path in enumerate(paths) for slot in (path[-near - 1 :] if near else path)]
        mask_BN = torch.full((len(paths), self.slots), float("-inf"), dtype=self.model.embedding.dtype)
        row_M, slot_M = torch.tensor(kept).T
        mask_BN[row_M, slot_M] = 0
        return mask_BN[:, None, None].to(self.model.embedding.device)

    def select(self, rows: Sequence[int]) -> None:
        row_B = torch.tensor(rows, dtype=torch.int64, device=self.model.embedding.device)
        for layer in self.layers:
            layer.select(row_B)
        self.source_mask = self.source_mask.index_select(0, row_B)


def hidden_step(batch: Batch) -> HiddenStep:
    """A step function for the batch. The decoder's output is that of the first model of an ensemble."""
    assert isinstance(batch, SourceBatch)
    steps = [ModelStep(model, batch.source_BS) for model in batch.models]

    def step(tokens_BK: Tensor, origin_BK: Tensor) -> tuple[Tensor, Tensor]:
        batch.calls += tokens_BK.numel()
        logits_BKV = mean_of([one(tokens_BK, origin_BK) for one in steps])
        return steps[0].hidden_BKD, logits_BKV

    return step


class BatchNodes:
    """The `NodeStep` of a batch. The decoder's output is that of the first model of an ensemble."""

    def __init__(self, batch: Batch) -> None:
        assert isinstance(batch, SourceBatch)
        self.batch, self.models = batch, [ModelNodes(model, batch.source_BS) for model in batch.models]

    def __call__(self, requests: Sequence[Request]) -> tuple[Tensor, Tensor]:
        self.batch.calls += len(requests)
        results = [model(requests) for model in self.models]
        return results[0][0], mean_of([logits_BV for _, logits_BV in results])

    def select(self, rows: Sequence[int]) -> None:
        for model in self.models:
            model.select(rows)


def decoded(hidden_BD: Tensor, logits_BV: Tensor, own: MctsConfig, values: Values | None) -> Iterator[Decoded]:
    """The `own.children` most probable children of each node, with the priors of the whole vocabulary."""
    logits_BV = logits_BV.float()
    logits_BV[:, [PAD, BOS]] = -math.inf
    log_prob_BV = logits_BV.log_softmax(-1)
    log_prob_BK, token_BK = log_prob_BV.topk(min(own.children, logits_BV.shape[1] - 2))
    prior_BK = (logits_BV / own.temperature).softmax(-1).gather(1, token_BK)
    value_B = values(hidden_BD).tolist() if values else [None] * len(token_BK)
    yield from map(Decoded, token_BK.tolist(), log_prob_BK.tolist(), prior_BK.cpu().numpy(), value_B)
