"""The nodes of a search tree, and the model's output for them.

Shapes: B sentences, K children of a node, the most probable first, D d_model, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from transformer.config.decoders import MctsConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.steps import next_logits
from transformer.value import Values


@dataclass(frozen=True)
class Request:
    """A node to decode: its token, the slot of its parent (-1 for BOS) and its own (see `TreeStep`)."""

    token: int
    parent: int
    slot: int


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

    def lineage(self) -> Iterator["Node"]:
        """The node, its parent, and so on up to BOS."""
        node: Node | None = self
        while node:
            yield node
            node = node.parent

    def subtree(self) -> Iterator["Node"]:
        """The node and all its descendants."""
        waiting = [self]
        while waiting:
            yield (node := waiting.pop())
            waiting += node.children.values()

    @property
    def ids(self) -> list[int]:
        """The tokens without BOS and EOS."""
        tokens = [node.token for node in self.lineage()]
        return [token for token in reversed(tokens) if token not in (BOS, EOS)]


def decoded(hidden_BD: Tensor, logits_BV: Tensor, own: MctsConfig, values: Values | None) -> Iterator[Decoded]:
    """The `own.children` most probable children of each node. Priors are normalised over the whole vocabulary."""
    logits_BV = next_logits(logits_BV)
    log_prob_BV = logits_BV.log_softmax(-1)
    log_prob_BK, token_BK = log_prob_BV.topk(min(own.children, logits_BV.shape[1] - 2))
    prior_BK = (logits_BV / own.temperature).softmax(-1).gather(1, token_BK)
    value_B = values(hidden_BD).tolist() if values else [None] * len(token_BK)
    yield from map(Decoded, token_BK.tolist(), log_prob_BK.tolist(), prior_BK.cpu().numpy(), value_B)
