"""Exact search: the most probable of all translations, found depth first (Stahlberg and Byrne 2019).

Shapes: B sentences still searched, V vocabulary.
"""

import dataclasses
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from transformer.config.decoders import ExactConfig
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import Beam
from transformer.decoders.steps import Request, Sentences, Translation, tree_search

SLOTS = 64  # positions for which a tree has memory at first


@dataclass(frozen=True)
class Exact:
    """Exact search as a `Decoder`. Its score is the log-probability, without length penalty. It gives one translation.

    If the search of a sentence is not complete after `max_steps` prefixes, the result is the best translation found, with
    `finished` False.
    """

    config: DecodingConfig
    own: ExactConfig

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        config = dataclasses.replace(self.config, alpha=0.0)
        found = Beam(config).search(batch, 1)
        searches = [depth_first(limit, best, self.own.max_steps) for limit, (best, *_) in zip(batch.limits, found)]
        # The tree grows with the translations, which are much shorter than the limits. Its memory is quadratic.
        slots = min(max(batch.limits), SLOTS)
        return tree_search(batch, slots, searches, lambda _, logits_BV: logits_BV.log_softmax(-1).double().cpu().numpy())

    def width(self, n_best: int) -> int:
        return self.config.beam


def depth_first(limit: int, best: Translation, steps: int) -> Generator[Request, np.ndarray, Translation]:
    """The search of one sentence: yields at most `steps` prefixes, and receives the log-probabilities of the next token.

    `limit` is the maximum number of tokens, EOS included. `best` is the result of beam search.
    """
    # A hypothesis that beam search cut at the limit has no EOS, so its score is not a bound.
    bound = best.score if len(best.ids) < limit else -inf
    prefix, waiting = list[int](), [iter([(BOS, 0.0)])]  # `waiting` has the continuations of each shorter prefix
    while waiting:
        token, score = next(waiting[-1], (EOS, -inf))
        if score <= bound:  # scores only fall, so a lower one cannot lead to a better translation
            waiting.pop()
            continue
        if not steps:
            return dataclasses.replace(best, finished=False)
        steps -= 1
        slot = len(waiting) - 1
        prefix[slot:] = [token]
        totals_V = score + (yield token, slot - 1, slot)
        if totals_V[EOS] > bound:
            bound = float(totals_V[EOS])
            best = Translation(prefix[1:], bound)
        waiting.append(continuations(totals_V, bound) if len(prefix) < limit else iter(()))
    return best


def continuations(totals_V: np.ndarray, bound: float) -> Iterator[tuple[int, float]]:
    """The tokens with a total above the `bound`, which may lead to a better translation, and their totals; best first."""
    (tokens,) = np.nonzero(totals_V > bound)
    order = tokens[np.argsort(-totals_V[tokens], kind="stable")]
    # Lists, so that the iterator does not keep the scores of the whole vocabulary.
    found = zip(order.tolist(), totals_V[order].tolist())
    return ((token, total) for token, total in found if token not in (EOS, PAD, BOS))
