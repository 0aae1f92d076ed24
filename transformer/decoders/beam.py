"""Beam search (section 6.1) over any function that scores the next token.

Shapes: B sentences still searched, K live hypotheses of each (1 at first, then at most the beam), V vocabulary, T tokens so
far, C candidates for the next hypotheses, N groups of W tokens or tokens of an n-gram, F finished hypotheses that are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.config.decoding import BeamConfig, DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.steps import Sentences, Translation, next_logits, rows_B1, select

DECIDED = 1 / 8  # the fraction of the sentences that must be decided before any is dropped
CACHED = 2**18  # logits that fit into a CPU's cache
WIDEST = 25  # tokens of a group, at most; keeps both top-k short: over all groups, and over the tokens of a few groups
PLAIN = BeamConfig(regulariser=0.0, ends="beam", no_repeat_ngram=0, finished=0)
STEPS_BETWEEN_CHECKS = 4  # on a GPU; a check for decided sentences synchronises


@dataclass(frozen=True)
class Beam:
    """Beam search as a `Decoder`. It finds fewer hypotheses than asked for if fewer are finished.

    A sentence is decided when no live hypothesis can still reach a higher score than the worst of its `n_best` finished
    ones. At its limit, a sentence without a finished hypothesis takes its best live one.

    The score of a hypothesis y is (log p(y) - regulariser * sum of the squares of log p of its tokens) / penalty. The
    regulariser prefers uniform information density (Meister et al. 2020); the paper has none. With `no_repeat_ngram`, a
    token that would repeat an n-gram of its hypothesis is left out; the others keep their probability.

    The paper does not say when a hypothesis ends. With `ends: beam`, an end counts if it is among the best `beam`
    candidates, as in fairseq, Hugging Face and CTranslate2. With `all`, it counts among all 2 x `beam` candidates, as in
    tensor2tensor, the authors' code. With `finished`, a sentence is also decided when so many hypotheses are finished:
    fairseq and CTranslate2 stop at `beam` of them. All that finish in the last step count.

    `prefixes` has the ids with which the translation of each sentence begins, by the number of the sentence. They count
    in its score. No translation has fewer than `shortest` tokens, EOS excluded.
    """

    config: DecodingConfig
    own: BeamConfig = PLAIN
    prefixes: Sequence[Sequence[int]] = ()
    shortest: int = 0

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        prefixes = [self.prefixes[number] for number in batch.numbers] if self.prefixes else []
        least = [max(self.shortest, len(prefix)) + 1 for prefix in prefixes] or [self.shortest + 1] * len(batch.limits)
        batch.limits = [*map(max, batch.limits, least)]
        step, count = batch.start(), 2 * self.config.beam
        ends = self.config.beam if self.own.ends == "beam" else count
        enough = self.own.finished
        state = start(batch, max(n_best, enough), ends)
        results: dict[int, list[Translation]] = {}
        while len(state.sentence_B):
            logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
            # Each hypothesis has one EOS continuation, so of the best 2K at most K end and at least K can go on.
            without_BKV = repeated(state.tokens_BKT[:, :, 1:], logits_BKV, self.own.no_repeat_ngram)
            if state.length < max(least) - 1:
                without_BKV = unforced(state, logits_BKV, without_BKV, prefixes, self.shortest)
            found = continuations(state.log_prob_BK, logits_BKV, count, self.own.regulariser, without_BKV)
            extend(state, found, self.config, ends)
            if enough:
                stop(state, enough)
            release(state, results, self.config)
        return [results[number][:n_best] for number in range(len(batch.limits))]

    def width(self, n_best: int) -> int:
        return self.config.beam


def length_penalty(length: int | Tensor, config: DecodingConfig) -> float | Tensor:
    """GNMT's ((5 + L) / 6)^alpha (Wu et al. 2016, as in 6.1), or L^alpha. The length L includes EOS."""
    return ((5 + length) / 6) ** config.alpha if config.penalty == "gnmt" else length**config.alpha


@dataclass
class BeamState:
    """The live hypotheses of each sentence and its finished ones, both best first."""

    sentence_B: Tensor  # the index of the sentence in the input
    limit_B: Tensor  # the maximum number of tokens of its translation, EOS included
    tokens_BKT: Tensor  # of the live hypotheses, BOS included
    log_prob_BK: Tensor  # of the live hypotheses, less the regulariser
    origin_BK: Tensor  # the hypothesis of the previous step that each continues (see `ModelStep`)
    best_score_BF: Tensor  # of the finished hypotheses, -inf where fewer are finished
    best_BFT: Tensor  # their tokens, followed by PAD

    @property
    def length(self) -> int:
        """Tokens of each live hypothesis, BOS excluded."""
        return self.tokens_BKT.shape[2] - 1


def start(batch: Sentences, n_best: int, ends: int) -> BeamState:
    """The state before the first step: one live hypothesis of each sentence, BOS. At most `ends` finish in a step."""
    sentences, device = len(batch.limits), batch.device
    n_best = min(n_best, ends * max(batch.limits))  # more cannot be found
    return BeamState(
        sentence_B=torch.arange(sentences, device=device),
        limit_B=torch.tensor(batch.limits, dtype=torch.int64, device=device),
        tokens_BKT=torch.full((sentences, 1, 1), BOS, device=device),
        log_prob_BK=torch.zeros(sentences, 1, device=device),
        origin_BK=torch.arange(sentences, device=device)[:, None],
        best_score_BF=torch.full((sentences, n_best), -inf, device=device),
        best_BFT=torch.full((sentences, n_best, 0), PAD, device=device),
    )


def extend(state: BeamState, found: tuple[Tensor, Tensor, Tensor], config: DecodingConfig, ends: int) -> Tensor:
    """Replace the live hypotheses by their best continuations, and keep the best finished ones.

    `found` is the token, the parent and the log-probability of each continuation, best first, each [B, C]. Those with EOS
    among the first `ends` are finished. The live hypotheses are the best of the others. Returns their places in `found`,
    [B, K].
    """
    token_BC, parent_BC, log_prob_BC = found
    finish(state, token_BC[:, :ends], parent_BC[:, :ends], log_prob_BC[:, :ends], config)
    width = state.log_prob_BK.shape[1]
    live_BC = torch.where(token_BC == EOS, -inf, log_prob_BC)
    state.log_prob_BK, chosen_BK = live_BC.topk(min(config.beam, live_BC.shape[1]))
    parent_BK = parent_BC.gather(1, chosen_BK)
    state.tokens_BKT = torch.cat([histories(state, parent_BK), token_BC.gather(1, chosen_BK)[:, :, None]], 2)
    state.origin_BK = parent_BK + rows_B1(parent_BK) * width
    cut(state, config)
    return chosen_BK


def histories(state: BeamState, parent_BK: Tensor) -> Tensor:
    """The tokens of the live hypotheses with these numbers, BOS included; [B, K, T]."""
    return state.tokens_BKT[rows_B1(parent_BK), parent_BK]


def repeated(tokens_BKT: Tensor, logits_BKV: Tensor, size: int) -> Tensor | None:
    """Which tokens would end an n-gram of this `size` that is in the hypothesis already, [B, K, V]. None if none is."""
    if not size or tokens_BKT.shape[2] < size:
        return None
    grams_BKTN = tokens_BKT.unfold(2, size, 1)
    last_BK1N = tokens_BKT[:, :, None, tokens_BKT.shape[2] - size + 1 :]
    token_BKT = torch.where((grams_BKTN[..., :-1] == last_BK1N).all(-1), grams_BKTN[..., -1], PAD)
    return torch.zeros_like(logits_BKV, dtype=torch.bool).scatter(2, token_BKT, True)


def unforced(
    state: BeamState, logits_BKV: Tensor, without_BKV: Tensor | None, prefixes: Sequence[Sequence[int]], shortest: int
) -> Tensor:
    """Which tokens are left out, [B, K, V]: those of `without_BKV`, all but that of a prefix, and an end too early."""
    if without_BKV is None:
        without_BKV = torch.zeros_like(logits_BKV, dtype=torch.bool)
    without_BKV[:, :, EOS] |= state.length < shortest
    for row, number in enumerate(state.sentence_B.tolist() if prefixes else ()):
        if state.length < len(prefixes[number]):
            without_BKV[row] = True
            without_BKV[row, :, prefixes[number][state.length]] = False
    return without_BKV


def continuations(
    log_prob_BK: Tensor, logits_BKV: Tensor, count: int, regulariser: float = 0.0, without_BKV: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence: token, parent (0 to K - 1) and log-probability, each [B, C].

    C is `count`, or the number of all continuations where that is smaller. PAD and BOS are never chosen. The tokens of
    `without_BKV` have no log-probability above -inf. `logits_BKV` is overwritten where it is float32.

    A top-k over the whole vocabulary is slow and a maximum is fast. So the vocabulary is divided into N = V / W groups
    of W tokens, and the maximum of each group is taken. The C best tokens are in the C groups with the largest maxima,
    and a top-k over those groups finds them. The largest maximum also stabilises the sum of exponentials. W is the
    largest divisor of V up to WIDEST. If V is a large prime, W is 1, and the search is a plain top-k.
    """
    vocabulary = logits_BKV.shape[2]
    logits_BKV = next_logits(logits_BKV)
    width = next(width for width in range(WIDEST, 0, -1) if vocabulary % width == 0)
    logits_BKWN = logits_BKV.unflatten(2, (width, -1))
    best_BKN = logits_BKWN.amax(2)
    groups, most_BK1 = best_BKN.shape[2], best_BKN.amax(2, keepdim=True)
    offset_BK1 = log_prob_BK[..., None] - most_BK1 - sum_of_exp(logits_BKV, most_BK1).log()
    if without_BKV is not None:  # after the sum, so that the other tokens keep their probabilities
        best_BKN = logits_BKV.masked_fill_(without_BKV, -inf).unflatten(2, (width, -1)).amax(2)
    best_BN = regularised(best_BKN + offset_BK1, log_prob_BK[..., None], regulariser).flatten(1)
    group_BC = best_BN.topk(min(count, best_BN.shape[1]))[1]
    parent_BC, group_BC = group_BC // groups, group_BC % groups
    sentence_B1 = rows_B1(group_BC)
    log_prob_BCW = logits_BKWN[sentence_B1, parent_BC, :, group_BC] + offset_BK1[sentence_B1, parent_BC]
    log_prob_BCW = regularised(log_prob_BCW, log_prob_BK[sentence_B1, parent_BC][..., None], regulariser)
    log_prob_BC, place_BC = log_prob_BCW.flatten(1).topk(min(count, log_prob_BCW[0].numel()))
    chosen_BC = place_BC // width
    token_BC = place_BC % width * groups + group_BC.gather(1, chosen_BC)
    return token_BC, parent_BC.gather(1, chosen_BC), log_prob_BC


def regularised(after: Tensor, before: Tensor, regulariser: float) -> Tensor:
    """Subtract the regulariser of the newest token from `after`, the log-probability with that token.

    `before` is the log-probability without it, so `before - after` is its surprisal. The shapes broadcast.
    """
    if not regulariser:
        return after
    surprisal = before - after  # NaN if there was no such hypothesis before: both are -inf
    return after - regulariser * surprisal.nan_to_num(0.0).square()


def sum_of_exp(logits_BKV: Tensor, most_BK1: Tensor) -> Tensor:
    """The sum of exp(logits - most) over the vocabulary, [B, K, 1]; on a CPU in parts that fit into its cache."""
    sentences = len(logits_BKV) if logits_BKV.is_cuda else max(1, CACHED // logits_BKV[0].numel())
    parts = zip(logits_BKV.split(sentences), most_BK1.split(sentences))
    return torch.cat([(logits - most).exp_().sum(-1, keepdim=True) for logits, most in parts])


def finish(state: BeamState, token_BC: Tensor, parent_BC: Tensor, log_prob_BC: Tensor, config: DecodingConfig) -> None:
    """Keep the candidates that end, if they are better than the sentence's finished ones.

    With alpha 0 and one candidate, this is greedy search.
    """
    score_BC = log_prob_BC / length_penalty(state.length + 1, config)
    ended_BC = (token_BC == EOS) & (state.limit_B > state.length)[:, None]
    score_BC = torch.where(ended_BC, score_BC, -inf)
    score_BF, place_BF = score_BC.topk(min(state.best_score_BF.shape[1], score_BC.shape[1]))
    keep(state, histories(state, parent_BC.gather(1, place_BF))[:, :, 1:], score_BF)


def cut(state: BeamState, config: DecodingConfig) -> None:
    """At its limit, a sentence without a finished hypothesis takes its best live one."""
    cut_B = (state.limit_B == state.length) & (state.best_score_BF[:, 0] == -inf)
    score_B = state.log_prob_BK[:, 0] / length_penalty(state.length, config)
    keep(state, state.tokens_BKT[:, :1, 1:], torch.where(cut_B, score_B, -inf)[:, None])


def keep(state: BeamState, ids_BFT: Tensor, score_BF: Tensor) -> None:
    """Merge these hypotheses with the finished ones and keep the best. Of equal scores, the earlier is first.

    A NaN score, which a model with NaN weights gives, counts as -inf.
    """
    score_BF = torch.where(score_BF.isnan(), -inf, score_BF)
    if not (score_BF.is_cuda or (score_BF > -inf).any()):  # none is new; on a GPU, to ask would synchronise
        return
    kept, longer = state.best_score_BF.shape[1], ids_BFT.shape[2] - state.best_BFT.shape[2]
    every_BF = torch.cat([state.best_score_BF, score_BF], 1)
    ids_BFT = torch.cat([F.pad(state.best_BFT, (0, longer), value=PAD), ids_BFT], 1)
    score_BF, place_BF = every_BF.sort(dim=1, descending=True, stable=True)
    state.best_score_BF, place_BF = score_BF[:, :kept], place_BF[:, :kept]
    state.best_BFT = ids_BFT[rows_B1(place_BF), place_BF]


def stop(state: BeamState, enough: int) -> None:
    """Make this step the last of each sentence that has `enough` finished hypotheses."""
    full_B = state.best_score_BF[:, :enough][:, -1] > -inf
    state.limit_B = torch.where(full_B, state.length, state.limit_B)


def decided(state: BeamState, config: DecodingConfig) -> Tensor:
    """Which sentences no live hypothesis can change, [B].

    Log-probabilities only fall and penalties only grow, so the score of a live hypothesis is bounded by its present
    log-probability divided by the penalty at the limit.
    """
    bound_B = state.log_prob_BK.amax(1) / length_penalty(state.limit_B, config)
    return (state.limit_B <= state.length) | (state.best_score_BF[:, -1] >= bound_B)


def release(state: BeamState, results: dict[int, list[Translation]], config: DecodingConfig) -> None:
    """Write the translations of decided sentences into `results` and drop these sentences from the state.

    A decided sentence may stay in the batch. Dropping it copies the rest and, on a GPU, synchronises, so sentences are
    dropped in groups.
    """
    if state.tokens_BKT.is_cuda and state.length % STEPS_BETWEEN_CHECKS:
        return
    done_B = decided(state, config)
    if done_B.sum() < len(done_B) * DECIDED:
        return
    results.update(finished(state, done_B))
    select(state, (~done_B).nonzero()[:, 0])


def finished(state: BeamState, done_B: Tensor) -> dict[int, list[Translation]]:
    """The finished hypotheses of the sentences of `done_B`, by the index of the sentence in the input."""
    done = (state.sentence_B[done_B], state.best_BFT[done_B], state.best_score_BF[done_B])
    return {
        number: [
            Translation([token for token in ids if token != PAD], score)
            for place, (ids, score) in enumerate(zip(rows, scores))
            if place == 0 or score > -inf
        ]
        for number, rows, scores in zip(*(tensor.tolist() for tensor in done))
    }
