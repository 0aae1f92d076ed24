"""Beam search finds what exhaustive search finds; caches, batches and padding change no translation."""

import dataclasses
import itertools
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pipeline.decode import of_references
from transformer import decoding
from transformer.attention import Keys
from transformer.config.decoding import BeamConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders import beam
from transformer.decoders.beam import continuations, length_penalty
from transformer.decoders.steps import ModelStep, Translation
from transformer.decoding import batches_by_length, by_threads, model_in, settings_on, translate
from transformer.model import Transformer
from transformer.translator import Translator

CPU = torch.device("cpu")
VOCABULARY, LONGEST = 6, 5
WORDS = [token for token in range(VOCABULARY) if token not in (PAD, BOS, EOS)]


class Table:
    """A step function without a model: logits[sentence, position, previous token, next token]."""

    def __init__(self, logits):
        self.logits, self.position, self.sentence_R = logits, 0, None

    def __call__(self, tokens_BK, origin_BK):
        beam = tokens_BK.shape[1]
        if self.sentence_R is None:
            self.sentence_R = torch.arange(len(tokens_BK)).repeat_interleave(beam)
        self.sentence_R = self.sentence_R[origin_BK.flatten()]
        rows = self.logits[self.sentence_R, self.position, tokens_BK.flatten()]
        self.position += 1
        return rows.view(*tokens_BK.shape, -1).clone()


def beam_search(step, limits, config, device, **more) -> list[Translation]:
    """The best translation of each sentence."""
    return [translations[0] for translations in beam.beam_search(step, limits, config, device, **more)]


def exhaustive(logits, limit, config):
    """The best score of all sequences that end within `limit` tokens, EOS included, and the words of that sequence."""
    allowed = logits.clone()
    allowed[..., [PAD, BOS]] = -math.inf
    log_probs = allowed.log_softmax(-1)
    best = (-math.inf, [])
    for length in range(limit):
        for words in itertools.product(WORDS, repeat=length):
            path = [BOS, *words, EOS]
            total = sum(log_probs[t, a, b].item() for t, (a, b) in enumerate(itertools.pairwise(path)))
            best = max(best, (total / length_penalty(length + 1, config), list(words)))
    return best


@pytest.mark.parametrize("penalty, alpha", [("gnmt", 0.6), ("gnmt", 0.0), ("power", 1.0), ("power", 0.6)])
def test_a_wide_beam_finds_what_exhaustive_search_finds(decoding_settings, penalty, alpha):
    # Three words at four positions give 81 hypotheses, so a beam of 81 prunes nothing.
    config = decoding_settings(beam=81, penalty=penalty, alpha=alpha)
    torch.manual_seed(5)
    logits = 2 * torch.randn(8, LONGEST, VOCABULARY, VOCABULARY)
    logits[..., EOS] -= 2
    limits = [5, 4, 3, 5, 2, 5, 4, 5]
    results = beam_search(Table(logits), limits, config, CPU)
    for result, table, limit in zip(results, logits, limits):
        score, words = exhaustive(table, limit, config)
        if score > -math.inf:
            assert result.ids == words
            assert result.score == pytest.approx(score, abs=1e-4)


def test_a_beam_of_one_is_greedy(decoding_settings):
    torch.manual_seed(1)
    logits = torch.randn(4, 9, VOCABULARY, VOCABULARY)
    logits[..., [PAD, BOS]] = -math.inf
    results = beam_search(Table(logits), [9] * 4, decoding_settings(beam=1), CPU)
    for result, table in zip(results, logits):
        token, words = BOS, []
        for position in range(9):
            token = int(table[position, token].argmax())
            if token == EOS:
                break
            words.append(token)
        assert result.ids == words


def test_the_limit_ends_what_never_ends(decoding_settings):
    logits = torch.zeros(1, 9, VOCABULARY, VOCABULARY)
    logits[..., EOS] = -math.inf
    (result,) = beam_search(Table(logits), [7], decoding_settings(), CPU)
    assert len(result.ids) == 7
    expected = 7 * math.log(1 / len(WORDS)) / ((5 + 7) / 6) ** 0.6
    assert result.score == pytest.approx(expected), "without EOS, the length is that of the words"
    logits = torch.zeros(20, 9, VOCABULARY, VOCABULARY)
    logits[..., EOS] = -math.inf
    logits[0, 3:, :, EOS] = 30.0  # after the limit of the first sentence, which stays in the batch
    first, *_ = beam_search(Table(logits), [3] + [9] * 19, decoding_settings(), CPU)
    assert len(first.ids) == 3 and first.score == pytest.approx(3 * math.log(1 / len(WORDS)) / ((5 + 3) / 6) ** 0.6)


def test_a_sentence_may_end_early_only_when_nothing_live_can_win(decoding_settings):
    """A finished hypothesis of score -0.47 must not stop a longer one, now at -0.97, that will score -0.24."""
    config = decoding_settings(beam=2, alpha=1.0, penalty="power")
    logits = torch.full((1, 4, VOCABULARY, VOCABULARY), -30.0)
    logits[0, 0, BOS, EOS], logits[0, 0, BOS, 4] = 0.5, 0.0
    for position, (a, b) in enumerate([(4, 5), (5, 4), (4, EOS)], 1):
        logits[0, position, a, b] = 30.0
    (result,) = beam_search(Table(logits), [4], config, CPU)
    assert result.ids == [4, 5, 4]


def test_an_end_counts_among_the_beam_or_among_all_candidates(decoding_settings):
    """EOS has 0.4 at first and never again; a word has 0.6. Only tensor2tensor's rule lets a beam of 1 end at -0.92."""
    logits = torch.full((1, 9, VOCABULARY, VOCABULARY), -math.inf)
    logits[0, 0, BOS, 4], logits[0, 0, BOS, EOS] = math.log(0.6), math.log(0.4)
    logits[0, 1:, 4, 4:6] = math.log(0.5)
    logits[0, 1:, 5, 4:6] = math.log(0.5)
    config = decoding_settings(beam=1, alpha=0.6)
    (ours,), (theirs,) = (
        beam.beam_search(Table(logits), [9], config, CPU, own=BeamConfig(0.0, ends, 0))[0] for ends in ("beam", "all")
    )
    assert theirs.ids == [] and theirs.score == pytest.approx(math.log(0.4)) == pytest.approx(-0.92, abs=0.005)
    assert len(ours.ids) == 9 and ours.score == pytest.approx((math.log(0.6) + 8 * math.log(0.5)) / (14 / 6) ** 0.6)
    wide = decoding_settings(beam=2, alpha=0.6)
    assert beam_search(Table(logits), [9], wide, CPU)[0].ids == [], "in a beam of 2, the end counts by either rule"


def test_length_penalties(decoding_settings):
    assert length_penalty(1, decoding_settings(alpha=0.6)) == 1.0
    assert length_penalty(19, decoding_settings(alpha=0.6)) == pytest.approx(4**0.6)
    assert length_penalty(19, decoding_settings(alpha=0.5, penalty="power")) == pytest.approx(19**0.5)


def sharpened(config):
    """An untrained model with a scaled embedding, so that the hypotheses differ and are reordered in the beam."""
    torch.manual_seed(3)
    model = Transformer(config, 40).eval()
    with torch.no_grad():
        model.embedding *= 4
    return model


@pytest.fixture
def model(settings):
    return sharpened(settings())


SOURCES = [[7, 8, 9], [12], [20, 21, 22, 23, 24, 25, 26], [5, 6], [30, 31, 32, 33]]


class Uncached:
    """A step function that runs the whole model on every hypothesis at every step."""

    def __init__(self, model, source):
        self.model, self.source, self.history, self.rows = model, source, None, None
        self.moved = 0

    def __call__(self, tokens_BK, origin_BK):
        origin = origin_BK.flatten()
        if self.history is None:
            self.rows = self.source.repeat_interleave(tokens_BK.shape[1], 0)
            self.history = tokens_BK.flatten()[:, None]
        else:
            self.moved += not torch.equal(origin, torch.arange(len(origin)))
            self.rows = self.rows[origin]
            self.history = torch.cat([self.history[origin], tokens_BK.flatten()[:, None]], 1)
        return self.model(self.rows, self.history)[:, -1].view(*tokens_BK.shape, -1)


@torch.no_grad()
@pytest.mark.parametrize("neighbourhood", [0, 3])
def test_cached_equals_uncached(settings, decoding_settings, neighbourhood):
    model = sharpened(settings(neighbourhood=neighbourhood))
    config = decoding_settings(extra_length=30)
    moved = []
    for source in SOURCES:
        ids = torch.tensor([[*source, EOS]])
        uncached = Uncached(model, ids)
        expected = beam_search(uncached, [len(source) + 30], config, CPU)
        moved.append(uncached.moved)
        assert_same(translate(model, [source], config), expected)
    assert max(len(result.ids) for result in translate(model, SOURCES, config)) > 2 * Keys.CAPACITY / config.beam
    assert min(moved) > 0


@torch.inference_mode()
def test_the_number_of_threads_changes_no_bit(model, decoding_settings):
    batches = [SOURCES[n:] + SOURCES[:n] for n in range(len(SOURCES))] * 2
    one, three = (list(translate_batches(model, batches, decoding_settings(extra_length=8, threads=n))) for n in (1, 3))
    assert one == three
    for batch, translations in zip(batches, one):
        assert_same(translations, translate(model, batch, decoding_settings(extra_length=8)))


def test_what_fails_in_a_thread_is_raised_and_leaves_the_rest_undone(model, monkeypatch, decoding_settings):
    threads, begun, search = torch.get_num_threads(), [], decoding.search
    monkeypatch.setattr(decoding, "search", lambda *given: begun.append(0) or search(*given))
    with pytest.raises(IndexError, match="out of range"):
        list(translate_batches(model, [[[4, 10**6]], *[[[4] * 5]] * 500], decoding_settings(threads=3)))
    assert len(begun) < 100 and torch.get_num_threads() == threads


@pytest.mark.parametrize("decided", [0.0, 0.5, 1.0])
def test_what_is_decided_stays_while_the_others_go_on(monkeypatch, decoding_settings, decided):
    torch.manual_seed(2)
    logits = 2 * torch.randn(30, 12, VOCABULARY, VOCABULARY)
    logits[::2, ..., EOS] = -math.inf
    limits = [3 + number % 10 for number in range(30)]
    config = decoding_settings()
    alone = [beam_search(Table(logits[n : n + 1]), [limits[n]], config, CPU)[0] for n in range(30)]
    monkeypatch.setattr(beam, "DECIDED", decided)
    assert_same(beam_search(Table(logits), limits, config, CPU), alone)
    assert any(len(result.ids) == limit for result, limit in zip(alone, limits))


@pytest.mark.parametrize("vocabulary", [37, 64, 4000])
def test_continuations_are_the_best_of_all(vocabulary):
    torch.manual_seed(4)
    logits, log_prob = 3 * torch.randn(5, 4, vocabulary), -torch.rand(5, 4)
    tokens, parents, log_probs = continuations(log_prob, logits.clone(), 8)
    logits[..., [PAD, BOS]] = -math.inf
    every = (logits.log_softmax(-1) + log_prob[..., None]).flatten(1)
    expected, places = every.topk(8)
    torch.testing.assert_close(log_probs, expected)
    assert torch.equal(parents * vocabulary + tokens, places)


def translate_batches(model, batches, config):
    jobs = [decoding.Job(sources, range(len(sources))) for sources in batches]
    for searched in decoding.search_batches([model], jobs, beam.Beam(config), config, 1):
        yield [translations[0] for translations in searched.translations]


def assert_same(results: list[Translation], expected: list[Translation]):
    assert [result.ids for result in results] == [other.ids for other in expected]
    assert [r.score for r in results] == pytest.approx([e.score for e in expected], abs=1e-4)


class Casts(TorchDispatchMode):
    """Counts the casts of tensors that have the shape of a matrix of the model."""

    def __init__(self, model):
        super().__init__()
        self.shapes, self.count = {tensor.shape for tensor in model.parameters() if tensor.dim() > 1}, 0

    def __torch_dispatch__(self, operator, types, inputs=(), options=None):
        result = operator(*inputs, **(options or {}))
        if operator.overloadpacket is torch.ops.aten.to and inputs[0].shape in self.shapes:
            self.count += result.dtype != inputs[0].dtype
        return result


def test_bfloat16_decodes_with_weights_that_no_step_casts(settings, decoding_settings):
    """The logits are those of float32 up to the rounding of bfloat16, which has 8 bits."""
    model = sharpened(settings(positions="learned"))
    config = decoding_settings(extra_length=8)
    held = model_in("bfloat16", model)
    assert {tensor.dtype for tensor in held.parameters()} == {torch.bfloat16}
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    with Casts(model) as casts:
        results = translate(held, SOURCES, config)
    assert casts.count == 0 and sum(len(result.ids) for result in results) > 8
    with Casts(model) as casts, torch.autocast("cpu", torch.bfloat16):
        translate(model, SOURCES, config)
    assert casts.count > 8, "what autocast casts is counted"
    source, target = torch.tensor([[*SOURCES[2], EOS]]), torch.tensor([[BOS, 9, 8, 7, 6]])
    with torch.no_grad():
        exact, rounded = model(source, target), held(source, target).float()
        step = ModelStep(held, source)
        stepwise = [step(tokens, torch.zeros(1, 1, dtype=torch.int64)) for tokens in target.split(1, 1)]
    scale = exact.std()
    torch.testing.assert_close(rounded / scale, exact / scale, atol=0.1, rtol=0)
    torch.testing.assert_close(torch.cat(stepwise, 1).float() / scale, exact / scale, atol=0.1, rtol=0)


def test_settings_that_depend_on_the_device(monkeypatch, decoding_settings):
    cpu, gpu = CPU, torch.device("cuda")
    given = decoding_settings(batch_tokens=100, precision="bfloat16")
    assert settings_on(cpu, given, 128) == settings_on(gpu, given, 128) == given
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    default = decoding_settings(precision="auto", batch_tokens=0)
    for gib, tokens in ((80, 262144), (16, 131072)):
        monkeypatch.setattr(torch.cuda, "get_device_properties", Mock(return_value=Mock(total_memory=gib * 2**30)))
        chosen = settings_on(gpu, default, 512)
        assert chosen.precision == "bfloat16" and chosen.batch_tokens == tokens
    sizes = [settings_on(cpu, default, d_model).batch_tokens for d_model in (64, 128, 192, 512, 1024)]
    assert sizes == [16384, 16384, 10922, 4096, 4096]


class Ids:
    """A vocabulary whose lines are ids."""

    def encode(self, lines, threads=1):
        return [list(map(int, line.split())) for line in lines]


def test_perplexities_do_not_depend_on_the_precision_of_decoding(model, decoding_settings):
    config = decoding_settings(extra_length=2, precision="float32")
    one, other = (
        Translator(model, Ids(), dataclasses.replace(config, precision=precision), {})
        for precision in ("float32", "bfloat16")
    )
    lines = [" ".join(map(str, source)) for source in SOURCES]
    assert [t.score for t in one.translate(lines, "x")] != [t.score for t in other.translate(lines, "x")]
    assert of_references(one, lines, lines[::-1]) == of_references(other, lines, lines[::-1])


def test_no_sentences_have_no_translations(model, decoding_settings):
    config = decoding_settings()
    assert translate(model, [], config) == beam_search(Table(torch.zeros(0)), [], config, CPU) == []
    assert list(translate_batches(model, [], config)) == []
    (before, none, after) = translate_batches(model, [SOURCES[:1], [], SOURCES[1:]], config)
    assert none == [] and len(before) == 1 and len(after) == len(SOURCES) - 1


def test_batches_hold_every_sentence_once_and_no_more_tokens_than_asked():
    lengths = [3, 50, 7, 7, 1, 20, 20, 19]
    batches = batches_by_length(lengths, 60)
    assert sorted(itertools.chain(*batches)) == list(range(8))
    assert all(len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) <= 60 for batch in batches)
    assert batches_by_length([100], 60) == [[0]]


def test_batches_of_short_sentences_are_limited_by_the_memory_of_their_logits():
    assert [len(batch) for batch in batches_by_length([1] * 20, 80)] == [10, 10]


def test_each_of_several_threads_gets_a_batch_unless_batches_are_small():
    assert [len(batch) for batch in batches_by_length([20] * 400, 4096, 2)] == [100] * 4
    assert [len(batch) for batch in batches_by_length([20] * 60, 4096, 2)] == [51, 9]
    assert [len(batch) for batch in batches_by_length([20] * 400, 600, 2)] == [30] * 13 + [10]


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_the_batches_that_are_being_decoded(model, decoding_settings, monkeypatch, threads):
    """Every step waits, so the search of 1,000 steps would take 20 seconds."""
    begun = threading.Event()

    def slow(step, *arguments):
        begun.set()
        time.sleep(0.02)
        return torch.zeros(1, arguments[0].shape[1], len(model.embedding))

    monkeypatch.setattr("transformer.decoders.steps.ModelStep.__call__", slow)
    monkeypatch.setattr("transformer.decoders.steps.ModelStep.hidden_BKD", None, raising=False)

    def interrupt(*_):
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupt)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(translate_batches(model, [[[5, 6]]] * 4, decoding_settings(threads=threads, extra_length=1000)))
    assert time.monotonic() - started < 10


def test_overlapping_calls_leave_the_number_of_threads_as_it_was():
    """Each call is made by a new thread, as in a server. The number counts that a further thread then has."""

    def in_thread(work):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    before = in_thread(torch.get_num_threads)
    torch.set_num_threads(before + 1)
    try:
        first, second = (by_threads(lambda item: item, [1, 2], 2, 1) for _ in range(2))
        assert [in_thread(lambda call=call: next(call)) for call in (first, second)] == [1, 1]
        assert [in_thread(lambda call=call: list(call)) for call in (first, second)] == [[2], [2]]
        assert in_thread(torch.get_num_threads) == before + 1
    finally:
        torch.set_num_threads(before)
