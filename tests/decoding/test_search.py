"""Tree search finds what enumeration finds; batches and the cache change nothing."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

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
    greedy,
    plain,
    random_table,
    score,
    sequences,
    sharpened,
)
from transformer.config.decoders import MctsConfig, ValueBeamConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.beam import Beam
from transformer.decoders.mcts import Mcts, Search, decoded, most_visited
from transformer.decoders.steps import Counted, Sentences, TreeStep, tree_search
from transformer.decoders.value_beam import ValueBeam

LIMIT = 4


def mcts(**differences):
    settings = {"simulations": 8, "c": 1.25, "children": 16, "temperature": 1.0, "objective": "value"}
    return MctsConfig(**(settings | differences))


def column(hidden):
    """Any function of the hidden state may be a value."""
    return hidden[:, 0].double()


def random_logits(sentences=8, seed=5):
    return random_table(sentences, LIMIT, seed, 2.0)


def tree_of(logits, value=lambda sentence, prefix: 0.0):
    return Tree(Table(logits, value), len(logits))


def searched(logits, config, penalty, value=lambda sentence, prefix: 0.0, metrics=None, limits=None):
    step = tree_of(logits, value)
    limits, metrics = limits or [LIMIT] * len(logits), metrics or [None] * len(logits)
    searches = [Search(limit, penalty, config, metric) for limit, metric in zip(limits, metrics)]
    return run(step, searches, config), step


def run(tree, searches, config):
    batch, values = Uncached(None, []), column if config.objective == "value" else None
    batch.tree = lambda slots: tree
    return best_of(tree_search(batch, 0, [each.run() for each in searches], partial(decoded, own=config, values=values)))


def perfect(scores):
    """A function of a sentence and a prefix: the best score in `scores[sentence]` of a completion of the prefix, or 0."""

    def value(sentence, prefix):
        tokens = prefix[1:]
        return max((found for full, found in scores[sentence].items() if list(full[: len(tokens)]) == tokens), default=0.0)

    return value


def random_scores(sentences, seed=0):
    """For each sentence, the score of every translation: the share of tokens that match a random reference, plus noise."""
    generator = torch.Generator().manual_seed(seed)
    every = list(sequences(LIMIT))
    references = [every[n] for n in torch.randint(len(every), (sentences,), generator=generator)]
    noise = 0.1 * torch.rand(sentences, len(every), generator=generator)
    return [
        {
            tokens: sum(a == b for a, b in itertools.zip_longest(tokens, reference)) / LIMIT + extra
            for tokens, extra in zip(every, row)
        }
        for reference, row in zip(references, noise.tolist())
    ]


def by_words(scores):
    """The scores of translations by their tokens without EOS."""
    return [{tuple(plain(tokens)): found for tokens, found in table.items()} for table in scores]


def test_with_a_perfect_value_and_enough_simulations_the_optimum_is_found(decoding_settings):
    logits, scores = random_logits(), random_scores(8)
    penalty = decoding_settings()
    results, _ = searched(logits, mcts(simulations=100, c=0.3), penalty, value=perfect(scores))
    best = [max(table, key=table.get) for table in scores]
    assert [result.ids for result in results] == [plain(tokens) for tokens in best]
    assert best != [greedy(table) for table in logits], "greedy search would not do"
    for result, tokens, table in zip(results, best, logits):
        assert result.score == pytest.approx(score(table, tokens, penalty), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_search_on_log_probability_finds_the_best_model_score(decoding_settings, alpha):
    logits, penalty = random_logits(seed=7), decoding_settings(alpha=alpha)
    results, _ = searched(logits, mcts(simulations=400, objective="log_probability"), penalty)
    # a translation that the limit cut is never preferred
    best = [max(score(table, tokens, penalty) for tokens in ended(LIMIT)) for table in logits]
    assert [result.score for result in results] == pytest.approx(best, abs=1e-5)


def test_the_oracle_finds_the_best_metric(decoding_settings):
    logits, penalty = random_logits(seed=7), decoding_settings()
    tables = by_words(random_scores(len(logits), seed=3))
    metrics = [lambda ids, table=table: table[tuple(ids)] for table in tables]
    config = mcts(simulations=400, temperature=4.0, objective="oracle_bleu")
    results, _ = searched(logits, config, penalty, metrics=metrics)
    assert [metric(result.ids) for metric, result in zip(metrics, results)] == [max(t.values()) for t in tables]
    few, _ = searched(logits, mcts(simulations=4, objective="oracle_bleu"), penalty, metrics=metrics)
    greedily = [metric(plain(greedy(table))) for metric, table in zip(metrics, logits)]
    assert sum(metric(result.ids) for metric, result in zip(metrics, few)) > sum(greedily)


def test_the_best_complete_translation_that_was_seen_is_returned(decoding_settings):
    """For some of these sentences, the path of the most visited children ends in another translation."""
    logits = random_logits(40, seed=9)
    tables = by_words(random_scores(40, seed=9))
    seen = [[] for _ in tables]
    metrics = [lambda ids, n=n: seen[n].append(tables[n][tuple(ids)]) or seen[n][-1] for n in range(40)]
    results, _ = searched(logits, mcts(simulations=6, objective="oracle_bleu"), decoding_settings(), metrics=metrics)
    assert [table[tuple(result.ids)] for table, result in zip(tables, results)] == [max(values) for values in seen]


@pytest.mark.parametrize("objective", ["value", "log_probability"])
def test_one_simulation_is_greedy_search(decoding_settings, objective):
    logits, scores = random_logits(20), random_scores(20)
    config = mcts(simulations=1, objective=objective)
    results, _ = searched(logits, config, decoding_settings(), value=perfect(scores))
    assert [result.ids for result in results] == [plain(greedy(table)) for table in logits]


def test_no_hypothesis_is_expanded_beyond_its_end(decoding_settings):
    """Where EOS is the most probable token and has the highest value, simulations visit it many times."""
    logits = random_logits()
    logits[..., EOS] += 3
    limits = [4, 3, 2, 1, 4, 3, 2, 1]
    value = {"value": lambda sentence, prefix: float(prefix[-1] == EOS), "limits": limits}
    results, step = searched(logits, mcts(simulations=64), decoding_settings(), **value)
    for limit, prefixes in zip(limits, step.decoded):
        assert any(prefix[-1] == EOS for prefix in prefixes)
        assert all(EOS not in prefix[:-1] and len(prefix) <= limit + 1 for prefix in prefixes)
    assert all(len(result.ids) < limit for limit, result in zip(limits, results))
    logits[..., EOS] = -30.0
    results, _ = searched(logits, mcts(), decoding_settings(), limits=limits)
    assert [len(result.ids) for result in results] == limits
    assert run(tree_of(logits[:0]), [], mcts()) == []


def test_an_unvisited_child_starts_at_its_parents_value(decoding_settings):
    """The likeliest child is worse than its parent, so the second simulation visits another child."""
    logits = torch.zeros(1, LIMIT, VOCABULARY, VOCABULARY)
    logits[0, 0, BOS, 3], logits[0, 0, BOS, 4] = 1.5, 1.0
    values = {(): 0.5, (3,): 0.2, (4,): 0.5}
    config = mcts(simulations=2, c=0.1)
    _, step = searched(logits, config, decoding_settings(), value=lambda _, prefix: values.get(tuple(prefix[1:]), 0.3))
    assert step.decoded[0][:3] == [[BOS], [BOS, 3], [BOS, 4]]


def test_values_are_rescaled_to_the_range_of_the_tree(decoding_settings):
    logits, scores = random_logits(), random_scores(8)
    one, _ = searched(logits, mcts(simulations=16), decoding_settings(), value=perfect(scores))
    scaled = [{tokens: 512 * found - 256 for tokens, found in table.items()} for table in scores]
    value = {"value": lambda *row: perfect(scaled)(*row) if perfect(scores)(*row) else -256}
    other, _ = searched(logits, mcts(simulations=16), decoding_settings(), **value)
    assert one == other


def test_the_subtree_of_the_move_is_kept_and_no_sentence_waits_for_another(decoding_settings):
    """No prefix is decoded twice. A search that drops its tree would decode 1 + simulations prefixes for every token."""
    logits, scores = random_logits(), random_scores(8)
    config = mcts(simulations=20)
    results, step = searched(logits, config, decoding_settings(), value=perfect(scores))
    for prefixes in step.decoded:
        assert len({tuple(prefix) for prefix in prefixes}) == len(prefixes)
    moves = sum(min(LIMIT, len(result.ids) + 1) for result in results)
    assert sum(map(len, step.decoded)) < 0.7 * (moves * config.simulations)
    assert step.calls == max(map(len, step.decoded)) and len({len(prefixes) for prefixes in step.decoded}) > 1
    searches = [Search(LIMIT, decoding_settings(), config) for _ in logits]
    run(tree_of(logits, perfect(scores)), searches, config)
    for each in searches:  # a discarded node gives its slot back
        in_tree = [node.slot for node in each.root.subtree() if node.slot >= 0]
        assert sorted([*in_tree, *each.free]) == list(range(each.slots))
        assert each.slots <= 1 + config.simulations + LIMIT


def whole(search: Search) -> Search:
    """The search, which keeps its whole tree, to look at it."""
    search.discard_siblings = lambda chosen: None
    return search


def test_running_means_are_backed_up(decoding_settings):
    logits, scores = random_logits(1), random_scores(1)
    tree = whole(Search(LIMIT, decoding_settings(), mcts(simulations=50)))
    run(tree_of(logits, perfect(scores)), [tree], mcts(simulations=50))
    root = tree.root
    assert root.visits == 51 and root.visits_K.sum() == 50
    for rank, child in root.children.items():
        if most_visited(root) != rank:  # the chosen child became a root and was visited more often
            valued = [node for node in child.subtree() if node.value is not None]
            total = sum(node.value * (node.visits - node.visits_K.sum()) for node in valued)
            assert child.visits == root.visits_K[rank] > 0
            assert root.mean_K[rank] == pytest.approx(total / child.visits)
    root.visits_K, root.mean_K = np.array([2.0, 3.0, 3.0]), np.array([0.9, 0.1, 0.2])
    assert most_visited(root) == 2, "of equally visited children, the one with the higher mean"


def test_a_prefix_is_worth_its_greedy_completion_by_the_model_of_each_step(decoding_settings):
    (logits,), penalty = random_logits(1), decoding_settings()
    config = mcts(simulations=30, objective="log_probability")
    tree = whole(Search(LIMIT, penalty, config))
    run(tree_of(logits[None]), [tree], config)
    valued = [node for node in tree.root.subtree() if node.value is not None]
    assert max(node.depth for node in valued) == LIMIT
    for node in valued:
        prefix = [*node.ids, *[node.token] * (node.token == EOS)]
        assert node.value == pytest.approx(score(logits, greedy(logits, prefix), penalty), abs=1e-5)
    narrow = whole(Search(LIMIT, penalty, few := mcts(children=2, temperature=2.0, objective="log_probability")))
    run(tree_of(logits[None]), [narrow], few)
    priors, places = (logits[0, BOS, [EOS, *WORDS]] / 2).softmax(-1).topk(2)
    assert narrow.root.decoded.token_K == [[EOS, *WORDS][place] for place in places]
    assert narrow.root.decoded.prior_K.tolist() == pytest.approx(priors.tolist()), "of the whole vocabulary"


def value_beam(logits, value, weight, config):
    decoder = ValueBeam(config, ValueBeamConfig(weight), values=lambda hidden: hidden[..., 0])
    return decoder.search(Uncached(Table(logits, value), [LIMIT] * len(logits)), n_best=1)


def test_a_perfect_value_guides_the_beam_to_better_scores_and_in_a_wide_beam_to_the_best(decoding_settings):
    logits, scores = random_logits(30), random_scores(30)

    def mean_score(weight, beam):
        found = value_beam(logits, perfect(scores), weight, decoding_settings(beam=beam, alpha=0.0))
        tokens = [tuple([*best.ids, EOS][:LIMIT]) for best, *_ in found]
        return sum(table[each] for table, each in zip(scores, tokens)) / len(tokens)

    assert mean_score(0.0, 4) + 0.1 < mean_score(0.5, 4) < mean_score(0.99, 4)
    best = [max(table[tokens] for tokens in ended(LIMIT)) for table in scores]
    assert mean_score(0.999, 200) == pytest.approx(sum(best) / len(best))


def test_a_value_beam_ranks_by_log_likelihood_and_value(decoding_settings):
    """If no hypothesis is pruned, the result is the best of all by the documented score."""
    logits, scores, weight = random_logits(seed=9), random_scores(8, seed=9), 0.5
    config = decoding_settings(beam=200, alpha=0.0)
    for (result, *_), table, values in zip(value_beam(logits, perfect(scores), weight, config), logits, scores):
        best = max(ended(LIMIT), key=lambda t: (1 - weight) * score(table, t, config) + weight * math.log(values[t]))
        assert result.ids == plain(best)
        expected = score(table, best, config) + weight / (1 - weight) * math.log(values[best])
        assert result.score == pytest.approx(expected, abs=1e-4)


def test_a_value_beam_of_weight_0_is_beam_search(decoding_settings):
    logits, config = random_logits(30), decoding_settings(beam=2)
    expected = Beam(config).search(Uncached(Table(logits), [LIMIT] * 30), 1)
    assert_same(best_of(value_beam(logits, perfect(random_scores(30)), 0.0, config)), best_of(expected))


@torch.inference_mode()
@pytest.mark.parametrize("objective, neighbourhood", [("value", 0), ("log_probability", 0), ("value", 3)])
def test_cached_equals_uncached(settings, decoding_settings, monkeypatch, objective, neighbourhood):
    """Also for an ensemble of one model twice."""
    model, config = sharpened(settings(neighbourhood=neighbourhood)), mcts(simulations=16, objective=objective)
    decoder = Mcts(decoding_settings(), config, column if objective == "value" else None, None)
    tree = Tree(Whole(model, SOURCES), len(SOURCES))
    uncached = Uncached(tree.answer, [len(source) + 6 for source in SOURCES])
    uncached.tree = lambda slots: tree
    expected = best_of(decoder.search(uncached, 1))
    one, two = (Sentences(models, SOURCES, range(len(SOURCES)), 6) for models in ([model], [model, model]))
    assert_same(best_of(decoder.search(one, 1)), expected)
    assert one.calls == sum(map(len, tree.decoded))
    assert_same(best_of(decoder.search(two, 1)), expected)
    grown, grow = [], TreeStep.grow
    monkeypatch.setattr(TreeStep, "grow", lambda tree, slots: grown.append(slots) or grow(tree, slots))
    monkeypatch.setattr(Sentences, "tree", lambda batch, slots: Counted(batch, [TreeStep(model, batch.source_BS, 3)]))
    assert_same(best_of(decoder.search(one, 1)), expected)
    assert len(grown) > 3 and max(grown) >= 16
