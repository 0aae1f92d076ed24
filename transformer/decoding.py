"""Beam search (section 6.1) over any function that scores the next token.

Shapes: B sentences still searched, K live hypotheses of each (1 at first, then at most the beam), V vocabulary, T tokens so
far, C candidates for the next hypotheses, N groups of W tokens.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.layout import pad
from transformer.model import Transformer
from transformer.precision import precision_of

Item = TypeVar("Item")
Result = TypeVar("Result")
Step = Callable[[Tensor, Tensor], Tensor]
"""Takes the newest tokens [B, K] and the origin of each [B, K], returns the logits of the next token [B, K, V].

An origin is the hypothesis of the previous call that the token continues: its index into that call's flattened [B, K]. At
the first call K is 1 and each token is its own origin."""

# All backends but cuDNN's, which makes a new plan for each length.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
DECIDED = 1 / 8  # the fraction of the sentences that must be decided before any is dropped
CACHED = 2**18  # logits that fit into a CPU's cache
STEPS_UNSEEN = 4  # steps between two checks for decided sentences on a GPU, where a check synchronises
BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}  # with smaller batches, a GPU waits for its host
AT_ONCE = 4  # batches that CPU threads decode concurrently; more gain nothing, because of the interpreter lock


@dataclass(frozen=True)
class Translation:
    """Token ids without BOS and EOS, and the score: log-probability divided by length penalty."""

    ids: list[int]
    score: float


def length_penalty(length: int | Tensor, config: DecodingConfig) -> float | Tensor:
    """GNMT's ((5 + L) / 6)^alpha (Wu et al. 2016, as in 6.1), or L^alpha. The length L includes EOS."""
    return ((5 + length) / 6) ** config.alpha if config.penalty == "gnmt" else length**config.alpha


@dataclass
class BeamState:
    """The live hypotheses of each sentence, best first, and its best finished one."""

    sentence_B: Tensor  # the index of the sentence in the input
    limit_B: Tensor  # the maximum number of tokens of its translation, EOS included
    tokens_BKT: Tensor  # of the live hypotheses, BOS included
    log_prob_BK: Tensor  # of the live hypotheses
    origin_BK: Tensor  # the hypothesis of the previous step that each continues (see `Step`)
    best_score_B: Tensor  # of the best finished hypothesis, -inf where none is finished
    best_BT: Tensor  # its tokens, followed by PAD

    @property
    def length(self) -> int:
        """Tokens of each live hypothesis, BOS excluded."""
        return self.tokens_BKT.shape[2] - 1


def beam_search(step: Step, limits: Sequence[int], config: DecodingConfig, device: torch.device) -> list[Translation]:
    """The best translation of each sentence. `limits` are the maximum numbers of tokens, EOS included.

    A sentence is decided when no live hypothesis can still reach a higher score than its best finished one.
    """
    state = start(limits, device)
    results: dict[int, Translation] = {}
    while len(state.sentence_B):
        logits_BKV = step(state.tokens_BKT[:, :, -1], state.origin_BK)
        extend(state, logits_BKV, config)
        release(state, results, config)
    return [results[number] for number in range(len(limits))]


def start(limits: Sequence[int], device: torch.device) -> BeamState:
    """The state before the first step: one live hypothesis of each sentence, BOS."""
    sentences = len(limits)
    return BeamState(
        sentence_B=torch.arange(sentences, device=device),
        limit_B=torch.tensor(limits, dtype=torch.int64, device=device),
        tokens_BKT=torch.full((sentences, 1, 1), BOS, device=device),
        log_prob_BK=torch.zeros(sentences, 1, device=device),
        origin_BK=torch.arange(sentences, device=device)[:, None],
        best_score_B=torch.full((sentences,), float("-inf"), device=device),
        best_BT=torch.full((sentences, 0), PAD, device=device),
    )


def extend(state: BeamState, logits_BKV: Tensor, config: DecodingConfig) -> None:
    """Replace the live hypotheses by their best continuations, and keep the best finished one."""
    # Each hypothesis has one EOS continuation, so of the best 2K at most K end and K can go on.
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
    """The best continuations of each sentence: token, parent (0 to K - 1) and log-probability, each [B, C].

    C is `count`, or the number of all continuations where that is smaller. PAD and BOS are never chosen. `logits_BKV` is
    overwritten where it is float32.

    A top-k over the whole vocabulary is slow and a maximum is fast. So the vocabulary is divided into N = V / W groups of W
    tokens, and the maximum of each group is taken. The C best tokens are in the C groups with the largest maxima, and a
    top-k over those groups finds them. The largest maximum also stabilises the sum of exponentials.
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
    """The sum of exp(logits - most) over the vocabulary, [B, K, 1]; on a CPU in parts that fit into its cache."""
    sentences = len(logits_BKV) if logits_BKV.is_cuda else max(1, CACHED // logits_BKV[0].numel())
    parts = zip(logits_BKV.split(sentences), most_BK1.split(sentences))
    return torch.cat([(logits - most).exp_().sum(-1, keepdim=True) for logits, most in parts])


def finish(state: BeamState, token_BC: Tensor, parent_BC: Tensor, log_prob_BC: Tensor, config: DecodingConfig) -> None:
    """Keep the best candidate that ends, if its score is above the sentence's best so far.

    Only the `config.beam` best candidates count, since others would not enter the beam; a beam of 1 is greedy search.
    """
    score_BC = log_prob_BC[:, : config.beam] / length_penalty(state.length + 1, config)
    ended_BC = (token_BC[:, : config.beam] == EOS) & (state.limit_B > state.length)[:, None]
    score_B, place_B = torch.where(ended_BC, score_BC, float("-inf")).max(1)
    parent_B11 = parent_BC.gather(1, place_B[:, None])[:, :, None]
    ids_BT = state.tokens_BKT.gather(1, parent_B11.expand(-1, -1, state.tokens_BKT.shape[2]))[:, 0, 1:]
    keep(state, ids_BT, score_B)


def cut(state: BeamState, config: DecodingConfig) -> None:
    """At its limit, a sentence without a finished hypothesis takes its best live one."""
    cut_B = (state.limit_B == state.length) & (state.best_score_B == float("-inf"))
    score_B = state.log_prob_BK[:, 0] / length_penalty(state.length, config)
    keep(state, state.tokens_BKT[:, 0, 1:], torch.where(cut_B, score_B, float("-inf")))


def keep(state: BeamState, ids_BT: Tensor, score_B: Tensor) -> None:
    """Replace the best finished hypothesis of each sentence where `score_B` is higher."""
    better_B = score_B > state.best_score_B
    state.best_score_B = torch.where(better_B, score_B, state.best_score_B)
    best_BT = F.pad(state.best_BT, (0, ids_BT.shape[1] - state.best_BT.shape[1]), value=PAD)
    state.best_BT = torch.where(better_B[:, None], ids_BT, best_BT)


def release(state: BeamState, results: dict[int, Translation], config: DecodingConfig) -> None:
    """Write the translations of decided sentences into `results` and drop these sentences from the state.

    Log-probabilities only fall and penalties only grow, so the score of a live hypothesis is bounded by its present
    log-probability divided by the penalty at the limit. A decided sentence may stay in the batch. Dropping it copies the
    rest and, on a GPU, synchronises, so sentences are dropped in groups.
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
    """The step function of a Transformer: drops from its cache the sentences that the search has dropped, then decodes."""

    def __init__(self, model: Transformer, source_BS: Tensor) -> None:
        self.model, self.cache = model, model.start(source_BS)
        self.shape: tuple[int, ...] = (len(source_BS), 1)  # sentences and hypotheses of the previous call

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        sentences, width = self.shape
        if len(tokens_BK) < sentences:
            self.cache.select(origin_BK[:, 0] // width)
        self.shape = tokens_BK.shape
        _, logits_BKV = self.model.step(tokens_BK, origin_BK % width, self.cache)
        return logits_BKV


def settings_on(device: torch.device, config: DecodingConfig) -> DecodingConfig:
    """The settings with the values that `precision: auto` and `batch_tokens: 0` stand for on this device."""
    tokens = config.batch_tokens or BATCH_TOKENS[device.type]
    precision: Any = precision_of(config.precision, device)  # a value that the setting may have
    return dataclasses.replace(config, precision=precision, batch_tokens=tokens)


def model_in(precision: str, model: Transformer) -> Transformer:
    """`model` for float32, and for bfloat16 a copy with all its weights in bfloat16.

    Autocast would cast every weight at every step. The kernels of layer norm and softmax compute in float32, and the
    search computes log-probabilities in float32.
    """
    return copy.deepcopy(model).bfloat16() if precision == "bfloat16" else model


@torch.inference_mode()
def translate(model: Transformer, sources: Sequence[Sequence[int]], config: DecodingConfig) -> list[Translation]:
    """The translations of one batch of source ids without EOS, each of at most source length + `extra_length` tokens.

    The precision is that of the model's weights.
    """
    if not sources:
        return []
    device = model.embedding.device
    source_BS = pad([[*source, EOS] for source in sources]).to(device)
    limits = [len(source) + config.extra_length for source in sources]
    # sdpa_kernel sets the backends of the whole process, and on a CPU several threads decode.
    with sdpa_kernel(ATTENTION) if source_BS.is_cuda else nullcontext():
        return beam_search(ModelStep(model, source_BS), limits, config, device)


def translate_batches(
    model: Transformer, batches: Sequence[Sequence[Sequence[int]]], config: DecodingConfig
) -> Iterator[list[Translation]]:
    """The translations of each batch, in the order of the batches.

    On a CPU up to AT_ONCE batches are decoded concurrently and share the `threads`, since the matrix products of one step
    are too small to gain from several threads.
    """
    at_once = 1 if model.embedding.is_cuda else min(config.threads, AT_ONCE)
    return by_threads(lambda sources: translate(model, sources, config), batches, at_once, config.threads // at_once)


def by_threads(work: Callable[[Item], Result], items: Sequence[Item], at_once: int, threads: int) -> Iterator[Result]:
    """The results of `work` in the order of the items, `at_once` of them concurrently, each with `threads` torch threads.

    An exception in `work` is raised here, and items not yet begun are left undone.
    """
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(at_once, "decode", torch.set_num_threads, (threads,))
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # new threads inherit the number that was set last


def batches_by_length(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Sentence numbers in batches of at most `tokens` tokens, padding included; longest first, so memory peaks early.

    A longer sentence is a batch of its own.
    """
    batches: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches
