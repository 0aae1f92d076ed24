"""Decoders on tables of logits, for which enumeration finds the best translations, and on random Transformers."""

import dataclasses
import itertools
import math
from collections import Counter
from functools import partial

import pytest
import torch
from fastchrf import aggregate_chrf
from sacrebleu.metrics import BLEU, CHRF
from scipy.special import chdtrc

from pipeline.scoring.utilities import utility
from pipeline.settings.check import check
from pipeline.settings.decodings import choice
from tests.support.prefixes import (
    SOURCES,
    VOCABULARY,
    WORDS,
    Table,
    Tree,
    Uncached,
    Whole,
    assert_same,
    best_of,
    ended,
    log_probs_of,
    plain,
    random_table,
    score,
    sequences,
    sharpened,
    surprisals,
)
from tests.support.refusals import refused
from transformer.config.decoders import DECODERS
from transformer.config.decoding import BeamConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders import beam
from transformer.decoders.forced import log_probabilities
from transformer.decoders.mbr import Mbr, Pool
from transformer.decoders.registry import decoder_of
from transformer.decoders.sampling import AT_ONCE, draw, truncated
from transformer.decoders.steps import Sentences, Translation, TreeStep
from transformer.decoding import model_in
from transformer.layout import pad


@pytest.fixture
def decoder(params):
    """`decoder(name, key=value, ...)`: the decoder of a line of `decodings` with these settings."""

    def made(name, **settings):
        chosen = choice(params, {"decoder": name, "precision": "float32", "threads": 1, **settings}, "a line")
        return decoder_of(chosen, lambda name: utility(name, texts), lambda hidden: hidden[..., 0].float().sigmoid())

    return made


def texts(sentences):
    return [" ".join(f"w{token}" for token in ids) for ids in sentences]


def log_prob(logits, ids, ended=True):
    return score(logits, [*ids, EOS] if ended else ids)


def batch_of(logits, limits):
    return Uncached(Table(logits), limits)


def beam_search(logits, limits, config, own):
    return beam.Beam(config, own).search(batch_of(logits, limits), 1)


# Beam search with conditions


@pytest.mark.parametrize("strength", [0.2, 1.0])
def test_the_regulariser_prefers_even_surprisals(decoding_settings, strength):
    logits, limit = random_table(8, seed=7), 4
    config = decoding_settings(beam=200, alpha=0.0)

    def objective(each, tokens):
        return -sum(u + strength * u * u for u in surprisals(each, tokens))

    for (found,), each in zip(beam_search(logits, [limit] * 8, config, own=BeamConfig(strength, "beam", 0, 0)), logits):
        best = max(ended(limit), key=lambda tokens: objective(each, tokens))
        assert found.ids == plain(best) and found.score == pytest.approx(objective(each, best), abs=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_occurs_twice_and_the_best_of_the_others_is_found(decoding_settings, size):
    """The score stays the model's log-probability of the translation."""
    logits, limit = random_table(8, seed=5), 5
    logits[..., WORDS[0]] += 3  # it repeats itself without the setting
    grams = {tokens: [tokens[at : at + size] for at in range(len(tokens) - size)] for tokens in ended(limit)}
    possible = [tokens for tokens in grams if len(set(grams[tokens])) == len(grams[tokens])]
    config = decoding_settings(beam=1000, alpha=0.0)
    without, free = (beam_search(logits, [limit] * 8, config, own=BeamConfig(0.0, "beam", n, 0)) for n in (size, 0))
    for (found,), (best_of_all,), each in zip(without, free, logits):
        best = max(possible, key=lambda tokens: score(each, tokens))
        assert found.ids == plain(best) and found.score == pytest.approx(score(each, best), abs=1e-4)
        assert best_of_all.score >= found.score


# Exact search


def test_exact_search_equals_enumeration_and_nothing_beats_it(decoder):
    limits, logits = [5, 4, 3, 2, 1] * 4, random_table(20, seed=1, scale=1.5)
    batch = batch_of(logits, limits)
    found = best_of(decoder("exact", beam=1).search(batch, 1))
    others = [decoder(name).search(batch, 1) for name in ("greedy", "beam", "sampling", "diverse")]
    for number, (translation, limit) in enumerate(zip(found, limits)):
        best = max(ended(limit), key=lambda tokens: score(logits[number], tokens))
        assert translation.finished and translation.ids == plain(best)
        assert translation.score == pytest.approx(score(logits[number], best), abs=1e-4)
        for other in others:
            ids = other[number][0].ids
            if len(ids) < limit:  # it has ended
                assert log_prob(logits[number], ids) <= translation.score + 1e-4


def test_exact_search_out_of_steps_says_so_and_keeps_the_best_it_has(decoder):
    logits = random_table(12, 9, seed=2)
    logits[..., EOS] -= 4
    batch = batch_of(logits, [9] * 12)
    beams = best_of(decoder("beam", alpha=0.0, beam=1).search(batch, 1))
    whole, cut = (best_of(decoder("exact", beam=1, max_steps=n).search(batch, 1)) for n in (100_000, 5))
    assert all(translation.finished for translation in whole)
    assert not all(translation.finished for translation in cut)
    for first, short, full in zip(beams, cut, whole):
        assert short.score <= full.score + 1e-6
        if len(first.ids) < 9:
            assert short.score >= first.score - 1e-6
    tree, one = Tree(Table(logits[:1]), 1), batch_of(logits[:1], [9])
    one.tree = lambda slots: tree
    ((found,),) = decoder("exact", beam=1, max_steps=5).search(one, 1)
    assert tree.calls == 5 and not found.finished


# Sampling


def p_value(observed: list[int], expected: list[float]) -> float:
    """Of Pearson's chi-squared test."""
    return chdtrc(len(expected) - 1, sum((seen - mean) ** 2 / mean for seen, mean in zip(observed, expected)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_whole_samples_follow_the_distribution(decoder, temperature):
    logits, count = random_table(1, seed=1), 4000
    batch = batch_of(logits.expand(count, -1, -1, -1), [3] * count)
    samples = best_of(decoder("sampling", temperature=temperature).search(batch, 1))
    drawn = Counter((*t.ids, EOS)[:3] for t in samples)
    scaled = logits[0] / temperature
    expected = {tokens: count * math.exp(score(scaled, tokens)) for tokens in sequences(3)}
    common = [ids for ids in expected if expected[ids] > 10]
    rest = count - sum(expected[ids] for ids in common)
    seen = [drawn[ids] for ids in common]
    assert p_value([*seen, count - sum(seen)], [*(expected[ids] for ids in common), rest]) > 0.01


def test_truncations_keep_what_they_should(decoder):
    probs = torch.tensor([[[0.0, 0.4, 0.3, 0.15, 0.1, 0.05]]])
    log_probs = probs.log()

    def kept(**settings):
        own = decoder("sampling", **settings).own
        return (truncated(log_probs, own)[0, 0] > 0).nonzero()[:, 0].tolist()

    assert kept() == [1, 2, 3, 4, 5]
    assert kept(top_k=2) == [1, 2] and kept(top_k=99) == [1, 2, 3, 4, 5]
    assert kept(top_p=0.69) == [1, 2] and kept(top_p=0.71) == [1, 2, 3] and kept(top_p=0.01) == [1]
    assert kept(epsilon=0.12) == [1, 2, 3] and kept(epsilon=0.9) == [1]
    assert kept(top_k=3, epsilon=0.2) == [1, 2]
    assert kept(temperature=0.1, epsilon=0.1) == [1] == kept(temperature=0.1, top_p=0.9), "after the temperature"
    log_probs = torch.zeros(1, 1, 4)
    assert len(kept(top_p=0.5)) == 2, "the fewest tokens whose total probability is at least top_p"
    log_probs = torch.zeros(1, 1, 6)
    assert len(kept(top_k=2)) == 2 == len(kept(top_k=2, top_p=0.9)), "of equal probabilities"


def test_no_random_number_draws_a_token_that_was_left_out():
    """The largest number that numpy draws. Its product with the sum of these probabilities rounds to the sum."""
    probs, largest = torch.tensor([[[0.25, 0.375, 0.0]]], dtype=torch.float64), torch.tensor([[1 - 2.0**-53]])
    assert probs.sum() * largest.double() == probs.sum()
    assert draw(probs, largest.double()).tolist() == [[1]]


def test_a_seed_gives_the_same_samples_and_another_gives_others(decoder):
    logits = random_table(1, 9, seed=6).expand(30, -1, -1, -1)
    batch = batch_of(logits, [9] * 30)
    one, same, other = (decoder("sampling", seed=seed).search(batch, 20) for seed in (1, 1, 2))
    assert one == same and one != other
    first = best_of(decoder("sampling", seed=1).search(batch, 1))
    assert len({tuple(sample.ids) for sample in first}) > 5, "each sentence has its own random numbers"
    few, many = (Counter(tuple(t.ids) for t in decoder("sampling").search(batch, n)[0]) for n in (5, 40))
    assert not few - many, "the samples of a sentence do not depend on their count"
    assert len(many) > AT_ONCE, "a group of samples does not repeat the group before"
    for samples in one:
        assert len(samples) == 20
        for sample in samples:
            assert sample.score == pytest.approx(log_prob(logits[0], sample.ids, len(sample.ids) < 9), abs=1e-3)


# Diverse beam search


def diverse_search(logits, limit, config, groups, diversity):
    """The translations and their scores, best first, by algorithm 1 of Vijayakumar et al. 2018, without an early stop."""
    width, live, finished, log_probs = config.beam // groups, [{(): 0.0}] * groups, {}, log_probs_of(logits).tolist()
    for length in range(1, limit + 1):
        taken = Counter()
        for group in range(groups):
            totals = {}
            for prefix, total in live[group].items():
                for token in [*WORDS, EOS]:
                    log_p = log_probs[length - 1][(BOS, *prefix)[-1]][token]
                    totals[*prefix, token] = total + log_p - diversity * taken[token]
            best = sorted(totals, key=lambda prefix: -totals[prefix])[: 2 * width]
            for ids in best[:width]:
                if ids[-1] == EOS:
                    finished[ids[:-1]] = max(finished.get(ids[:-1], -math.inf), totals[ids] / length**config.alpha)
            live[group] = {ids: totals[ids] for ids in [ids for ids in best if ids[-1] != EOS][:width]}
            taken.update(ids[-1] for ids in live[group])
    return sorted(finished.items(), key=lambda each: -each[1])


@pytest.mark.parametrize(
    "name, groups, diversity", [("beam", 1, 0.0), *itertools.product(["diverse"], (1, 2, 3), (0.0, 0.5, 2.0))]
)
def test_beam_search_is_that_of_its_authors(decoder, name, groups, diversity, decoding_settings):
    """The log-probability that a hypothesis carries on has the penalties of all its tokens."""
    logits, config = random_table(21, 9, seed=groups, scale=1.5), decoding_settings(beam=6, alpha=0.8, penalty="power")
    limits, own = [7, 8, 9] * 7, {"groups": groups, "diversity": diversity} if name == "diverse" else {}
    made = decoder(name, beam=6, alpha=0.8, penalty="power", **own)
    for found, each, limit in zip(made.search(batch_of(logits, limits), 3), logits, limits):
        expected = diverse_search(each, limit, config, groups, diversity)[:3]
        assert [t.ids for t in found] == [list(ids) for ids, _ in expected]
        assert [t.score for t in found] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_a_translation_that_the_limit_cut_is_never_above_a_finished_one(decoder):
    """The first group repeats token 4 up to the limit, with a higher score than the translations that end."""
    logits = torch.full((2, 4, VOCABULARY, VOCABULARY), -20.0)
    logits[..., 4], logits[..., EOS] = 2.0, 1.0
    logits[1, ..., EOS] = -20.0  # here no group ends within the limit
    batch = batch_of(logits, [4, 4])
    ended, cut = decoder("diverse", beam=2, groups=2, diversity=2.0, alpha=0.6).search(batch, 2)
    assert [t.ids for t in ended] == [[], [4]] and cut[0].ids == [4] * 4
    assert decoder("beam", beam=2, alpha=0.6).search(batch, 1)[0][0].ids == []
    assert log_prob(logits[0], [4] * 4, ended=False) / 1.5**0.6 > ended[0].score


# Trees


close = partial(torch.testing.assert_close, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("differences", [{}, {"neighbourhood": 2}, {"positions": "learned"}, {"norm": "pre"}])
def test_a_tree_scores_each_prefix_as_the_whole_model_does(settings, differences):
    """A call decodes three new nodes of each of two sentences, below parents at different positions."""
    model = sharpened(settings(**differences))
    sources = torch.tensor([[7, 8, 9, EOS], [20, 21, EOS, PAD]])
    tree, random = TreeStep(model, sources, slots=40), torch.Generator().manual_seed(1)
    prefixes = [[[BOS]], [[BOS]]]  # of each sentence, by slot
    close(
        tree(torch.full((2, 1), BOS), torch.full((2, 1), -1), torch.zeros(2, 1, dtype=torch.int64)),
        model(sources, torch.full((2, 1), BOS)),
    )
    for first in range(1, 34, 3):
        parents = torch.randint(max(0, first - 6), first, (2, 3), generator=random)
        tokens, slots = torch.randint(4, 40, (2, 3), generator=random), torch.arange(first, first + 3).expand(2, -1)
        found = tree(tokens, parents, slots)
        for b, k in itertools.product(range(2), range(3)):
            prefixes[b].append([*prefixes[b][parents[b, k]], int(tokens[b, k])])
            close(found[b, k], model(sources[b : b + 1], torch.tensor([prefixes[b][-1]]))[0, -1])
    assert len({len(prefix) for prefix in prefixes[1]}) > 3
    tree.select(torch.tensor([1]))
    found = tree(torch.tensor([[5]]), torch.tensor([[33]]), torch.tensor([[3]]))  # in the slot of another node
    close(found[0, 0], model(sources[1:], torch.tensor([[*prefixes[1][33], 5]]))[0, -1])


@torch.inference_mode()
def test_forced_log_probabilities_are_those_of_the_search(settings, decoder):
    models = [sharpened(settings()), sharpened(settings(h=2))]
    for chosen in (models, models[:1]):
        sources = [*SOURCES, [7] * 12]
        batch = Sentences(chosen, sources, range(len(sources)), 90)
        found = best_of(decoder("sampling", temperature=5.0).search(batch, 1))
        scores = log_probabilities(chosen, [*sources, []], [*(t.ids for t in found), []], 30)
        ended = [n for n, (source, t) in enumerate(zip(sources, found)) if len(t.ids) < len(source) + 90]
        assert len(ended) > 3 and scores[-1] == 0.0
        assert [scores[n] for n in ended] == pytest.approx([found[n].score for n in ended], abs=1e-3)


# MBR


class Given:
    """A decoder of known translations."""

    def __init__(self, *lists):
        self.lists = lists

    def search(self, batch, n_best):
        return [[Translation(list(ids), 0.0) for ids in lists][:n_best] for lists in self.lists]

    def width(self, n_best):
        return n_best


SAMPLES = [[4, 5, 6, 7], [4, 5, 6], [4, 5, 6], [9, 8, 7, 6, 5], [4, 5, 7, 7]]
REFERENCES = [[4, 5, 6, 7, 8], [4, 5, 6], [9, 8, 7], [9, 8, 7]]


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_mbr_agrees_with_brute_force_by_sacrebleu(name):
    metric = BLEU(effective_order=True) if name == "bleu" else CHRF()
    pools = Pool(Given(SAMPLES), 5), Pool(Given(REFERENCES), 4)
    (found,) = Mbr(*pools, utility(name, texts)).search(Uncached(None, [9]), 9)

    def mean(ids):
        scores = [metric.sentence_score(*texts([ids]), texts([reference])).score for reference in REFERENCES]
        return sum(scores) / len(scores)

    different = [ids for number, ids in enumerate(SAMPLES) if ids not in SAMPLES[:number]]
    expected = sorted(different, key=lambda ids: -mean(ids))
    assert [t.ids for t in found] == expected
    assert [t.score for t in found] == pytest.approx([mean(ids) for ids in expected], abs=1e-6)
    (equal,) = Mbr(*pools, lambda candidates, references: [1.0] * len(candidates)).search(Uncached(None, [9]), 9)
    assert [t.ids for t in equal] == different, "of equally good ones, the one that its decoder ranks higher is first"


def test_chrf_splits_at_the_controls_at_which_sacrebleu_splits():
    lines = {(4,): "a b", (5,): "a\x1cb"}
    (score,) = utility("chrf", lambda many: [lines[tuple(ids)] for ids in many])([[4]], [[5]])
    assert score == CHRF().sentence_score("a b", ["a\x1cb"]).score == 100


def test_mbr_of_one_candidate_is_that_candidate_and_unfinished_if_its_search_is(decoder):
    logits = random_table(12, 9, seed=2)
    logits[..., EOS] -= 4
    batch = batch_of(logits, [9] * 12)
    settings, references = {"beam": 1, "max_steps": 5}, {"decoder": "sampling", "number": 2}
    exact = best_of(decoder("exact", **settings).search(batch, 1))
    chosen = decoder("mbr", candidates={"decoder": "exact", "number": 1, **settings}, references=references)
    found = best_of(chosen.search(batch, 1))
    assert [(t.ids, t.finished) for t in found] == [(t.ids, t.finished) for t in exact]
    assert not all(t.finished for t in found)
    against = {"candidates": references, "references": {"decoder": "exact", "number": 1, **settings}}
    found = best_of(decoder("mbr", **against).search(batch, 1))
    assert [t.finished for t in found] == [t.finished for t in exact], "also if that of a reference is"


def test_aggregated_references_rank_a_clear_winner_first():
    candidates, references = [[4, 5, 6, 7], [30, 31]], [[4, 5, 6, 7], [4, 5, 6]]
    scores = utility("chrf_aggregate", texts)(candidates, references)
    assert scores[0] > scores[1]
    assert [scores] == aggregate_chrf([texts(candidates)], [texts(references)]), "not the mean over the references"


# All decoders

LINES = {
    "greedy": {},
    "beam": {"regulariser": 0.1, "ends": "all", "no_repeat_ngram": 2, "finished": 3},
    "sampling": {"top_k": 20, "top_p": 0.95},
    "diverse": {"groups": 2, "alpha": 0.0},
    "mbr": {"candidates": {"decoder": "diverse", "number": 3, "groups": 2}},
    "exact": {"max_steps": 60},
    "value_beam": {},
    "mcts": {"simulations": 8},
}


@torch.inference_mode()
@pytest.mark.parametrize("name", DECODERS)
def test_neither_a_batch_nor_a_cache_changes_a_translation_and_limits_hold(settings, decoder, name):
    model, chosen = sharpened(settings()), decoder(name, **LINES[name])
    model.embedding *= 3
    model.embedding[EOS] = 0  # otherwise, the empty translation is the most probable
    batch = Sentences([model], SOURCES, range(len(SOURCES)), 4)
    batches = [Sentences([model], [source], [number], 4) for number, source in enumerate(SOURCES)]
    whole, *single = (chosen.search(each, 3) for each in (batch, *batches))
    limits = [len(source) + 4 for source in SOURCES]
    uncached = chosen.search(Uncached(Whole(model, SOURCES), limits), 3)
    for together, alone, without, limit in zip(whole, single, uncached, limits, strict=True):
        assert_same(together, alone[0], 1e-3)
        assert_same(together, without, 1e-3)
        assert 1 <= len(together) <= 3 and all(len(t.ids) <= limit for t in together)
        assert [t.score for t in together] == sorted((t.score for t in together), reverse=True)
        assert name == "sampling" or len({tuple(t.ids) for t in together}) == len(together)
    together = best_of(whole)
    if name in ("greedy", "sampling", "exact", "diverse"):
        for source, t, limit in zip(SOURCES, together, limits):
            tokens = [*t.ids, EOS] if len(t.ids) < limit else t.ids
            log_probs = log_probs_of(model(pad([[*source, EOS]]), pad([[BOS, *t.ids]])))[0]
            assert t.score == pytest.approx(log_probs[range(len(tokens)), tokens].sum().item(), abs=1e-3)
    if name == "exact":  # the empty translation is the best, which takes many prefixes to prove
        assert batch.calls > 20 * len(SOURCES) and batch.calls == sum(each.calls for each in batches)
    else:
        assert len({tuple(t.ids) for t in together}) > 1


@torch.inference_mode()
@pytest.mark.parametrize("name", DECODERS)
def test_each_decoder_takes_bfloat16_and_weights_that_are_nan(settings, decoder, name):
    model, chosen = sharpened(settings()), decoder(name, **LINES[name])
    narrow = model_in("bfloat16", model)
    assert chosen.search(Sentences([narrow], [[5]], [0], 0), 1)[0][0].ids in ([], *([n] for n in range(40)))
    batch = Sentences([narrow], SOURCES, range(len(SOURCES)), 4)
    assert all(math.isfinite(t.score) for t in best_of(chosen.search(batch, 1))) and batch.calls > 0
    model.embedding[:] = math.nan
    found = chosen.search(Sentences([model], SOURCES, range(len(SOURCES)), 4), 2)
    assert all(0 <= token < len(model.embedding) for t in best_of(found) for token in t.ids)


# The settings


def of_mbr(**references):
    return {"decoder": "mbr", "references": {"decoder": "sampling", **references}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"decoder": "sampling", "top_p": 0}, ".top_p: 0 is not possible; a number above 0 up to 1"),
        ({"decoder": "exact", "alpha": 0.6}, ".alpha: unknown key; valid keys are decoder, model, set, max_steps, beam"),
        ({"decoder": "mbr", "candidates": 5}, ".candidates: 5 is not a mapping; its keys are decoder, number, "),
        (of_mbr(number=0), ".references.number: 0 is not possible"),
        (of_mbr(number=1, threads=1), ".references.threads: unknown key; valid keys are decoder, number, seed"),
        ({"decoder": "mbr", "utility": "comet"}, ".utility"),
        ({"decoder": "diverse", "beam": 6, "groups": 4}, ".groups: 4 is not possible; a divisor of beam 6 is expected"),
    ],
)
def test_settings_that_do_not_belong_are_refused(params, line, said):
    entry = {"model": "demo-tiny/average", "set": "demo-test", **line}
    with refused(said):
        check({**params, "studies": {}, "decodings": {"d": entry}})


def test_the_settings_of_a_part_are_those_of_its_decoder(params):
    line = {"decoder": "mbr", "threads": 1, "candidates": {"decoder": "beam", "number": 5, "beam": 8, "alpha": 1.0}}
    chosen = choice(params, line, "a line")
    assert chosen.parts["candidates"].config == dataclasses.replace(chosen.config, beam=8, alpha=1.0)
    assert chosen.parts["references"].number == params["base"]["decoders"]["mbr"]["references"]["number"]
    described = chosen.description(dataclasses.replace(chosen.config, batch_tokens=99))
    candidates = [described["candidates"][key] for key in ("beam", "number", "batch_tokens")]
    assert candidates == [8, 5, 99] and described["references"]["decoder"] == "sampling", "the tokens in use"
    assert "beam" not in described and described["utility"] == "chrf"
