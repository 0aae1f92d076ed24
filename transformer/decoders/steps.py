"""What all decoders share: the function that scores the next token, a batch of sentences, and a translation.

Shapes: B sentences, K hypotheses of each, S source positions, D d_model, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.tree import Tree, TreeStep
from transformer.layout import pad
from transformer.model import Transformer

Step = Callable[[Tensor, Tensor], Tensor]
"""Takes the newest tokens [B, K] and the origin of each [B, K], returns the logits of the next token [B, K, V].

An origin is the hypothesis of the previous call that the token continues: its index into that call's flattened [B, K]. At
the first call K is 1 and each token is its own origin. A search may drop a sentence, with all its hypotheses."""


@dataclass(frozen=True)
class Translation:
    """Token ids without BOS and EOS, and the score by which the decoder ranks them.

    The score of beam search is the log-probability, less the regulariser, divided by the length penalty. `finished` is
    False if the search ran out of its budget, so that a better translation may exist.
    """

    ids: list[int]
    score: float
    finished: bool = True


class GuidedStep(Protocol):
    """A `Step` that keeps the decoder's output of its latest call; for an ensemble, the output of the first model."""

    hidden_BKD: Tensor

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor, /) -> Tensor: ...


class Batch:
    """The sentences that a decoder translates in one call by a model or by an ensemble.

    `sources` are ids without EOS. `numbers` has the number of each sentence in its set: random numbers depend on it and
    not on the batch. A translation has at most `extra_length` tokens more than its source, EOS included (`limits`).
    `calls` counts the prefixes that the models have scored.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        sources: Sequence[Sequence[int]],
        numbers: Sequence[int],
        extra_length: int,
    ) -> None:
        self.models, self.numbers = models, numbers
        self.device = models[0].embedding.device
        self.source_BS = pad([[*source, EOS] for source in sources]).to(self.device)
        self.limits = [len(source) + extra_length for source in sources]
        self.calls = 0

    def start(self) -> GuidedStep:
        """A new step function, which begins with all sentences."""
        return Counted(self, [ModelStep(model, self.source_BS) for model in self.models])

    def tree(self, slots: int) -> Tree:
        """A new tree of prefixes with this many slots per sentence. It grows if a node needs a slot beyond them."""
        return Counted(self, [TreeStep(model, self.source_BS, slots) for model in self.models])


class Decoder(Protocol):
    """A search with its settings."""

    def search(self, batch: Batch, n_best: int) -> list[list[Translation]]:
        """At least one and at most `n_best` translations of each sentence, best first."""

    def width(self, n_best: int) -> int:
        """The number of hypotheses of a sentence that are in memory at a time."""


class Counted:
    """The steps or the trees of an ensemble or of one model. Counts the scored prefixes in `batch.calls`."""

    hidden_BKD: Tensor

    def __init__(self, batch: Batch, parts: Sequence[Any]) -> None:
        self.batch, self.parts = batch, parts

    def __call__(self, tokens_BK: Tensor, *places: Tensor) -> Tensor:
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
    logits[..., PAD] = logits[..., BOS] = float("-inf")
    return logits


def mean_of(logits: Sequence[Tensor]) -> Tensor:
    """The logits of an ensemble: the logarithm of the mean of the models' probabilities."""
    if len(logits) == 1:
        return logits[0]
    return torch.stack([each.float().log_softmax(-1) for each in logits]).logsumexp(0) - math.log(len(logits))


class ModelStep:
    """The step function of a Transformer: drops from its cache the sentences that the search has dropped, then decodes.

    `hidden_BKD` is the decoder's output at the latest call. The logits are its projection.
    """

    hidden_BKD: Tensor

    def __init__(self, model: Transformer, source_BS: Tensor) -> None:
        self.model, self.cache = model, model.start(source_BS)
        self.shape: tuple[int, ...] = (len(source_BS), 1)  # sentences and hypotheses of the previous call

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        sentences, width = self.shape
        if len(tokens_BK) < sentences:
            self.cache.select(origin_BK[:, 0] // width)
        self.shape = tokens_BK.shape
        self.hidden_BKD, logits_BKV = self.model.step(tokens_BK, origin_BK % width, self.cache)
        return logits_BKV
