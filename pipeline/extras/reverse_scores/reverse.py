"""Scores without references: the probability of a source given its translation, by a model of the reverse direction."""

import math

from transformer.decoders.forced import log_probabilities
from transformer.translator import Translator


def source_log_prob(reverse: Translator, targets: list[str], sources: list[list[int]]) -> list[float]:
    """log p(source | target) of each pair, in nats. An empty target has a score, too.

    `targets` are normalised. `sources` are ids of pieces in the reverse model's vocabulary, without EOS.
    """
    given = reverse.encode(targets)
    scores = log_probabilities([reverse.model], given, sources, reverse.config.batch_tokens, empty=True)
    return [round(score, 4) for score in scores]


def source_probability(reverse: Translator, translations: list[str], lines: list[str]) -> list[float]:
    """For each pair, the geometric mean of the probabilities of the source's pieces and EOS, from 0 to 1."""
    sources = reverse.encode(lines)
    scores = source_log_prob(reverse, reverse.normalise(translations), sources)
    return [math.exp(score / (len(source) + 1)) for score, source in zip(scores, sources)]
