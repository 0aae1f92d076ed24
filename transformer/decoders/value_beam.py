"""Beam search that ranks candidates by log-likelihood and value (Leblond et al. 2021, He et al. 2017).

Shapes: B sentences still searched, K live hypotheses of each, T tokens so far, C candidates for the next hypotheses, D
d_model, V vocabulary.
"""

from dataclasses import dataclass
from math import inf

from transformer.config.decoders import ValueBeamConfig
from transformer.config.decoding import DecodingConfig
from transformer.decoders.beam import continuations, extend, release, start
from transformer.decoders.steps import Sentences, Translation, rows_B1
from transformer.value import Values

LEAST = 1e-6  # a smaller value counts as this, so that its logarithm is finite


@dataclass(frozen=True)
class ValueBeam:
    """Value-guided beam search as a `Decoder`.

    The 2 * beam most probable candidates are decoded, which gives their values. The beam keeps the candidates with the
    highest r = log p + w / (1 - w) log v. This order is that of (1 - w) log p + w log v. The score of a hypothesis is r
    divided by the length penalty. Since r is at most log p, the bound by which beam search ends is also valid here. With
    w = 0 the search is beam search.
    """

    config: DecodingConfig
    own: ValueBeamConfig
    values: Values

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        config, step, ratio = self.config, batch.start(), self.own.weight / (1 - self.own.weight)
        state = start(batch, n_best, config.beam)
        results: dict[int, list[Translation]] = {}
        logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
        while len(state.sentence_B):
            token_BC, parent_BC, log_prob_BC = continuations(state.log_prob_BK, logits_BKV, 2 * config.beam)
            logits_BCV = step(token_BC, state.origin_BK.gather(1, parent_BC))
            score_BC = log_prob_BC + ratio * self.values(step.hidden_BKD).clamp(min=LEAST).log()
            score_BC, order_BC = score_BC.sort(dim=1, descending=True, stable=True)
            token_BC, parent_BC, log_prob_BC = (each.gather(1, order_BC) for each in (token_BC, parent_BC, log_prob_BC))
            chosen_BK = extend(state, (token_BC, parent_BC, score_BC), config, config.beam)
            # `extend` has stored scores in `log_prob_BK`. The next step and the bound in `release` need log-probabilities.
            # A score of -inf: there are fewer candidates without EOS than the beam has hypotheses.
            ended_BK = state.log_prob_BK == -inf
            state.log_prob_BK = log_prob_BC.gather(1, chosen_BK).masked_fill(ended_BK, -inf)
            state.origin_BK = order_BC.gather(1, chosen_BK) + rows_B1(order_BC) * order_BC.shape[1]
            release(state, results, config)
            logits_BKV = logits_BCV.flatten(0, 1)[state.origin_BK]
        return [results[number] for number in range(len(batch.limits))]

    def width(self, n_best: int) -> int:
        return 2 * self.config.beam
