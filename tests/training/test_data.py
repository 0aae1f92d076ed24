"""Batches: every pair occurs once per epoch, lengths within a batch are similar, and the step determines the batch.

Prefetching changes the time at which a batch is made, and nothing else.
"""

import threading
from collections import Counter
from itertools import chain

import numpy as np
import pytest

from tests.support.pairs import Pairs
from transformer.data import Batches, MixedBatches, Prefetch, in_order
from transformer.layout import padded


@pytest.mark.parametrize("kind", [Batches, MixedBatches])
def test_epochs_differ_in_their_batches_and_their_order(kind):
    batches = kind(Pairs(), 1, 200, 100)
    epochs = [[batches.batch(step).tolist() for step in range(e * len(batches), (e + 1) * len(batches))] for e in (0, 1)]
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}
    tokens = [[batches.sums(np.array(batch))["target_tokens"] for batch in epoch] for epoch in epochs]
    assert tokens[0] != tokens[1] and sorted(tokens[0]) == sorted(tokens[1]), "other order, equal cuts"


@pytest.mark.parametrize("kind", [Batches, MixedBatches])
def test_another_seed_gives_other_batches(kind):
    one, other = (kind(Pairs(), seed, 200, 100) for seed in (1, 2))
    assert any(one.batch(step).tolist() != other.batch(step).tolist() for step in range(len(one)))
    first, second = (kind(Pairs(), seed, 200, 100).ordered(epoch) for seed, epoch in ((1, 1), (2, 0)))
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in second], "no epoch of another seed"
    cuts = [sorted(each.sums(each.batch(step))["target_tokens"] for step in range(len(each))) for each in (one, other)]
    assert (cuts[0] != cuts[1]) == (kind is MixedBatches), "the seed also composes the rows"


def test_a_mixed_batch_of_few_tokens_does_not_exceed_the_limit():
    pairs = Pairs(longest=17)
    batches = MixedBatches(pairs, 1, 17, 17)
    sums = [batches.sums(batches.batch(step)) for step in range(len(batches))]
    assert sum(each["source_tokens"] for each in sums) == pairs.lengths("source").sum() + len(pairs)
    assert max(max(each["source_tokens"], each["target_tokens"]) for each in sums) == 17


@pytest.mark.parametrize("kind, full", [(Batches, 0.9), (MixedBatches, 0.8)])
def test_no_batch_exceeds_the_token_limit_and_most_are_nearly_full(kind, full):
    batches = kind(Pairs(5000), 1, 300, 100)
    sums = [batches.sums(batches.batch(step)) for step in range(len(batches))]
    assert all(max(s["source_tokens"], s["target_tokens"]) <= 300 for s in sums)
    fullest = [max(s["source_tokens"], s["target_tokens"]) for s in sums]
    assert np.mean(fullest) > full * 300


def test_pairs_of_a_batch_are_of_similar_lengths_or_of_all():
    """Less than 15% of both sides together is padding, even if the two lengths are uncorrelated."""
    pairs = Pairs(5000)
    batches, mixed = Batches(pairs, 1, 600, 100), MixedBatches(pairs, 1, 1000, 100)
    real = total = 0
    for step in range(len(batches)):
        batch = padded(pairs, batches.batch(step))
        for table in (batch.source.ids_BS, batch.target.ids_BS):
            real, total = real + int((table != 0).sum()), total + table.numel()
    assert real / total > 0.85
    for step in range(len(mixed)):
        lengths = mixed.source[mixed.batch(step)]
        assert lengths.min() < 8 and lengths.max() > 24


@pytest.mark.parametrize("kind", [Batches, MixedBatches])
def test_pairs_that_are_too_long_are_counted_and_skipped(kind):
    pairs = Pairs(longest=40)
    batches = kind(pairs, 1, 200, 21)
    short = [n for n in range(500) if max(map(len, pairs.pair(n))) + 1 <= 21]
    assert batches.left_out == 500 - len(short)
    assert sorted(chain(*(batches.batch(step).tolist() for step in range(len(batches))))) == short
    assert len(kind(pairs, 1, 200, 1)) == 0
    several = kind(pairs, 1, 200, 21, segmentations=2)
    assert several.left_out == (500 - len(short)) // 2, "the mean of its epochs of 250 pairs"


@pytest.mark.parametrize("kind", [Batches, MixedBatches])
def test_a_segmentation_without_a_pair_that_is_short_enough_is_skipped(kind):
    pairs = Pairs(200, longest=10)
    for side in pairs.sides:
        side[100:] = [np.full(30, 5) for _ in range(100)]
    batches = kind(pairs, 1, 60, 21, segmentations=2)
    assert sorted(chain(*(batches.batch(step).tolist() for step in range(batches.ends[-1])))) == list(range(100))


@pytest.mark.parametrize("tokens", [400, 100, 20])
def test_mixed_batches_have_one_shape_and_a_wider_one_for_the_few_longest_pairs(tokens):
    """A batch has 12 rows of 32 positions, or 5 rows of 80. The parts of a batch have equally many rows."""
    pairs = Pairs(2000)
    for side in pairs.sides:
        side[7] = side[8] = np.full(70, 5)
    batches = MixedBatches(pairs, 1, 400, 100)
    shapes = Counter()
    for step in range(len(batches)):
        parts = list(batches.micro_batches(batches.batch(step), tokens))
        tables = [batches.lay_out(part, tokens, padded) for part in parts]
        shapes.update({(table.source.ids_BS.shape, table.target.ids_BS.shape) for table in tables})
        assert np.concatenate(parts).tolist() == batches.batch(step).tolist()
    usual, wide = {400: [(12, 32), (5, 80)], 100: [(3, 32), (1, 80)], 20: [(1, 32), (1, 80)]}[tokens]
    assert shapes == {(usual, usual): len(batches) - 1, (wide, wide): 1}


@pytest.mark.parametrize("segmentations", [1, 3])
@pytest.mark.parametrize("kind", [Batches, MixedBatches])
def test_epochs_take_every_pair_of_the_segmentations_in_turn_and_a_batch_depends_on_its_step_alone(kind, segmentations):
    pairs = 200 * segmentations
    walked, jumped = (kind(Pairs(pairs), 1, 200, 100, segmentations=segmentations) for _ in range(2))
    step, seen = 0, []
    for epoch in range(7):
        first, numbers = epoch % segmentations * 200, []
        while len(numbers) < 200:
            seen.append(walked.batch(step).tolist())
            numbers, step = numbers + seen[-1], step + 1
        assert sorted(numbers) == list(range(first, first + 200))
    for step in (len(seen) - 1, 0, len(seen) // 2, 1):
        assert jumped.batch(step).tolist() == seen[step]
    assert abs(len(walked) - len(seen) / 7) <= 1


def test_micro_batches_are_the_batch_in_parts():
    batches = Batches(Pairs(), 1, 400, 100)
    numbers = batches.batch(3)
    parts = list(batches.micro_batches(numbers, 100))
    assert np.concatenate(parts).tolist() == numbers.tolist()
    assert len(parts) > 3
    assert all(batches.sums(part)["target_tokens"] <= 100 for part in parts)


def test_two_shares_in_order_take_every_pair_once_whatever_their_limits():
    pairs = Pairs()
    halves = (lambda numbers, sizes: numbers[:200]), (lambda numbers, sizes: numbers[200:])
    batches = [batch for share, tokens in zip(halves, (100, 37)) for batch in in_order(pairs, tokens, share)]
    sizes = [max(sum(len(pairs.pair(n)[side]) + 1 for n in batch) for side in (0, 1)) for batch in batches]
    assert max(sizes) <= 100, "of either side"
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))


def test_any_step_may_be_requested():
    prefetch = Prefetch(lambda step: step**2, 3)
    assert [prefetch(step) for step in (0, 1, 2, 7, 8, 3, 3, 4)] == [0, 1, 4, 49, 64, 9, 9, 16]


def test_only_the_next_steps_are_made_in_a_thread_that_begins_with_the_given_call():
    made, done = [], threading.Event()

    def noted(step):
        made.append((step, threading.current_thread() is threading.main_thread()))
        if step == 7:
            done.set()

    prefetch = Prefetch(noted, 2, lambda: noted("begun"))
    prefetch(5)
    assert done.wait(60)
    prefetch.close()
    assert made == [("begun", False), (5, False), (6, False), (7, False)]


def test_an_error_is_raised_when_its_step_is_requested():
    prefetch = Prefetch(lambda step: 1 // (2 - step), 3)
    assert [prefetch(0), prefetch(1)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        prefetch(2)
    assert prefetch(3) == -1
