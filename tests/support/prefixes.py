"""What the tests of decoders share: searches without a cache, on tables of logits or on whole models, and enumeration.

A prefix is a list of tokens that begins with BOS. `answer(rows)` gives the logits [R, V] of the next token and the hidden
states [R, D] of rows, each the number of a sentence and a prefix.
"""

import itertools
import math

import pytest
import torch

from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import length_penalty
from transformer.layout import pad
from transformer.model import Transformer

CPU = torch.device("cpu")
VOCABULARY = 6  # of tables
WORDS = [token for token in range(VOCABULARY) if token not in (PAD, BOS, EOS)]
SOURCES = [[7, 8, 9], [12], [20, 21, 22, 23, 24, 25, 26], [5, 6], [30, 31, 32, 33]]


def sharpened(config):
    """An untrained model with a scaled embedding, so that the hypotheses differ and are reordered in the beam."""
    torch.manual_seed(3)
    model = Transformer(config, 40).eval()
    with torch.no_grad():
        model.embedding *= 4
    return model


class Ids:
    """A vocabulary whose lines are ids."""

    def encode(self, lines, threads=1):
        return [list(map(int, line.split())) for line in lines]


def random_table(sentences, positions=6, seed=0, scale=1.0):
    return scale * torch.randn(sentences, positions, VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(seed))


class Table:
    """Logits [sentence, position, previous token, next token]. The hidden state is `value(sentence, prefix)`."""

    def __init__(self, logits, value=lambda sentence, prefix: 0.0):
        self.logits, self.value = logits, value

    def __call__(self, rows):
        last = self.logits.shape[1] - 1
        logits = [self.logits[sentence, min(len(prefix) - 1, last), prefix[-1]] for sentence, prefix in rows]
        return torch.stack(logits), torch.tensor([[self.value(*row)] for row in rows], dtype=torch.float64)


class Whole:
    """The whole model on each prefix."""

    def __init__(self, model, sources):
        self.model, self.source_BS = model, pad([[*source, EOS] for source in sources])

    def __call__(self, rows):
        sentences, prefixes = zip(*rows)
        hidden = self.model.hidden(self.source_BS[list(sentences)], pad(prefixes))
        hidden = hidden[range(len(rows)), [len(prefix) - 1 for prefix in prefixes]]
        return self.model.logits(hidden), hidden


class Steps:
    """A step function. `moved` counts the calls in which hypotheses were reordered."""

    def __init__(self, answer):
        self.answer, self.rows, self.moved = answer, [], 0

    def __call__(self, tokens_BK, origin_BK):
        before = self.rows or [(sentence, []) for sentence in range(len(tokens_BK))]
        origins, tokens = origin_BK.flatten().tolist(), tokens_BK.flatten().tolist()
        self.moved += origins != list(range(len(before)))
        self.rows = [(before[origin][0], [*before[origin][1], token]) for origin, token in zip(origins, tokens)]
        logits, hidden = self.answer(self.rows)
        self.hidden_BKD = hidden.view(*tokens_BK.shape, -1)
        return logits.view(*tokens_BK.shape, -1)


class Tree:
    """A tree of prefixes. `decoded` has those of each sentence, in the order of the calls."""

    def __init__(self, answer, sentences):
        self.answer, self.sentences, self.calls = answer, list(range(sentences)), 0
        self.slots = [{-1: []} for _ in self.sentences]
        self.decoded = [[] for _ in self.sentences]

    def __call__(self, tokens_BK, parent_BK, slot_BK):
        self.calls += 1
        assert tokens_BK.shape == (len(self.sentences), 1)
        for sentence, *places in zip(self.sentences, tokens_BK.tolist(), parent_BK.tolist(), slot_BK.tolist()):
            (token,), (parent,), (slot,) = places
            self.slots[sentence][slot] = [*self.slots[sentence][parent], token]
            self.decoded[sentence].append(self.slots[sentence][slot])
        logits, hidden = self.answer([(sentence, self.decoded[sentence][-1]) for sentence in self.sentences])
        self.hidden_BKD = hidden[:, None]
        return logits[:, None]

    def select(self, sentences):
        self.sentences = [self.sentences[row] for row in sentences]


class Uncached:
    """A batch of sentences for a decoder."""

    device = CPU

    def __init__(self, answer, limits):
        self.answer, self.limits, self.numbers = answer, limits, list(range(len(limits)))

    def start(self):
        return Steps(self.answer)

    def tree(self, slots):
        return Tree(self.answer, len(self.limits))


def sequences(limit, prefix=()):
    """Every complete continuation of `prefix`, without BOS: those that end with EOS, and those cut at the limit."""
    if EOS in prefix or len(prefix) == limit:
        yield prefix
        return
    for token in [*WORDS, EOS]:
        yield from sequences(limit, (*prefix, token))


def ended(limit):
    return [tokens for tokens in sequences(limit) if tokens[-1] == EOS]


def plain(tokens):
    return [token for token in tokens if token != EOS]


def log_probs_of(logits):
    allowed = logits.clone()
    allowed[..., [PAD, BOS]] = -math.inf
    return allowed.log_softmax(-1)


def surprisals(logits, tokens):
    log_probs = log_probs_of(logits)
    return [-log_probs[t, a, b].item() for t, (a, b) in enumerate(itertools.pairwise([BOS, *tokens]))]


def score(logits, tokens, config=None):
    """The log-probability of the tokens, divided by the length penalty of a config."""
    return -sum(surprisals(logits, tokens)) / (length_penalty(len(tokens), config) if config else 1)


def greedy(logits, prefix=()):
    tokens, log_probs = tuple(prefix), log_probs_of(logits)
    while EOS not in tokens and len(tokens) < len(logits):
        tokens = (*tokens, int(log_probs[len(tokens), [BOS, *tokens][-1]].argmax()))
    return tokens


def best_of(lists):
    return [translations[0] for translations in lists]


def assert_same(results, expected, tolerance=1e-4):
    assert [result.ids for result in results] == [other.ids for other in expected]
    assert [r.score for r in results] == pytest.approx([e.score for e in expected], abs=tolerance)
