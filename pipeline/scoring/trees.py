"""The search tree of one sentence of a decoding and the beam search of this sentence, as a score file for the report."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from pipeline.scoring.branches import Branch, beam_of, tree_of
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.mcts import Mcts, Search
from transformer.decoders.steps import Batch, Decoder
from transformer.translator import Translator

LENGTHS = range(5, 21)  # pieces of a source; a smaller tree shows too little, a larger one is illegible


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
        "tree": described(tree, translator),
        "beam": described(beam, translator),
    }


def described(branches: Sequence[Branch], translator: Translator) -> list[dict[str, Any]]:
    """The branches with rounded numbers, and with pieces instead of ids."""
    special = {BOS: "<s>", EOS: "</s>"}
    rows = []
    for branch in branches:
        token = branch.token
        row = asdict(branch) | {"log_probability": round(branch.log_probability, 4)}
        row["piece"] = special.get(token) or translator.vocabulary.pieces([token])[0]
        row["value"] = None if branch.value is None else round(branch.value, 4)
        del row["token"]
        rows.append(row)
    return rows
