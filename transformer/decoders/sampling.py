"""Sampling: each token is drawn from the model's distribution, or from a truncated part of it.

Shapes: B sentences still searched, K samples of each (1 at first), V vocabulary, T tokens so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.config.decoders import SamplingConfig
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.steps import Sentences, Translation, next_logits

AT_ONCE = 16  # samples of a sentence that are drawn together


@dataclass(frozen=True)
class Sampling:
    """Sampling as a `Decoder`. An n-best list holds n samples, possibly repeated, the most probable first.

    The score of a sample is its log-probability by the model, without temperature and truncation.
    """

    config: DecodingConfig
    own: SamplingConfig

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        drawn: list[list[Translation]] = [[] for _ in batch.limits]
        for first in range(0, n_best, AT_ONCE):
            more = samples(batch, range(first, min(n_best, first + AT_ONCE)), self.own)
            drawn = [before + after for before, after in zip(drawn, more)]
        return [sorted(each, key=lambda sample: -sample.score) for each in drawn]

    def width(self, n_best: int) -> int:
        return min(n_best, AT_ONCE)


def samples(batch: Sentences, numbers: Sequence[int], own: SamplingConfig) -> list[list[Translation]]:
    """The samples of each sentence that have these numbers.

    A sample depends on the seed, on its number and on the number of its sentence in the set. It ends at EOS or at the
    sentence's limit.
    """
    step, count, device = batch.start(), len(numbers), batch.device
    random_BKT = torch.from_numpy(uniform(own.seed, batch.numbers, numbers, max(batch.limits))).to(device)
    limit_B, sentence_B = torch.tensor(batch.limits, device=device), torch.arange(len(batch.limits), device=device)
    tokens_BKT, origin_BK = torch.full((len(batch.limits), 1, 1), BOS, device=device), sentence_B[:, None]
    log_prob_BK = torch.zeros(len(batch.limits), count, device=device)
    ended_BK = torch.zeros_like(log_prob_BK, dtype=torch.bool)
    results: dict[int, list[Translation]] = {}
    while len(sentence_B):
        width = tokens_BKT.shape[1]  # 1 at first: all samples continue BOS
        logits_BKV = next_logits(step(tokens_BKT[:, :, -1], origin_BK))
        log_probs_BKV = logits_BKV.log_softmax(-1).expand(-1, count, -1)
        drawn_BK = draw(truncated(log_probs_BKV, own), random_BKT[:, :, tokens_BKT.shape[2] - 1])
        drawn_BK = torch.where(ended_BK, PAD, drawn_BK)
        gained_BK = log_probs_BKV.gather(2, drawn_BK[:, :, None])[:, :, 0]
        log_prob_BK = torch.where(ended_BK, log_prob_BK, log_prob_BK + gained_BK)
        tokens_BKT = torch.cat([tokens_BKT.expand(-1, count, -1), drawn_BK[:, :, None]], 2)
        ended_BK = (drawn_BK == EOS) | (drawn_BK == PAD)
        done_B = ended_BK.all(1) | (limit_B < tokens_BKT.shape[2])
        for number, rows, scores in zip(*(tensor[done_B].tolist() for tensor in (sentence_B, tokens_BKT, log_prob_BK))):
            plain = ([token for token in row if token not in (BOS, EOS, PAD)] for row in rows)
            results[number] = list(map(Translation, plain, scores))
        left = (~done_B).nonzero()[:, 0]
        origin_BK = left[:, None] * width + torch.arange(width, device=device).expand(count)
        limit_B, sentence_B, random_BKT = limit_B[left], sentence_B[left], random_BKT[left]
        tokens_BKT, log_prob_BK, ended_BK = tokens_BKT[left], log_prob_BK[left], ended_BK[left]
    return [results[number] for number in range(len(batch.limits))]


def uniform(seed: int, sentences: Sequence[int], numbers: Sequence[int], length: int) -> np.ndarray:
    """Random numbers from 0 to 1 for each sentence, sample and position, [B, K, T]."""
    rows = [np.random.default_rng((seed, sentence, number)).random(length) for sentence in sentences for number in numbers]
    return np.array(rows).reshape(len(sentences), len(numbers), length)


def truncated(log_probs_BKV: Tensor, own: SamplingConfig) -> Tensor:
    """The probabilities from which tokens are drawn, [B, K, V], in float64, not normalised; 0 for tokens left out.

    A token must pass each of the truncations. All of them judge the distribution after the temperature, and all keep its
    most probable token.
    """
    probs_BKV = (log_probs_BKV.double() / own.temperature).softmax(-1)
    kept_BKV = torch.ones_like(probs_BKV, dtype=torch.bool)
    if own.top_k or own.top_p < 1:  # by rank, since many probabilities in bfloat16 are equal
        sorted_BKV, order_BKV = probs_BKV.sort(descending=True)
        more_probable_BKV = sorted_BKV.cumsum(-1) - sorted_BKV  # the mass of the tokens before each
        passed_BKV = (more_probable_BKV < own.top_p) | (own.top_p == 1)
        if own.top_k:
            passed_BKV[..., own.top_k :] = False
        kept_BKV &= torch.zeros_like(kept_BKV).scatter(2, order_BKV, passed_BKV)
    if own.epsilon:
        kept_BKV &= probs_BKV >= probs_BKV.amax(-1, keepdim=True).clamp(max=own.epsilon)
    return torch.where(kept_BKV, probs_BKV, 0.0)


def draw(probs_BKV: Tensor, random_BK: Tensor) -> Tensor:
    """The tokens [B, K] that the random numbers stand for, by the inverse of the cumulative distribution.

    Probabilities that are NaN, which a model with NaN weights gives, stand for the last token.
    """
    cumulative_BKV = probs_BKV.cumsum(-1)
    # The factor keeps the place below the last sum after rounding: no token after the last possible one is drawn.
    place_BK1 = (random_BK * (1 - 1e-12))[:, :, None] * cumulative_BKV[..., -1:]
    return torch.searchsorted(cumulative_BKV, place_BK1, right=True)[:, :, 0].clamp(max=probs_BKV.shape[2] - 1)
