"""The search tree of one sentence of a decoding and the beam search of this sentence, as a score file for the report."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.beam import beam_search
from transformer.decoders.mcts import Mcts, Node, Search, tree_search
from transformer.decoders.steps import Batch, Decoder, Step, next_logits
from transformer.translator import Translator
from transformer.value import Values

LENGTHS = range(5, 21)  # pieces of a source; a smaller tree shows too little, a larger one is illegible


@dataclass(frozen=True)
class Branch:
    """A hypothesis. `parent` is the index of its parent in the list, -1 for BOS.

    `visits` and `value` come from a tree search. They no longer change once the search has chosen the
    hypothesis or one of its siblings.
    """

    parent: int
    token: int
    log_probability: float
    chosen: bool  # a prefix of the translation
    visits: int | None = None
    value: float | None = None  # the running mean; of BOS, its own value


def tree_of(batch: Batch, search: Search, values: Values | None) -> list[Branch]:
    """The visited nodes of `search`, each after its parent. `search.keep` must be set; `batch` has one sentence."""
    (result,) = tree_search(batch.tree(2 * search.own.simulations), [search], search.own, values, batch.device)
    path = [BOS, *result.ids, EOS]
    places: dict[int, int] = {}
    branches: list[Branch] = []
    for node in in_order(search.root):
        places[id(node)] = len(branches)
        tokens = [each.token for each in node.lineage()][::-1]
        parent, visits, mean = -1, node.visits, node.value
        if node.parent:
            parent, rank = places[id(node.parent)], node.rank
            visits, mean = int(node.parent.visits_K[rank]), float(node.parent.mean_K[rank])
        chosen = tokens == path[: len(tokens)]
        branches.append(Branch(parent, node.token, node.log_probability, chosen, visits, mean))
    return branches


def in_order(root: Node) -> Iterator[Node]:
    """The visited nodes, each before its children, and the children by falling probability."""
    waiting = [root]
    while waiting:
        yield (node := waiting.pop())
        waiting += [child for _, child in sorted(node.children.items(), reverse=True) if child.visits]


def beam_of(batch: Batch, config: DecodingConfig) -> list[Branch]:
    """The hypotheses that beam search decoded and the best ones that ended by EOS, for a batch of one sentence."""
    record = Record(batch.start())
    (found,) = beam_search(record, batch.limits, config, batch.device, config.beam)
    branches = dict(record.log_prob)
    for translation in found:
        prefix = (BOS, *translation.ids)
        if len(translation.ids) < batch.limits[0]:
            branches[(*prefix, EOS)] = branches[prefix] + record.of_eos[prefix]
    best = (BOS, *found[0].ids, EOS)
    places = {prefix: place for place, prefix in enumerate(branches)}
    return [
        Branch(places.get(prefix[:-1], -1), prefix[-1], log_prob, prefix == best[: len(prefix)])
        for prefix, log_prob in branches.items()
    ]


@dataclass
class Record:
    """A step function for one sentence. It records the hypotheses of every call."""

    step: Step
    log_prob: dict[tuple[int, ...], float] = field(default_factory=dict)
    of_eos: dict[tuple[int, ...], float] = field(default_factory=dict)
    prefixes: Sequence[tuple[int, ...]] = ((),)
    log_prob_KV: Tensor | None = None

    def __call__(self, tokens_BK: Tensor, origin_BK: Tensor) -> Tensor:
        tokens, origins = tokens_BK[0].tolist(), origin_BK[0].tolist()
        prefixes = [(*self.prefixes[origin], token) for token, origin in zip(tokens, origins)]
        for prefix, origin in zip(prefixes, origins):
            before = 0.0 if self.log_prob_KV is None else self.log_prob[prefix[:-1]]
            own = 0.0 if self.log_prob_KV is None else float(self.log_prob_KV[origin, prefix[-1]])
            self.log_prob[prefix] = before + own
        logits_BKV = self.step(tokens_BK, origin_BK)
        self.prefixes, self.log_prob_KV = prefixes, next_logits(logits_BKV[0].clone()).log_softmax(-1)
        self.of_eos |= dict(zip(prefixes, self.log_prob_KV[:, EOS].tolist()))
        return logits_BKV


@torch.inference_mode()
def search_tree(translator: Translator, decoder: Decoder, lines: Sequence[str], config: DecodingConfig) -> dict:
    """The two trees of the shortest sentence within LENGTHS, or {} without such a sentence or without a tree search."""
    if not isinstance(decoder, Mcts):
        return {}
    sources = translator.encode(list(lines))
    fitting = [number for number, source in enumerate(sources) if len(source) in LENGTHS]
    if not fitting:
        return {}
    number = min(fitting, key=lambda number: len(sources[number]))
    batch = Batch(translator.decoders, [sources[number]], [number], config.extra_length)
    search = Search(batch.limits[0], config, decoder.own, decoder.metric_of(number), keep=True)
    tree, beam = tree_of(batch, search, decoder.values), beam_of(batch, config)
    return {
        "line": number + 1,
        "source": lines[number],
        "objective": decoder.own.objective,
        "simulations": decoder.own.simulations,
        "beam_size": config.beam,
        "tree": [described(branch, translator) for branch in tree],
        "beam": [described(branch, translator) for branch in beam],
    }


def described(branch: Branch, translator: Translator) -> dict[str, Any]:
    """The branch with rounded numbers, and with a piece instead of an id."""
    row = {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(branch).items()}
    del row["token"]
    return row | {"piece": {BOS: "<s>", EOS: "</s>"}.get(branch.token) or translator.vocabulary.pieces([branch.token])[0]}
