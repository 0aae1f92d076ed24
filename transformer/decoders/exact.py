"""Exact search: the most probable of all translations, found depth first (Stahlberg and Byrne 2019).

Shapes: B sentences still searched, V vocabulary.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from transformer.config.decoders import ExactConfig
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import beam_search
from transformer.decoders.steps import Batch, Counted, Translation, next_logits

SLOTS = 64  # positions for which a tree has memory at first


@dataclass(frozen=True)
class Exact:
    """Exact search as a `Decoder`. Its score is the log-probability, without length penalty. It gives one translation.

    If the search of a sentence is not complete after `max_steps` prefixes, the result is the best translation found, with
    `finished` False.
    """

    config: DecodingConfig
    own: ExactConfig

    def search(self, batch: Batch, n_best: int) -> list[list[Translation]]:
        config = dataclasses.replace(self.config, alpha=0.0)
        found = beam_search(batch.start(), batch.limits, config, batch.device)
        walks = [Walk(limit, best, self.own.max_steps) for limit, (best, *_) in zip(batch.limits, found)]
        # The tree grows with the translations, which are much shorter than the limits. Its memory is quadratic.
        depth_first(batch.tree(min(max(batch.limits), SLOTS)), walks, batch.device)
        return [[dataclasses.replace(walk.best, finished=walk.finished)] for walk in walks]

    def width(self, n_best: int) -> int:
        return self.config.beam


@dataclass
class Walk:
    """The depth-first search of one sentence. `best` is initially the result of beam search."""

    limit: int  # the maximum number of tokens, EOS included
    best: Translation
    steps_left: int
    ids: list[int] = field(default_factory=list)  # the prefix to score next
    score: float = 0.0  # its log-probability
    finished: bool = False
    waiting: list[Iterator[tuple[int, float]]] = field(default_factory=list)  # continuations of each shorter prefix

    def __post_init__(self) -> None:
        # A hypothesis that beam search cut at the limit has no EOS, so its score is not a bound.
        self.bound = self.best.score if len(self.best.ids) < self.limit else float("-inf")

    def visit(self, log_probs_V: np.ndarray) -> None:
        """Take the prefix's log-probabilities of the next token and move on to the next prefix."""
        totals_V = self.score + log_probs_V
        if totals_V[EOS] > self.bound:
            self.bound = float(totals_V[EOS])
            self.best = Translation(list(self.ids), self.bound)
        self.waiting.append(self.continuations(totals_V) if len(self.ids) + 1 < self.limit else iter(()))
        self.steps_left -= 1
        self.finished = not self.advance()

    def continuations(self, totals_V: np.ndarray) -> Iterator[tuple[int, float]]:
        """The tokens that may lead to a better translation, each with the score of prefix and token, the best first."""
        (tokens,) = np.nonzero(totals_V > self.bound)
        order = tokens[np.argsort(-totals_V[tokens], kind="stable")]
        # Lists, so that the iterator does not keep the scores of the whole vocabulary.
        found = zip(order.tolist(), totals_V[order].tolist())
        return ((token, total) for token, total in found if token not in (EOS, PAD, BOS))

    def advance(self) -> bool:
        """Go to the next prefix above the bound. Returns False if there is none: the search is complete."""
        while self.waiting:
            token, score = next(self.waiting[-1], (EOS, float("-inf")))
            if score > self.bound:  # scores only fall, so a lower one cannot lead to a better translation
                self.ids, self.score = [*self.ids[: len(self.waiting) - 1], token], score
                return True
            self.waiting.pop()
        return False


def depth_first(tree: Counted, walks: Sequence[Walk], device: torch.device) -> None:
    """Search each sentence until the search is complete or its steps are used up.

    One call of `tree` scores one prefix of every sentence that is still searched.
    """
    active = list(walks)
    while active:
        depths = [len(walk.ids) for walk in active]
        newest = [walk.ids[-1] if walk.ids else BOS for walk in active]
        slot_B1 = torch.tensor(depths, device=device)[:, None]
        logits_BV = next_logits(tree(torch.tensor(newest, device=device)[:, None], slot_B1 - 1, slot_B1)[:, 0])
        for walk, log_probs_V in zip(active, logits_BV.log_softmax(-1).cpu().numpy().astype(float)):
            walk.visit(log_probs_V)
        left = [place for place, walk in enumerate(active) if not walk.finished and walk.steps_left > 0]
        if left and len(left) < len(active):
            tree.select(torch.tensor(left, device=device))
        active = [active[place] for place in left]
