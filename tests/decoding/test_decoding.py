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

from pipeline.decode import of_references
from tests.support.prefixes import (
    CPU,
    SOURCES,
    VOCABULARY,
    WORDS,
    Ids,
    Steps,
    Table,
    Uncached,
    Whole,
    assert_same,
    best_of,
    ended,
    greedy,
    plain,
    random_table,
    score,
    sharpened,
)
from transformer import decoding
from transformer.attention import Keys
from transformer.config.decoding import BeamConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders import beam
from transformer.decoders.beam import continuations
from transformer.decoders.steps import ModelStep, Translation
from transformer.decoding import batches_by_length, model_in, settings_on, translate
from transformer.translator import Translator


def beam_search(logits, limits, config, *own) -> list[Translation]:
    """The best translation of each sentence by a table of logits."""
    return best_of(beam.Beam(config, *own).search(Uncached(Table(logits), limits), 1))


@pytest.mark.parametrize("penalty, alpha", [("gnmt", 0.6), ("gnmt", 0.0), ("power", 1.0), ("power", 0.6)])
def test_a_wide_beam_finds_what_exhaustive_search_finds_and_a_beam_of_one_is_greedy(decoding_settings, penalty, alpha):
    # Three words at four positions give 81 hypotheses, so a beam of 81 prunes nothing.
    config = decoding_settings(beam=81, penalty=penalty, alpha=alpha)
    logits = random_table(8, 5, scale=2.0)
    logits[..., EOS] -= 2
    limits = [5, 4, 3, 5, 2, 5, 4, 5]
    for result, table, limit in zip(beam_search(logits, limits, config), logits, limits):
        best = max(ended(limit), key=lambda tokens: score(table, tokens, config))
        assert result.ids == plain(best)
        assert result.score == pytest.approx(score(table, best, config), abs=1e-4)
    results = beam_search(logits, [5] * 8, decoding_settings(beam=1, alpha=0.0))
    assert [result.ids for result in results] == [plain(greedy(table)) for table in logits]


def test_the_limit_ends_what_never_ends(decoding_settings):
    logits = torch.zeros(1, 9, VOCABULARY, VOCABULARY)
    logits[..., EOS] = -math.inf
    (result,) = beam_search(logits, [7], decoding_settings())
    assert len(result.ids) == 7
    expected = 7 * math.log(1 / len(WORDS)) / ((5 + 7) / 6) ** 0.6
    assert result.score == pytest.approx(expected), "without EOS, the length is that of the words"
    logits = torch.zeros(20, 9, VOCABULARY, VOCABULARY)
    logits[..., EOS] = -math.inf
    logits[0, 3:, :, EOS] = 30.0  # after the limit of the first sentence, which stays in the batch
    first, *_ = beam_search(logits, [3] + [9] * 19, decoding_settings())
    assert len(first.ids) == 3 and first.score == pytest.approx(3 * math.log(1 / len(WORDS)) / ((5 + 3) / 6) ** 0.6)


def test_an_end_counts_among_the_beam_or_among_all_candidates(decoding_settings):
    """EOS has 0.4 at first and never again; a word has 0.6. Only tensor2tensor's rule lets a beam of 1 end at -0.92."""
    logits = torch.full((1, 9, VOCABULARY, VOCABULARY), -math.inf)
    logits[0, 0, BOS, 4], logits[0, 0, BOS, EOS] = math.log(0.6), math.log(0.4)
    logits[0, 1:, 4, 4:6] = math.log(0.5)
    logits[0, 1:, 5, 4:6] = math.log(0.5)
    config = decoding_settings(beam=1, alpha=0.6)
    (ours,), (theirs,) = (beam_search(logits, [9], config, BeamConfig(0.0, ends, 0, 0)) for ends in ("beam", "all"))
    assert theirs.ids == [] and theirs.score == pytest.approx(math.log(0.4)) == pytest.approx(-0.92, abs=0.005)
    assert len(ours.ids) == 9 and ours.score == pytest.approx((math.log(0.6) + 8 * math.log(0.5)) / (14 / 6) ** 0.6)
    wide = decoding_settings(beam=2, alpha=0.6)
    assert beam_search(logits, [9], wide)[0].ids == [], "in a beam of 2, the end counts by either rule"


@pytest.fixture
def model(settings):
    return sharpened(settings())


@torch.no_grad()
@pytest.mark.parametrize("neighbourhood", [0, 3])
def test_a_long_search_with_cached_keys_equals_one_without(settings, decoding_settings, neighbourhood):
    model, config = sharpened(settings(neighbourhood=neighbourhood)), decoding_settings(extra_length=30)
    for source in SOURCES:
        step, batch = Steps(Whole(model, [source])), Uncached(None, [len(source) + 30])
        batch.start = [step].pop
        expected = best_of(beam.Beam(config).search(batch, 1))
        assert step.moved > 0
        assert_same(translate(model, [source], config), expected)
    assert max(len(result.ids) for result in translate(model, SOURCES, config)) > 2 * Keys.CAPACITY / config.beam


@torch.inference_mode()
def test_the_number_of_threads_changes_no_bit(model, decoding_settings):
    batches = [SOURCES[n:] + SOURCES[:n] for n in range(len(SOURCES))] * 2
    one, three = (list(translate_batches(model, batches, decoding_settings(extra_length=8, threads=n))) for n in (1, 3))
    assert one == three
    for batch, translations in zip(batches, one):
        assert_same(translations, translate(model, batch, decoding_settings(extra_length=8)))


def test_what_fails_in_a_thread_is_raised_and_leaves_the_rest_undone(model, monkeypatch, decoding_settings):
    threads, begun, batch = torch.get_num_threads(), [], decoding.Sentences
    monkeypatch.setattr(decoding, "Sentences", lambda *given: begun.append(0) or batch(*given))
    with pytest.raises(IndexError, match="out of range"):
        list(translate_batches(model, [[[4, 10**6]], *[[[4] * 5]] * 500], decoding_settings(threads=3)))
    assert len(begun) < 100 and torch.get_num_threads() == threads


@pytest.mark.parametrize("decided", [0.0, 0.5, 1.0])
def test_what_is_decided_stays_while_the_others_go_on(monkeypatch, decoding_settings, decided):
    logits, config = random_table(30, 12, scale=2.0), decoding_settings()
    logits[::2, ..., EOS] = -math.inf
    limits = [3 + number % 10 for number in range(30)]
    alone = [beam_search(logits[n : n + 1], [limits[n]], config)[0] for n in range(30)]
    monkeypatch.setattr(beam, "DECIDED", decided)
    assert_same(beam_search(logits, limits, config), alone)
    assert any(len(result.ids) == limit for result, limit in zip(alone, limits))


@pytest.mark.parametrize("vocabulary, regulariser", [(37, 0.0), (64, 0.0), (4000, 0.0), (37, 0.5), (4000, 0.5)])
def test_continuations_are_the_best_of_all(vocabulary, regulariser):
    torch.manual_seed(4)
    logits, log_prob = 3 * torch.randn(5, 4, vocabulary), -4 * torch.rand(5, 4)
    tokens, parents, log_probs = continuations(log_prob, logits.clone(), 8, regulariser)
    logits[..., [PAD, BOS]] = -1e9
    gained = logits.log_softmax(-1)
    every = (log_prob[..., None] + gained - regulariser * gained.square()).flatten(1)
    expected, places = every.topk(8)
    torch.testing.assert_close(log_probs, expected)
    assert torch.equal(parents * vocabulary + tokens, places)


def translate_batches(model, batches, config):
    numbers = [range(*ends) for ends in itertools.pairwise(itertools.accumulate(map(len, batches), initial=0))]
    for found, _ in decoding.search_batches([model], [*itertools.chain(*batches)], numbers, beam.Beam(config), config, 1):
        yield [translations[0] for translations in found]


def test_bfloat16_decodes_with_weights_in_bfloat16(settings, decoding_settings):
    """The logits are those of float32 up to the rounding of bfloat16, which has 8 bits."""
    model = sharpened(settings(positions="learned"))
    held = model_in("bfloat16", model)
    assert {tensor.dtype for tensor in held.parameters()} == {torch.bfloat16}
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    assert sum(len(result.ids) for result in translate(held, SOURCES, decoding_settings(extra_length=8))) > 8
    source, target = torch.tensor([[*SOURCES[2], EOS]]), torch.tensor([[BOS, 9, 8, 7, 6]])
    with torch.no_grad():
        exact, rounded = model(source, target), held(source, target).float()
        step = ModelStep(held, source)
        stepwise = [step(tokens, torch.zeros(1, 1, dtype=torch.int64)) for tokens in target.split(1, 1)]
    assert {tensor.dtype for tensor in (step.hidden_BKD, step.mask_BKN)} == {torch.bfloat16}, "no step casts"
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
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True}, raising=False)
    for arithmetic, expected in ("native", "bfloat16"), ("portable", "float32"):
        found = settings_on(cpu, dataclasses.replace(default, arithmetic=arithmetic), 128)
        assert (found.precision, found.arithmetic) == (expected, "native"), "this process is not portable"


def test_perplexities_do_not_depend_on_the_precision_of_decoding(model, decoding_settings):
    config = decoding_settings(extra_length=2, precision="float32")
    one, other = (
        Translator(model, Ids(), dataclasses.replace(config, precision=precision), {})
        for precision in ("float32", "bfloat16")
    )
    lines = [" ".join(map(str, source)) for source in SOURCES]
    assert [t.score for (t,) in one.n_best(lines, "x", 1)] != [t.score for (t,) in other.n_best(lines, "x", 1)]
    assert of_references(one, lines, lines[::-1]) == of_references(other, lines, lines[::-1])


def test_batches_hold_every_sentence_once_and_no_more_tokens_than_asked():
    lengths = [3, 50, 7, 7, 1, 20, 20, 19]
    batches = batches_by_length(lengths, 60)
    assert sorted(itertools.chain(*batches)) == list(range(8))
    assert all(len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) <= 60 for batch in batches)
    assert batches_by_length([100], 60) == [[0]]
    assert batches_by_length([0, 5, 0], 60) == [[1]], "an empty sentence is not translated"
    assert [len(batch) for batch in batches_by_length([1] * 20, 80)] == [10, 10], "the logits need memory"
    assert len(batches_by_length([20] * 400, 4096, 2)) == 4, "two of each thread"


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


@pytest.mark.parametrize("threads", [1, 2])
def test_overlapping_searches_leave_the_number_of_threads_as_it_was(model, decoding_settings, threads):
    """New threads begin and end each search, as in a server. The number counts that a further thread then has."""

    def in_thread(work):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    before = in_thread(torch.get_num_threads)
    torch.set_num_threads(before + 1)
    try:
        config = decoding_settings(threads=threads)
        searches = [translate_batches(model, [SOURCES[:2]] * 3, config) for _ in range(2)]
        for search in searches:
            in_thread(lambda search=search: next(search))
        for search in searches:
            in_thread(lambda search=search: list(search))
        assert in_thread(torch.get_num_threads) == before + 1
    finally:
        torch.set_num_threads(before)
