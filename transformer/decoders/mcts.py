"""Monte-Carlo tree search for each next token, as in Leblond et al. 2021 and in AlphaZero.

A node of the tree is a hypothesis. Each simulation descends from the root to a node that has no value yet or has ended,
computes its value if it has none, and adds the value to the running means of the node and of its ancestors below the root.
After the simulations, the most visited child of the root gives the next token. This child is the root of the next search,
and its subtree is kept. If the value of a node is the score of its greedy completion, the result is the best completion
(see `Search.preference`). If a value head gives the values, the result is the sequence of tokens at the roots.

Shapes: B sentences, K children of a node, the most probable first, D d_model, V vocabulary.
"""

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np
from torch import Tensor

from transformer.config.decoders import MctsConfig
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.beam import length_penalty
from transformer.decoders.steps import Request, Sentences, Translation, tree_search
from transformer.value import Values

Metric = Callable[[int, list[int]], float]
"""The score of a translation, higher is better, given the number of the sentence in its set and the ids without EOS."""


@dataclass(frozen=True)
class Mcts:
    """Tree search as a `Decoder`. It returns one translation of each sentence, whatever `n_best` is.

    `metric` is given for the objectives `oracle_bleu` and `oracle_chrf`, `values` for the objective `value`.
    """

    config: DecodingConfig
    own: MctsConfig
    values: Values | None
    metric: Metric | None

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        searches = [
            Search(limit, self.config, self.own, partial(self.metric, number) if self.metric else None)
            for limit, number in zip(batch.limits, batch.numbers)
        ]
        answers = partial(decoded, own=self.own, values=self.values)
        return tree_search(batch, 2 * self.own.simulations, [search.run() for search in searches], answers)

    def width(self, n_best: int) -> int:
        """The memory of a sentence's tree, as a number of hypotheses of a beam.

        A node stores the keys and values of one position. A hypothesis stores those of all its positions; 16 is a low
        estimate of the number of positions.
        """
        return 1 + self.own.simulations // 16


@dataclass(frozen=True)
class Decoded:
    """The model's output for a node: its likely children, and its value if there is a value function."""

    token_K: list[int]
    log_prob_K: list[float]
    prior_K: np.ndarray
    value: float | None


@dataclass(eq=False)
class Node:
    """A hypothesis. `decoded` is None until the model has decoded the node, `value` until its value is computed."""

    token: int
    parent: "Node | None"
    rank: int  # among its parent's children
    log_probability: float
    ended: bool  # by EOS or by the limit
    depth: int  # tokens, BOS excluded and EOS included
    slot: int = -1
    decoded: Decoded | None = None
    value: float | None = None  # its own, which does not change
    visits: int = 0
    children: dict[int, "Node"] = field(default_factory=dict)
    visits_K: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mean_K: np.ndarray = field(default_factory=lambda: np.zeros(0))  # running means; a child starts at the node's value

    def subtree(self) -> Iterator["Node"]:
        """The node and all its descendants."""
        waiting = [self]
        while waiting:
            yield (node := waiting.pop())
            waiting += node.children.values()

    @property
    def ids(self) -> list[int]:
        """The tokens without BOS and EOS."""
        tokens, node = list[int](), self
        while node.parent:
            tokens.append(node.token)
            node = node.parent
        return [token for token in reversed(tokens) if token != EOS]


def decoded(hidden_BD: Tensor, logits_BV: Tensor, own: MctsConfig, values: Values | None) -> Iterator[Decoded]:
    """The `own.children` most probable children of each node. Priors are normalised over the whole vocabulary."""
    log_prob_BK, token_BK = logits_BV.log_softmax(-1).topk(min(own.children, logits_BV.shape[1] - 2))
    prior_BK = (logits_BV / own.temperature).softmax(-1).gather(1, token_BK)
    value_B = values(hidden_BD).tolist() if values else [None] * len(token_BK)
    return map(Decoded, token_BK.tolist(), log_prob_BK.tolist(), prior_BK.cpu().numpy(), value_B)


@dataclass
class Search:
    """The tree of one sentence. `limit` is the maximum number of tokens of its translation, EOS included.

    The generators yield each node to decode, and receive its `Decoded`.
    """

    limit: int
    config: DecodingConfig
    own: MctsConfig
    metric: Callable[[list[int]], float] | None = None
    free: list[int] = field(default_factory=list)  # slots of discarded nodes
    slots: int = 0  # allocated, including the free ones
    low: float = inf  # the lowest value in this tree
    high: float = -inf
    best: Node | None = None  # the best complete translation (see `preference`); None if a head gives the values

    def __post_init__(self) -> None:
        self.root = Node(BOS, None, 0, 0.0, ended=self.limit < 1, depth=0)

    def run(self) -> Generator[Request, Decoded, Translation]:
        """Yields the nodes to decode and returns the translation."""
        root = self.root
        while not root.ended:
            while root.visits <= self.own.simulations:  # the root's own value is the first visit
                yield from self.simulate(root)
            chosen = self.child(root, most_visited(root))
            self.discard_siblings(chosen)
            root = chosen
        found = self.best or root
        return Translation(found.ids, self.model_score(found))

    def simulate(self, root: Node) -> Generator[Request, Decoded, None]:
        """One simulation: select, value, back up. A hypothesis that has ended is visited again, but never expanded."""
        node = root
        while node.value is not None and not node.ended:
            node = self.child(node, self.select(node))
        if node.value is None:
            node.value = yield from self.valued(node)
            self.low, self.high = min(self.low, node.value), max(self.high, node.value)
            if node.decoded:
                node.visits_K = np.zeros(len(node.decoded.token_K))
                node.mean_K = np.full(len(node.decoded.token_K), node.value)
        root.visits += 1
        value = node.value
        while node is not root:  # add the value to the means below the root
            assert node.parent
            node.visits += 1
            node.parent.visits_K[node.rank] += 1
            node.parent.mean_K[node.rank] += (value - node.parent.mean_K[node.rank]) / node.visits
            node = node.parent

    def select(self, node: Node) -> int:
        """The rank of the child with the highest sum of rescaled value and exploration bonus."""
        assert node.decoded
        spread = self.high - self.low
        rescaled_K = (node.mean_K - self.low) / (spread if spread > 0 else 1.0)
        bonus_K = node.decoded.prior_K * math.sqrt(node.visits) / (1 + node.visits_K)
        return int((rescaled_K + self.own.c * bonus_K).argmax())

    def valued(self, node: Node) -> Generator[Request, Decoded, float]:
        """The value of a node: the output of the value function, or the score of the node's greedy completion."""
        if self.own.objective == "value":
            value = (yield from self.decode(node)).value
            assert value is not None
            return value
        end = node
        while not end.ended:  # the nodes of the completion are added to the tree, without visits
            yield from self.decode(end)
            end = self.child(end, 0)
        if end.value is None:
            end.value = self.metric(end.ids) if self.metric else self.model_score(end)
        if self.best is None or self.preference(end) > self.preference(self.best):
            self.best = end
        return end.value

    def preference(self, end: Node) -> tuple[bool, float]:
        """What a complete translation is compared by: its value.

        The score of a translation that the limit cut lacks EOS, so it ranks below those with EOS, as in beam search. A
        metric does not depend on EOS.
        """
        assert end.value is not None
        return self.metric is not None or end.token == EOS, end.value

    def decode(self, node: Node) -> Generator[Request, Decoded, Decoded]:
        if node.decoded is None:
            node.slot = self.free.pop() if self.free else self.slots
            self.slots = max(self.slots, node.slot + 1)
            node.decoded = yield node.token, node.parent.slot if node.parent else -1, node.slot
        return node.decoded

    def child(self, node: Node, rank: int) -> Node:
        if rank not in node.children:
            assert node.decoded and not node.ended
            token, log_prob = node.decoded.token_K[rank], node.decoded.log_prob_K[rank]
            depth = node.depth + 1
            ended = token == EOS or depth == self.limit
            node.children[rank] = Node(token, node, rank, node.log_probability + log_prob, ended, depth)
        return node.children[rank]

    def discard_siblings(self, chosen: Node) -> None:
        """Remove the siblings of `chosen` and free the slots of their subtrees."""
        assert chosen.parent
        for node in chosen.parent.children.values():
            if node is not chosen:
                self.free += [each.slot for each in node.subtree() if each.slot >= 0]
        chosen.parent.children = {chosen.rank: chosen}

    def model_score(self, node: Node) -> float:
        """The score by which beam search compares finished hypotheses."""
        return node.log_probability / float(length_penalty(max(1, node.depth), self.config))


def most_visited(node: Node) -> int:
    """The rank of the most visited child. A tie is decided by the higher mean, then by the higher probability."""
    most_K = node.visits_K == node.visits_K.max()
    return int(np.where(most_K, node.mean_K, -inf).argmax())
