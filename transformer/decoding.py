"""Beam search (section 6.1), as a state and verbs, over any function that scores the next token.

Shapes: B sentences still searched, K beam, V vocabulary, T tokens so far.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.layout import pad
from transformer.model import DecoderCache, Transformer

Step = Callable[[Tensor, Tensor], Tensor]
"""Logits [B, K, V] of the next token, given the newest tokens [B, K] and, for each, the row of the previous call
(0 to its B x K - 1) that it goes on from; at the first call the rows are numbered as they stand."""


@dataclass(frozen=True)
class Translation:
    """Token ids without BOS and EOS, and the score: log-probability over length penalty."""

    ids: list[int]
    score: float


def length_penalty(length: int | Tensor, config: DecodingConfig) -> float | Tensor:
    """GNMT's ((5 + L) / 6)^alpha (Wu et al. 2016, which 6.1 follows), or L^alpha; L counts EOS."""
    return ((5 + length) / 6) ** config.alpha if config.penalty == "gnmt" else length**config.alpha


@dataclass
class BeamState:
    """The live hypotheses of each sentence, best first, and the best finished one."""

    sentence_B: Tensor  # which input each row is about
    limit_B: Tensor  # the most tokens its translation may have, EOS counted
    tokens_BKT: Tensor
    log_prob_BK: Tensor  # of the live hypotheses
    origin_BK: Tensor  # the row of the last step's call that each goes on from
    best_score_B: Tensor  # of the finished, -inf where none is
    best: list[list[int]]  # its tokens

    @property
    def length(self) -> int:
        return self.tokens_BKT.shape[2] - 1


def beam_search(step: Step, limits: Sequence[int], config: DecodingConfig, device: torch.device) -> list[Translation]:
    """The best translation of each sentence; `limits` are the most tokens (EOS counted) each may have.

    Exact about stopping: a sentence ends when no live hypothesis can still beat its best finished one.
    """
    state = start(limits, config.beam, device)
    results: list[Translation | None] = [None] * len(limits)
    while len(state.sentence_B):
        logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
        extend(state, logits_BKV, config)
        release(state, results, config)
    assert None not in results
    return results


def start(limits: Sequence[int], beam: int, device: torch.device) -> BeamState:
    """One live hypothesis, BOS, a sentence; its K - 1 others are impossible, so that the first step fills the beam."""
    sentences = len(limits)
    log_prob_BK = torch.full((sentences, beam), float("-inf"), device=device)
    log_prob_BK[:, 0] = 0.0
    return BeamState(
        sentence_B=torch.arange(sentences, device=device),
        limit_B=torch.tensor(limits, device=device),
        tokens_BKT=torch.full((sentences, beam, 1), BOS, device=device),
        log_prob_BK=log_prob_BK,
        origin_BK=torch.arange(sentences * beam, device=device).view(sentences, beam),
        best_score_B=torch.full((sentences,), float("-inf"), device=device),
        best=[[] for _ in limits],
    )


def extend(state: BeamState, logits_BKV: Tensor, config: DecodingConfig) -> None:
    """Replace the live hypotheses by their K best continuations, and set aside the best that ended."""
    token_BC, parent_BC, log_prob_BC = continuations(state.log_prob_BK, logits_BKV)
    finish(state, token_BC, parent_BC, log_prob_BC, config)
    beam = config.beam
    # Of 2K candidates at most K end, so K that go on remain.
    live_BC = torch.where(token_BC == EOS, float("-inf"), log_prob_BC)
    state.log_prob_BK, chosen_BK = live_BC.topk(beam)
    parent_BK = parent_BC.gather(1, chosen_BK)
    history_BKT = state.tokens_BKT.gather(1, parent_BK[:, :, None].expand(-1, -1, state.tokens_BKT.shape[2]))
    state.tokens_BKT = torch.cat([history_BKT, token_BC.gather(1, chosen_BK)[:, :, None]], 2)
    state.origin_BK = parent_BK + torch.arange(len(parent_BK), device=parent_BK.device)[:, None] * beam


def continuations(log_prob_BK: Tensor, logits_BKV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The 2K best next tokens over all live hypotheses of a sentence, with their parents and log-probabilities.

    PAD and BOS are never chosen. The best of each hypothesis are found before the softmax, which then needs only its sum.
    """
    beam, vocabulary = logits_BKV.shape[1:]
    logits_BKV = logits_BKV.float()
    logits_BKV[..., [PAD, BOS]] = float("-inf")
    sum_BK1 = logits_BKV.logsumexp(-1, keepdim=True)
    best_BKC, token_BKC = logits_BKV.topk(min(2 * beam, vocabulary))
    log_prob_BN = (best_BKC - sum_BK1 + log_prob_BK[..., None]).flatten(1)
    log_prob_BC, place_BC = log_prob_BN.topk(min(2 * beam, log_prob_BN.shape[1]))
    return token_BKC.flatten(1).gather(1, place_BC), place_BC // best_BKC.shape[2], log_prob_BC


def finish(state: BeamState, token_BC: Tensor, parent_BC: Tensor, log_prob_BC: Tensor, config: DecodingConfig) -> None:
    """Keep a candidate that ended, among the K best, if it scores above the sentence's best so far.

    An ending that is not among the K best would not have entered the beam; so a beam of 1 is greedy search.
    """
    score_BC = log_prob_BC[:, : config.beam] / length_penalty(state.length + 1, config)
    ended_BC = torch.where(token_BC[:, : config.beam] == EOS, score_BC, float("-inf"))
    score_B, place_B = ended_BC.max(1)
    better_B = score_B > state.best_score_B
    state.best_score_B = torch.where(better_B, score_B, state.best_score_B)
    for row in better_B.nonzero()[:, 0].tolist():
        state.best[row] = state.tokens_BKT[row, parent_BC[row, place_B[row]], 1:].tolist()


def release(state: BeamState, results: list[Translation | None], config: DecodingConfig) -> None:
    """Hand over the sentences that are decided and drop them from the state.

    Log-probabilities only fall and penalties only grow, so a live hypothesis scores at most its log-probability now over
    the penalty at the limit. At the limit, a sentence with nothing finished gives its best live hypothesis.
    """
    bound_B = state.log_prob_BK[:, 0] / length_penalty(state.limit_B, config)
    at_limit_B = state.limit_B <= state.length
    done_B = at_limit_B | (state.best_score_B >= bound_B)
    if not done_B.any():
        return
    for row in done_B.nonzero()[:, 0].tolist():
        ids, score = state.best[row], state.best_score_B[row].item()
        if score == float("-inf"):
            ids = state.tokens_BKT[row, 0, 1:].tolist()
            score = (state.log_prob_BK[row, 0] / length_penalty(state.length, config)).item()
        results[int(state.sentence_B[row])] = Translation(ids, score)
    left = (~done_B).nonzero()[:, 0]
    state.best = [state.best[row] for row in left.tolist()]
    for name in ("sentence_B", "limit_B", "tokens_BKT", "log_prob_BK", "origin_BK", "best_score_B"):
        setattr(state, name, getattr(state, name)[left])


class ModelStep:
    """The step function of a Transformer: moves its cache along with the hypotheses, then asks for the logits."""

    def __init__(self, model: Transformer, source_BS: Tensor, beam: int) -> None:
        self.model, self.beam = model, beam
        self.cache: DecoderCache = model.start(source_BS)
        self.rows = torch.arange(len(source_BS) * beam, device=source_BS.device)

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        origin_R = origin_BK.flatten()
        if not torch.equal(origin_R, self.rows):
            fewer = len(origin_R) < len(self.rows)
            self.cache.select(origin_R, origin_BK[:, 0] // self.beam if fewer else None)
            self.rows = self.rows[: len(origin_R)]
        return self.model.step(tokens_BK.flatten(), self.cache).view(*tokens_BK.shape, -1)


@torch.inference_mode()
def translate(model: Transformer, sources: Sequence[Sequence[int]], config: DecodingConfig) -> list[Translation]:
    """One batch of source pieces (without EOS) to translations of at most input length + `extra_length` pieces."""
    device = model.embedding.device
    source_BS = pad([[*source, EOS] for source in sources]).to(device)
    limits = [len(source) + config.extra_length for source in sources]
    return beam_search(ModelStep(model, source_BS, config.beam), limits, config, device)


def batches_by_length(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Sentence numbers in batches of at most `tokens` pieces, padding counted; longest first, so memory peaks early."""
    batches: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches
