"""The beam search of one sentence, step by step: the candidates of every step, and the alternatives to every token.

The search is that of `decoding.translate` and gives the same translation. A prefix can be forced on the translation.

Shapes: as in decoders/beam.py, with B = 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import EOS
from transformer.decoders.beam import BeamState, continuations, decided, extend, finished, keep, length_penalty, start
from transformer.decoders.steps import Batch, Translation, next_logits
from transformer.model import Transformer

ALTERNATIVES = 8  # tokens that are kept of each distribution

Place = tuple[int, int]
"""A candidate: the live hypothesis that it continues, 0 to K - 1, and the token."""

Fate = Literal["kept", "finished", "dropped"]
Alternative = tuple[int, float]
"""A token and its probability."""


@dataclass(frozen=True)
class Candidate:
    """A live hypothesis continued by one token."""

    token: int
    parent: int  # the hypothesis, as an index into the candidates of the previous step; 0 at the first step
    probability: float  # of the token after the hypothesis
    log_prob: float  # of the hypothesis with this token
    fate: Fate


@dataclass(frozen=True)
class Step:
    """One step of the search."""

    candidates: list[Candidate]  # the most probable first; a forced token that is not among these is last
    leader: list[int]  # the best finished hypothesis (PAD may follow), or the most probable live one where none is finished
    translation: Translation | None  # None before the last step


class Trace:
    """One search. `steps` runs it. Call `alternatives` after `steps` has ended."""

    def __init__(
        self, model: Transformer, source: Sequence[int], config: DecodingConfig, prefix: Sequence[int] = ()
    ) -> None:
        """`source` has no EOS. The translation begins with `prefix`. A prefix that ends with EOS is a whole translation.

        Raises UserError unless the prefix, without EOS, is shorter than the longest possible translation with EOS.
        """
        self.config, self.prefix = config, list(prefix)
        self.batch = Batch([model], [source], [0], config.extra_length)
        (limit,) = self.batch.limits
        if len(self.prefix) - (self.prefix[-1:] == [EOS]) >= limit:
            raise UserError(f"a prefix of {len(self.prefix)} pieces; at most {limit - 1} are possible for this text")
        self.seen: dict[tuple[int, ...], list[Alternative]] = {}  # by the tokens before

    @torch.inference_mode()
    def steps(self) -> Iterator[Step]:
        """Run the search. Each step is computed when the caller requests it."""
        state, result = start(self.batch.limits, self.batch.device), None
        step = self.batch.start()
        indices = [0]  # of the live hypotheses in the candidates of the previous step
        while result is None:
            logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
            log_prob_KV = next_logits(logits_BKV[0].clone()).log_softmax(-1)
            total_KV = state.log_prob_BK[0, :, None] + log_prob_KV
            self.keep_alternatives(state, log_prob_KV)
            forced = self.prefix[state.length] if state.length < len(self.prefix) else None
            found = continuations(state.log_prob_BK, logits_BKV, 2 * self.config.beam)
            if forced is None:
                extend(state, found, self.config, self.config.beam)
            else:
                force(state, log_prob_KV, forced, self.config)
            live = list(zip(state.origin_BK[0].tolist(), state.tokens_BKT[0, :, -1].tolist()))
            ended = state.best_score_BF[0, 0] > float("-inf")
            leader = (state.best_BFT[0, 0] if ended else state.tokens_BKT[0, 0, 1:]).tolist()
            places = ranked(found, live)
            candidates = [
                Candidate(
                    token,
                    indices[parent],
                    log_prob_KV[parent, token].exp().item(),
                    total_KV[parent, token].item(),
                    self.fate((parent, token), number, live, forced),
                )
                for number, (parent, token) in enumerate(places)
            ]
            indices = [places.index(place) for place in live]
            done_B = decided(state, self.config)
            result = finished(state, done_B)[0][0] if done_B.all() else None
            yield Step(candidates, leader, result)

    def fate(self, place: Place, rank: int, live: list[Place], forced: int | None) -> Fate:
        if place[1] == EOS:
            return "finished" if (rank < self.config.beam if forced is None else forced == EOS) else "dropped"
        return "kept" if place in live else "dropped"

    def keep_alternatives(self, state: BeamState, log_prob_KV: Tensor) -> None:
        values, tokens = log_prob_KV.topk(min(ALTERNATIVES, log_prob_KV.shape[1]))
        for before, *row in zip(state.tokens_BKT[0, :, 1:].tolist(), tokens.tolist(), values.exp().tolist()):
            self.seen[tuple(before)] = list(zip(*row))

    def alternatives(self, ids: Sequence[int]) -> list[list[Alternative]]:
        """The most probable tokens at each position of the hypothesis `ids`, and at the position after it if known."""
        before = (tuple(ids[:length]) for length in range(len(ids) + 1))
        return [self.seen[tokens] for tokens in before if tokens in self.seen]


def force(state: BeamState, log_prob_KV: Tensor, token: int, config: DecodingConfig) -> None:
    """Continue the only live hypothesis by `token`. EOS ends the search."""
    state.log_prob_BK = state.log_prob_BK + log_prob_KV[:, token]
    if token == EOS:
        keep(state, state.tokens_BKT[:, :1, 1:], state.log_prob_BK / length_penalty(state.length + 1, config))
        state.limit_B = torch.full_like(state.limit_B, state.length)
    state.tokens_BKT = torch.cat([state.tokens_BKT, torch.full_like(state.tokens_BKT[:, :, :1], token)], 2)
    state.origin_BK = torch.zeros_like(state.origin_BK)


def ranked(found: tuple[Tensor, Tensor, Tensor], live: list[Place]) -> list[Place]:
    """The continuations that `continuations` found, most probable first, then the live ones that are not among them."""
    token_C, parent_C, log_prob_C = (tensor[0] for tensor in found)
    possible_C = log_prob_C > float("-inf")
    places = list(zip(parent_C[possible_C].tolist(), token_C[possible_C].tolist()))
    return places + [place for place in live if place not in places]
