"""What all decoders share: the functions that score the next token, a batch of sentences, and a translation.

Shapes: B sentences, K hypotheses or nodes of each, S source positions, N slots, H heads, E d_k or d_v, D d_model,
V vocabulary.
"""

import math
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Any, Protocol, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.attention import Keys, Masks
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.layers import LayerCache
from transformer.layout import pad
from transformer.model import Place, Transformer

Request = tuple[int, int, int]
"""A node of a tree to decode: its token, the slot of its parent (-1 for BOS) and its own slot (see `TreeStep`)."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Translation:
    """Token ids without BOS and EOS, and the score by which the decoder ranks them.

    The score of beam search is the log-probability, less the regulariser, divided by the length penalty. `finished` is
    False if the search ran out of its budget, so that a better translation may exist.
    """

    ids: list[int]
    score: float
    finished: bool = True


@dataclass
class Sentences:
    """The sentences that a decoder translates in one call by a model or by an ensemble.

    `sources` are ids without EOS. `numbers` has the number of each sentence in its set: random numbers depend on it and
    not on the batch. A translation has at most `extra_length` tokens more than its source, EOS included (`limits`).
    `calls` counts the prefixes that the models have scored. Once `stop` is set, the next step raises CancelledError.
    """

    models: Sequence[Transformer]
    sources: Sequence[Sequence[int]]
    numbers: Sequence[int]
    extra_length: int
    stop: threading.Event | None = None
    calls: int = 0

    def __post_init__(self) -> None:
        self.device = self.models[0].embedding.device
        self.source_BS = pad([[*source, EOS] for source in self.sources]).to(self.device)
        self.limits = [len(source) + self.extra_length for source in self.sources]

    def start(self) -> "Counted":
        """A new step function, which begins with all sentences."""
        return Counted(self, [ModelStep(model, self.source_BS) for model in self.models])

    def tree(self, slots: int) -> "Counted":
        """A new tree of prefixes with this many slots per sentence. It grows if a node needs a slot beyond them."""
        return Counted(self, [TreeStep(model, self.source_BS, slots) for model in self.models])


class Decoder(Protocol):
    """A search with its settings."""

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        """At least one and at most `n_best` translations of each sentence, best first. `batch` is not empty."""

    def width(self, n_best: int) -> int:
        """The number of live hypotheses of a sentence."""


@dataclass
class Counted:
    """The steps or the trees of an ensemble or of one model. Counts the scored prefixes in `batch.calls`.

    `hidden_BKD` is the decoder's output at the latest call; for an ensemble, the output of the first model.
    """

    batch: Sentences
    parts: Sequence[Any]
    hidden_BKD: Tensor = field(init=False)

    def __call__(self, tokens_BK: Tensor, *places: Tensor) -> Tensor:
        if self.batch.stop and self.batch.stop.is_set():
            raise CancelledError
        self.batch.calls += tokens_BK.numel()
        logits_BKV = mean_of([part(tokens_BK, *places) for part in self.parts])
        self.hidden_BKD = self.parts[0].hidden_BKD
        return logits_BKV

    def select(self, sentences: Tensor) -> None:
        for part in self.parts:
            part.select(sentences)


def next_logits(logits: Tensor) -> Tensor:
    """The logits of the next token, [..., V], in float32, with -inf for PAD and BOS, which are never chosen.

    Logits that are float32 are overwritten.
    """
    logits = logits.float()
    logits[..., PAD] = logits[..., BOS] = -inf
    return logits


def mean_of(logits: Sequence[Tensor]) -> Tensor:
    """The logits of an ensemble: the logarithm of the mean of the models' probabilities."""
    if len(logits) == 1:
        return logits[0]
    return torch.stack([each.float().log_softmax(-1) for each in logits]).logsumexp(0) - math.log(len(logits))


def rows_B1(tensor: Tensor) -> Tensor:
    """The numbers of the rows of a tensor, [B, 1]. `tensor[rows_B1(place_BK), place_BK]` are K places of each row."""
    return torch.arange(len(tensor), device=tensor.device)[:, None]


def select(holder: object, sentences: Tensor) -> None:
    """Keep the sentences with these indices in each tensor that an object has as an attribute, [B, ...]."""
    for name, tensor in vars(holder).items():
        if isinstance(tensor, Tensor):
            setattr(holder, name, tensor.index_select(0, sentences))


def float_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The boolean mask as floats: 0 where it is true, -inf elsewhere. So attention need not convert it in every layer."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -inf)


class Cached:
    """A model that decodes step by step: the keys and values of each decoder layer, and the float mask of the source.

    `hidden_BKD` is the decoder's output at the latest call.
    """

    hidden_BKD: Tensor

    def __init__(self, model: Transformer, source_BS: Tensor, keys: type[Keys] = Keys) -> None:
        self.model = model
        masks = Masks.of(source_BS, source_BS[:, :0], model.config.neighbourhood)
        memory_BSD, self.caches = model.encode(source_BS, masks), list[LayerCache]()
        for layer in model.decoder:
            k_BHSE, v_BHSE = layer.cross_attention.keys_values(memory_BSD)
            self.caches.append(LayerCache(keys(k_BHSE[:, :, :0], v_BHSE[:, :, :0]), Keys(k_BHSE, v_BHSE)))
        self.source_mask = float_mask(masks.cross, memory_BSD.dtype)

    def decode(self, tokens_BK: Tensor, mask: Tensor, place: Place) -> Tensor:
        """The logits of the next token, [B, K, V]. The K tokens of a sentence are queries on shared keys."""
        masks = Masks(mask[:, None], self.source_mask)
        self.hidden_BKD = self.model.decode(tokens_BK, None, masks, place, self.caches)
        return self.model.logits(self.hidden_BKD)

    def select(self, sentences: Tensor) -> None:
        """Keep the sentences with these indices and drop the others."""
        for holder in (self, *chain(*self.caches)):
            select(holder, sentences)


class ModelStep(Cached):
    """The step function of a Transformer. A search may drop a sentence, with all its hypotheses; so do the caches then."""

    def __init__(self, model: Transformer, source_BS: Tensor) -> None:
        super().__init__(model, source_BS)
        # As floats: which of the N keys in the caches belong to each hypothesis or its ancestors.
        self.mask_BKN = self.source_mask.new_empty(len(source_BS), 1, 0)
        self.ends: list[int] = []  # for each position, the number of keys up to and including it

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        """The logits of the token after each newest token, [B, K, V].

        An origin is the hypothesis of the previous call that the token continues: its index into that call's flattened
        [B, K]. At the first call K is 1 and each token is its own origin.
        """
        sentences, width, _ = self.mask_BKN.shape  # of the previous call
        if len(tokens_BK) < sentences:
            self.select(origin_BK[:, 0] // width)
        self.advance(origin_BK % width)
        end = len(self.ends)
        return self.decode(tokens_BK, self.mask_BKN, (torch.arange(end - 1, end, device=tokens_BK.device), end))

    def advance(self, parent_BK: Tensor) -> None:
        """Extend the mask by one position. Each hypothesis continues hypothesis `parent_BK` of its sentence."""
        near = self.model.config.neighbourhood
        mask_BKN = self.mask_BKN[rows_B1(parent_BK), parent_BK]
        if near and len(self.ends) > near:
            mask_BKN[..., : self.ends[-1 - near]] = -inf
        own_KK = torch.eye(parent_BK.shape[1], dtype=torch.bool, device=parent_BK.device)
        own_KK = float_mask(own_KK, mask_BKN.dtype)
        self.mask_BKN = torch.cat([mask_BKN, own_KK.expand(len(parent_BK), -1, -1)], 2)
        self.ends.append(self.mask_BKN.shape[2])


class SlotKeys(Keys):
    """The keys and values of one decoder layer. Those of a node are in its slot."""

    slot_BK: Tensor

    def append(self, k_BHKE: Tensor, v_BHKE: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the nodes. Returns those of all slots, each [B, H, N, E]."""
        place = rows_B1(k_BHKE), slice(None), self.slot_BK
        self.k[place], self.v[place] = k_BHKE.transpose(1, 2), v_BHKE.transpose(1, 2)
        return self.k, self.v


class TreeStep(Cached):
    """The step function of searches that return to an earlier prefix, such as depth-first search and tree search.

    It scores nodes of a tree of prefixes. All nodes of a sentence share the keys and values of their ancestors. Each node
    is kept in a slot, a number from 0. A new node replaces an earlier one in the same slot, so a depth-first search needs
    one slot per position.
    """

    def __init__(self, model: Transformer, source_BS: Tensor, slots: int) -> None:
        super().__init__(model, source_BS, SlotKeys)
        self.keys = [cast(SlotKeys, cache.target) for cache in self.caches]
        # There is one row more than slots. Index -1, the parent of BOS, reads the last row: no ancestors and position -1.
        self.path_BNN = torch.zeros(len(source_BS), 1, 0, dtype=torch.bool, device=source_BS.device)
        self.position_BN = torch.full((len(source_BS), 1), -1, device=source_BS.device)
        self.grow(slots)

    def grow(self, slots: int) -> None:
        """Enlarge to `slots` slots."""
        more = slots - self.path_BNN.shape[2]
        for keys in self.keys:
            keys.grow(slots)
        self.path_BNN = F.pad(self.path_BNN, (0, more, 0, more))
        self.position_BN = F.pad(self.position_BN, (0, more), value=-1)

    def __call__(self, tokens_BK: Tensor, parent_BK: Tensor, slot_BK: Tensor) -> Tensor:
        """The logits of the next token after each node, [B, K, V].

        The arguments are the newest token of each node, the slot of its parent (the prefix without the newest token; -1
        if the newest token is BOS), and its own slot. The parent has been scored in an earlier call.
        """
        needed, slots = int(slot_BK.max()) + 1, self.path_BNN.shape[2]
        if needed > slots:
            self.grow(max(needed, slots * 3 // 2))
        sentence_B1 = rows_B1(tokens_BK)
        path_BKN = self.path_BNN[sentence_B1, parent_BK].scatter(2, slot_BK[:, :, None], True)
        position_BK = self.position_BN[sentence_B1, parent_BK] + 1
        self.path_BNN[sentence_B1, slot_BK], self.position_BN[sentence_B1, slot_BK] = path_BKN, position_BK
        if near := self.model.config.neighbourhood:
            path_BKN = path_BKN & (position_BK[:, :, None] - self.position_BN[:, None, :-1] <= near)
        for keys in self.keys:
            keys.slot_BK = slot_BK
        place = position_BK, int(position_BK.max()) + 1
        return self.decode(tokens_BK, float_mask(path_BKN, self.source_mask.dtype), place)


def tree_search(
    batch: Sentences,
    slots: int,
    searches: Sequence[Generator[Request, Answer, Translation]],
    answers: Callable[[Tensor, Tensor], Iterable[Answer]],
) -> list[list[Translation]]:
    """The translation that the search of each sentence returns. `slots` are those of `Sentences.tree`.

    A search yields the nodes to decode. One call of the models decodes one node of every unfinished search. `answers` takes
    the decoder's output [B, D] and the logits [B, V], and returns what each search receives.
    """
    tree, results = batch.tree(slots), dict[int, list[Translation]]()
    running, received = [*enumerate(searches)], list[Any]([None] * len(searches))
    while running:
        requests, rows = [], []
        for row, ((number, search), answer) in enumerate(zip(running, received)):
            try:
                requests.append(search.send(answer))
                rows.append(row)
            except StopIteration as end:
                results[number] = [end.value]
        if requests:
            if len(rows) < len(running):
                tree.select(torch.tensor(rows, device=batch.device))
            logits_BKV = tree(*torch.tensor(requests, device=batch.device).T[:, :, None])
            received = [*answers(tree.hidden_BKD[:, 0], next_logits(logits_BKV[:, 0]))]
        running = [running[row] for row in rows]
    return [results[number] for number in range(len(searches))]
