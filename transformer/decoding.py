"""Beam search (section 6.1), as a state and verbs, over any function that scores the next token.

Shapes: B sentences still searched, K hypotheses of each (at first one, then as many as there are, at most the beam),
V vocabulary, T tokens so far, C candidates for the next hypotheses.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.layout import pad
from transformer.model import Transformer
from transformer.precision import autocast

Item, Result = TypeVar("Item"), TypeVar("Result")
Step = Callable[[Tensor, Tensor], Tensor]
"""Logits [B, K, V] of the next token, given the newest tokens [B, K] and, for each, the row of the previous call
(0 to its B x K - 1) that it goes on from; at the first call K is 1, and the rows are numbered as they stand."""

# All but cuDNN's, which plans anew for each length.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
DECIDED = 1 / 8  # of the sentences, before any is dropped
CACHED = 2**18  # logits
STEPS_UNSEEN = 4  # on a GPU, before the host asks which are
AT_ONCE = 4  # batches on a processor; Python itself works for one at a time


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
    best_BT: Tensor  # its tokens, PAD behind them

    @property
    def length(self) -> int:
        return self.tokens_BKT.shape[2] - 1


def beam_search(step: Step, limits: Sequence[int], config: DecodingConfig, device: torch.device) -> list[Translation]:
    """The best translation of each sentence; `limits` are the most tokens (EOS counted) each may have.

    Exact about stopping: a sentence ends when no live hypothesis can still beat its best finished one.
    """
    state = start(limits, device)
    results: list[Translation | None] = [None] * len(limits)
    while len(state.sentence_B):
        logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
        extend(state, logits_BKV, config)
        release(state, results, config)
    assert None not in results
    return results


def start(limits: Sequence[int], device: torch.device) -> BeamState:
    """One live hypothesis, BOS, a sentence."""
    sentences = len(limits)
    return BeamState(
        sentence_B=torch.arange(sentences, device=device),
        limit_B=torch.tensor(limits, device=device),
        tokens_BKT=torch.full((sentences, 1, 1), BOS, device=device),
        log_prob_BK=torch.zeros(sentences, 1, device=device),
        origin_BK=torch.arange(sentences, device=device)[:, None],
        best_score_B=torch.full((sentences,), float("-inf"), device=device),
        best_BT=torch.full((sentences, 0), PAD, device=device),
    )


def extend(state: BeamState, logits_BKV: Tensor, config: DecodingConfig) -> None:
    """Replace the live hypotheses by their best continuations, and set aside the best that ended."""
    # Of twice the beam at most half end, so that a beam that go on remains.
    token_BC, parent_BC, log_prob_BC = continuations(state.log_prob_BK, logits_BKV, 2 * config.beam)
    finish(state, token_BC, parent_BC, log_prob_BC, config)
    live_BC = torch.where(token_BC == EOS, float("-inf"), log_prob_BC)
    state.log_prob_BK, chosen_BK = live_BC.topk(min(config.beam, live_BC.shape[1]))
    parent_BK = parent_BC.gather(1, chosen_BK)
    history_BKT = state.tokens_BKT.gather(1, parent_BK[:, :, None].expand(-1, -1, state.tokens_BKT.shape[2]))
    state.tokens_BKT = torch.cat([history_BKT, token_BC.gather(1, chosen_BK)[:, :, None]], 2)
    width = logits_BKV.shape[1]
    state.origin_BK = parent_BK + torch.arange(len(parent_BK), device=parent_BK.device)[:, None] * width
    cut(state, config)


def continuations(log_prob_BK: Tensor, logits_BKV: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best next tokens over all live hypotheses of a sentence, with their parents and log-probabilities, [B, C].

    C is `count` or all that there are. PAD and BOS are never chosen. Sorting a whole vocabulary is slow, finding maxima is
    not: of W tokens in each of V / W groups the best are found, and the C best tokens are in the groups of the C best of
    these, which also have the maximum that the sum of exponentials needs.
    """
    vocabulary = logits_BKV.shape[2]
    logits_BKV = logits_BKV.float()
    logits_BKV[..., PAD] = logits_BKV[..., BOS] = float("-inf")
    width = next(width for width in range(25, 0, -1) if vocabulary % width == 0)
    logits_BKWN = logits_BKV.unflatten(2, (width, -1))
    best_BKN = logits_BKWN.amax(2)
    groups, most_BK1 = best_BKN.shape[2], best_BKN.amax(2, keepdim=True)
    offset_BK1 = log_prob_BK[..., None] - most_BK1 - sum_of_exp(logits_BKV, most_BK1).log()
    best_BN = (best_BKN + offset_BK1).flatten(1)
    group_BC = best_BN.topk(min(count, best_BN.shape[1]))[1]
    parent_BC, group_BC = group_BC // groups, group_BC % groups
    sentence_B1 = torch.arange(len(group_BC), device=group_BC.device)[:, None]
    log_prob_BCW = logits_BKWN[sentence_B1, parent_BC, :, group_BC] + offset_BK1[sentence_B1, parent_BC]
    log_prob_BC, place_BC = log_prob_BCW.flatten(1).topk(min(count, log_prob_BCW[0].numel()))
    chosen_BC = place_BC // width
    token_BC = place_BC % width * groups + group_BC.gather(1, chosen_BC)
    return token_BC, parent_BC.gather(1, chosen_BC), log_prob_BC


def sum_of_exp(logits_BKV: Tensor, most_BK1: Tensor) -> Tensor:
    """Of the logits above `most_BK1`, [B, K, 1]; on a processor of as many sentences at a time as its cache holds."""
    sentences = len(logits_BKV) if logits_BKV.is_cuda else max(1, CACHED // logits_BKV[0].numel())
    parts = zip(logits_BKV.split(sentences), most_BK1.split(sentences))
    return torch.cat([(logits - most).exp_().sum(-1, keepdim=True) for logits, most in parts])


def finish(state: BeamState, token_BC: Tensor, parent_BC: Tensor, log_prob_BC: Tensor, config: DecodingConfig) -> None:
    """Keep a candidate that ended, among the K best, if it scores above the sentence's best so far.

    An ending that is not among the K best would not have entered the beam; so a beam of 1 is greedy search.
    """
    score_BC = log_prob_BC[:, : config.beam] / length_penalty(state.length + 1, config)
    ended_BC = (token_BC[:, : config.beam] == EOS) & (state.limit_B > state.length)[:, None]
    score_B, place_B = torch.where(ended_BC, score_BC, float("-inf")).max(1)
    parent_B11 = parent_BC.gather(1, place_B[:, None])[:, :, None]
    ids_BT = state.tokens_BKT.gather(1, parent_B11.expand(-1, -1, state.tokens_BKT.shape[2]))[:, 0, 1:]
    keep(state, ids_BT, score_B)


def cut(state: BeamState, config: DecodingConfig) -> None:
    """At its limit, a sentence with nothing finished takes its best live hypothesis."""
    cut_B = (state.limit_B == state.length) & (state.best_score_B == float("-inf"))
    score_B = state.log_prob_BK[:, 0] / length_penalty(state.length, config)
    keep(state, state.tokens_BKT[:, 0, 1:], torch.where(cut_B, score_B, float("-inf")))


def keep(state: BeamState, ids_BT: Tensor, score_B: Tensor) -> None:
    """Make these the best finished where they are."""
    better_B = score_B > state.best_score_B
    state.best_score_B = torch.where(better_B, score_B, state.best_score_B)
    best_BT = F.pad(state.best_BT, (0, ids_BT.shape[1] - state.best_BT.shape[1]), value=PAD)
    state.best_BT = torch.where(better_B[:, None], ids_BT, best_BT)


def release(state: BeamState, results: list[Translation | None], config: DecodingConfig) -> None:
    """Hand over the sentences that are decided and drop them from the state.

    Log-probabilities only fall and penalties only grow, so a live hypothesis scores at most its log-probability now over
    the penalty at the limit. What is decided stays so: to drop it means to copy what stays, and on a GPU to wait for it,
    so that some wait for others.
    """
    if state.tokens_BKT.is_cuda and state.length % STEPS_UNSEEN:
        return
    bound_B = state.log_prob_BK[:, 0] / length_penalty(state.limit_B, config)
    done_B = (state.limit_B <= state.length) | (state.best_score_B >= bound_B)
    if done_B.sum() < len(done_B) * DECIDED:
        return
    done = (state.sentence_B[done_B], state.best_BT[done_B], state.best_score_B[done_B])
    for number, ids, score in zip(*(tensor.tolist() for tensor in done)):
        results[number] = Translation([token for token in ids if token != PAD], score)
    left = (~done_B).nonzero()[:, 0]
    for name, tensor in vars(state).items():
        setattr(state, name, tensor[left])


class ModelStep:
    """The step function of a Transformer: keeps of its cache what the search still needs, then asks for the logits."""

    def __init__(self, model: Transformer, source_BS: Tensor) -> None:
        self.model, self.cache = model, model.start(source_BS)
        self.shape = (len(source_BS), 1)  # of the call before

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        sentences, width = self.shape
        if len(tokens_BK) < sentences:
            self.cache.select(origin_BK[:, 0] // width)
        self.shape = tokens_BK.shape
        return self.model.step(tokens_BK, origin_BK % width, self.cache)


@torch.inference_mode()
def translate(model: Transformer, sources: Sequence[Sequence[int]], config: DecodingConfig) -> list[Translation]:
    """One batch of source pieces (without EOS) to translations of at most input length + `extra_length` pieces."""
    device = model.embedding.device
    source_BS = pad([[*source, EOS] for source in sources]).to(device)
    limits = [len(source) + config.extra_length for source in sources]
    # A setting of the whole process, so not for threads, which a processor has several of.
    with sdpa_kernel(ATTENTION) if source_BS.is_cuda else nullcontext(), autocast(device, config.precision):
        return beam_search(ModelStep(model, source_BS), limits, config, device)


def translate_batches(
    model: Transformer, batches: Sequence[Sequence[Sequence[int]]], config: DecodingConfig
) -> Iterator[list[Translation]]:
    """The translations of each batch, in the batches' order.

    On a processor `threads` share the batches, not each product of matrices: those of a step are too small to be shared
    well.
    """
    at_once = 1 if model.embedding.is_cuda else min(config.threads, AT_ONCE)
    return by_threads(lambda sources: translate(model, sources, config), batches, at_once, config.threads // at_once)


def by_threads(work: Callable[[Item], Result], items: Sequence[Item], at_once: int, threads: int) -> Iterator[Result]:
    """What `work` makes of each item, in their order; `at_once` of them at a time, each with so many of torch's threads."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(at_once, "decode", torch.set_num_threads, (threads,))
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # for threads to come, which have what was set last


def batches_by_length(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Sentence numbers in batches of at most `tokens` pieces, padding counted; longest first, so memory peaks early."""
    batches: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches
