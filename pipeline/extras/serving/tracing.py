"""The beam search of one sentence, step by step: the candidates of every step, and the alternatives to every token.

The search is that of `decoding.translate` and gives the same translation. A prefix can be forced on the translation.

Shapes: as in decoders/beam.py, with B = 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.beam import continuations, decided, extend, finished, start, unforced
from transformer.decoders.steps import Sentences, Translation, next_logits
from transformer.layout import pad
from transformer.model import Transformer

ALTERNATIVES = 8  # tokens that are kept of each distribution


@dataclass(frozen=True)
class Candidate:
    """A live hypothesis continued by one token."""

    token: int
    parent: int  # the hypothesis, as an index into the candidates of the previous step; 0 at the first step
    probability: float  # of the token after the hypothesis
    log_prob: float  # of the hypothesis with this token
    fate: str  # kept, finished or dropped


@dataclass(frozen=True)
class Step:
    candidates: list[Candidate]  # the most probable first; a forced token that is not among these is last
    leader: list[int]  # the best finished hypothesis (PAD may follow), or the most probable live one where none is finished
    translation: Translation | None  # None before the last step


class Trace:
    """One search. `steps` runs it."""

    def __init__(
        self, model: Transformer, source: Sequence[int], config: DecodingConfig, prefix: Sequence[int] = ()
    ) -> None:
        """`source` has no EOS. The translation begins with `prefix`. A prefix that ends with EOS is a whole translation.

        Raises UserError unless the prefix, without EOS, is shorter than the longest possible translation with EOS.
        """
        self.model, self.config, self.prefix = model, config, list(prefix)
        self.batch = Sentences([model], [source], [0], config.extra_length)
        (self.limit,) = self.batch.limits
        if len(self.prefix) - (self.prefix[-1:] == [EOS]) >= self.limit:
            raise UserError(f"a prefix of {len(self.prefix)} pieces; at most {self.limit - 1} are possible for this text")

    @torch.inference_mode()
    def steps(self) -> Iterator[Step]:
        """Run the search. Each step is computed when the caller requests it."""
        state, result = start(self.batch, 1, self.config.beam), None
        step, beam = self.batch.start(), self.config.beam
        indices = [0]  # of the live hypotheses in the candidates of the previous step
        while result is None:
            logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
            log_prob_KV = next_logits(logits_BKV[0].clone()).log_softmax(-1)
            total_KV = state.log_prob_BK[0, :, None] + log_prob_KV
            found = taken = continuations(state.log_prob_BK, logits_BKV, 2 * beam)
            if state.length < len(self.prefix):
                without_BKV = unforced(state, logits_BKV, None, [self.prefix], 0)
                taken = continuations(state.log_prob_BK, logits_BKV, 1, without_BKV=without_BKV)
            extend(state, taken, self.config, beam)
            live = list(zip(state.origin_BK[0].tolist(), state.tokens_BKT[0, :, -1].tolist()))
            ended = state.best_score_BF[0, 0] > float("-inf")
            leader = (state.best_BFT[0, 0] if ended else state.tokens_BKT[0, 0, 1:]).tolist()
            places, ends = possible(found), possible(taken)[:beam]
            places += [place for place in live if place not in places]
            candidates = []
            for parent, token in places:
                remains = (parent, token) in (ends if token == EOS else live)
                fate = "dropped" if not remains else "finished" if token == EOS else "kept"
                shares = log_prob_KV[parent, token].exp().item(), total_KV[parent, token].item()
                candidates.append(Candidate(token, indices[parent], *shares, fate))
            indices = [places.index(place) for place in live]
            done_B = decided(state, self.config)
            result = finished(state, done_B)[0][0] if done_B.all() else None
            yield Step(candidates, leader, result)

    @torch.inference_mode()
    def alternatives(self, ids: Sequence[int]) -> list[list[tuple[int, float]]]:
        """The most probable tokens at each position of the translation `ids`, and after it if it can be longer.

        Each has its probability.
        """
        logits_BTV = self.model(self.batch.source_BS, pad([[BOS, *ids]]).to(self.batch.device))
        share_TA, token_TA = next_logits(logits_BTV)[0, : self.limit].softmax(-1).topk(ALTERNATIVES)
        return [list(zip(*row)) for row in zip(token_TA.tolist(), share_TA.tolist())]


def possible(found: tuple[Tensor, Tensor, Tensor]) -> list[tuple[int, int]]:
    """The continuations that `continuations` found, as live hypothesis and token, most probable first, if possible."""
    token_C, parent_C, log_prob_C = (tensor[0] for tensor in found)
    possible_C = log_prob_C > float("-inf")
    return list(zip(parent_C[possible_C].tolist(), token_C[possible_C].tolist()))
