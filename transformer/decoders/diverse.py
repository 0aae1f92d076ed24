"""Diverse beam search (Vijayakumar et al. 2018) with the Hamming penalty.

Shapes: B sentences still searched, G groups, W hypotheses of each group (1 at first), K hypotheses of all groups, T tokens
so far, V vocabulary, C candidates.
"""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.config.decoders import DiverseConfig
from transformer.config.decoding import DecodingConfig
from transformer.decoders.beam import BeamState, decided, extend, finished, start
from transformer.decoders.steps import Sentences, Translation, next_logits, rows_B1, select


@dataclass(frozen=True)
class Diverse:
    """The beam is split into `groups` of equal width, which search one after another at each position.

    A group ranks a token lower by `diversity` for each live hypothesis of an earlier group that has taken the token at
    this position. The penalties stay in the log-probability of a hypothesis, and so in its score. With diversity 0, every
    group is the same beam of width beam / groups; with one group, the search is beam search.
    """

    config: DecodingConfig
    own: DiverseConfig

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        config = dataclasses.replace(self.config, beam=self.config.beam // self.own.groups)
        step, groups = batch.start(), [start(batch, n_best, config.beam) for _ in range(self.own.groups)]
        results: dict[int, list[Translation]] = {}
        tokens_BK, origin_BK = groups[0].tokens_BKT[:, :, -1], groups[0].origin_BK
        while len(tokens_BK):
            logits_BKV = next_logits(step(tokens_BK, origin_BK))
            before = extend_groups(groups, logits_BKV.log_softmax(-1), config, self.own.diversity)
            tokens_BK = torch.cat([group.tokens_BKT[:, :, -1] for group in groups], 1)
            done_B = torch.stack([decided(group, config) for group in groups]).all(0)
            lists = [finished(group, done_B) for group in groups]
            for number in lists[0]:
                results[number] = merged([each[number] for each in lists], batch.limits[number], n_best)
            left = (~done_B).nonzero()[:, 0]
            origin_BK, tokens_BK = before[left], tokens_BK[left]
            for group in groups:
                select(group, left)
        return [results[number] for number in range(len(batch.limits))]

    def width(self, n_best: int) -> int:
        return self.config.beam


def extend_groups(groups: list[BeamState], log_probs_BKV: Tensor, config: DecodingConfig, diversity: float) -> Tensor:
    """Extend each group in turn. Returns the origin of each new hypothesis, [B, G * W].

    K is 1 at the first step, where all groups continue BOS, then G * W.
    """
    sentences, width, vocabulary = log_probs_BKV.shape
    own = width // len(groups)  # hypotheses of a group; 0 at the first step if several groups share one hypothesis
    taken_BV, origins = log_probs_BKV.new_zeros(sentences, vocabulary), []
    for number, group in enumerate(groups):
        first = number * own
        parts_BWV = log_probs_BKV[:, first : first + own] if own else log_probs_BKV
        total_BWV = group.log_prob_BK[..., None] + parts_BWV - diversity * taken_BV[:, None]
        log_prob_BC, place_BC = total_BWV.flatten(1).topk(min(2 * config.beam, total_BWV[0].numel()))
        extend(group, (place_BC % vocabulary, place_BC // vocabulary, log_prob_BC), config, config.beam)
        newest_BW = group.tokens_BKT[:, :, -1]
        taken_BV.scatter_add_(1, newest_BW, torch.ones_like(newest_BW, dtype=taken_BV.dtype))
        within_BW = group.origin_BK % parts_BWV.shape[1] + first
        origins.append(within_BW + rows_B1(within_BW) * width)
    return torch.cat(origins, 1)


def merged(lists: list[list[Translation]], limit: int, n_best: int) -> list[Translation]:
    """The best of the groups' translations, each once.

    A group without a finished hypothesis gives one of `limit` tokens, whose score lacks EOS. It is used only if no group
    has a finished hypothesis, as in beam search.
    """
    every = {tuple(each.ids): each for translations in reversed(lists) for each in translations}
    ended = [each for each in every.values() if len(each.ids) < limit]
    return sorted(ended or every.values(), key=lambda each: -each.score)[:n_best]
