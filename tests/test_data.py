"""Batches: every pair occurs once per epoch, lengths within a batch are similar, and the step determines the batch."""

import threading
from itertools import chain

import numpy as np

from transformer.data import Batches, in_order
from transformer.layout import padded


class Pairs:
    """Pairs of pieces in memory, with the `lengths` method of a binarised set."""

    def __init__(self, number=500, longest=30, seed=0):
        random = np.random.default_rng(seed)
        self.sides = [[random.integers(4, 90, n) for n in random.integers(1, longest, number)] for _ in range(2)]

    def __len__(self):
        return len(self.sides[0])

    def lengths(self, side):
        return np.array([len(ids) for ids in self.sides[side == "target"]])

    def pair(self, number):
        return self.sides[0][number], self.sides[1][number]


def test_an_epoch_takes_every_pair_once_and_epochs_differ():
    batches = Batches(Pairs(), 1, 200, 100)
    epochs = [
        [batches.batch(step).tolist() for step in range(e * len(batches), (e + 1) * len(batches))] for e in (0, 1)
    ]
    for epoch in epochs:
        assert sorted(chain(*epoch)) == list(range(500))
    assert epochs[0] != epochs[1]
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}


def test_the_next_epoch_is_ordered_in_a_thread_during_this_one(monkeypatch):
    made, done = [], threading.Event()
    ordered = Batches.ordered

    def noted(batches, epoch):
        made.append((epoch, threading.current_thread() is threading.main_thread()))
        if epoch == 4:
            done.set()
        return ordered(batches, epoch)

    monkeypatch.setattr(Batches, "ordered", noted)
    batches = Batches(Pairs(), 1, 200, 100)
    batches.batch(3 * len(batches))
    assert done.wait(60)
    batches.batch(4 * len(batches) - 1)
    assert made == [(3, False), (4, False)]


def test_a_batch_depends_only_on_step_and_seed():
    walked, jumped, other = (Batches(Pairs(), seed, 200, 100) for seed in (1, 1, 2))
    steps = [3 * len(walked) + 2, 0, 5, len(walked) + 1]
    seen = {step: walked.batch(step).tolist() for step in range(4 * len(walked))}
    assert all(jumped.batch(step).tolist() == seen[step] for step in steps)
    assert any(other.batch(step).tolist() != seen[step] for step in steps)


def test_no_batch_exceeds_the_token_limit_and_most_are_nearly_full():
    batches = Batches(Pairs(5000), 1, 300, 100)
    sums = [batches.sums(batches.batch(step)) for step in range(len(batches))]
    assert all(max(s["source_tokens"], s["target_tokens"]) <= 300 for s in sums)
    fullest = [max(s["source_tokens"], s["target_tokens"]) for s in sums]
    assert np.mean(fullest) > 0.9 * 300


def test_a_batch_has_pairs_of_similar_lengths():
    """Padding is small on both sides, even if the two lengths are uncorrelated."""
    pairs = Pairs(5000)
    batches = Batches(pairs, 1, 600, 100)
    real = total = 0
    for step in range(len(batches)):
        batch = padded(pairs, batches.batch(step))
        for table in (batch.source.ids_BS, batch.target.ids_BS):
            real, total = real + int((table != 0).sum()), total + table.numel()
    assert real / total > 0.85


def test_pairs_that_are_too_long_are_counted_and_skipped():
    pairs = Pairs(longest=40)
    batches = Batches(pairs, 1, 200, 21)
    short = [n for n in range(500) if max(map(len, pairs.pair(n))) + 1 <= 21]
    assert batches.left_out == 500 - len(short)
    assert sorted(chain(*(batches.batch(step).tolist() for step in range(len(batches))))) == short
    assert len(Batches(pairs, 1, 200, 1)) == 0


def test_micro_batches_are_the_batch_in_parts():
    batches = Batches(Pairs(), 1, 400, 100)
    numbers = batches.batch(3)
    parts = list(batches.micro_batches(numbers, 100))
    assert np.concatenate(parts).tolist() == numbers.tolist()
    assert len(parts) > 3
    assert all(batches.sums(part)["target_tokens"] <= 100 for part in parts)


def test_in_order_takes_every_pair_once():
    pairs = Pairs()
    assert sorted(np.concatenate(list(in_order(pairs, 100))).tolist()) == list(range(500))


def test_two_shares_in_order_take_every_pair_once_whatever_their_limits():
    pairs = Pairs()
    halves = (lambda numbers, sizes: numbers[:200]), (lambda numbers, sizes: numbers[200:])
    batches = [batch for share, tokens in zip(halves, (100, 37)) for batch in in_order(pairs, tokens, share)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
