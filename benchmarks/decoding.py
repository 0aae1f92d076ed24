"""Decoding speed compared with Hugging Face's generate and CTranslate2, on the same weights and sentences.

    python -m benchmarks.decoding MODEL_FOLDER SOURCE_TEXT [--reference TEXT] [--sentences 500] [--rounds 3]
    python -m benchmarks.decoding --shape base [--sentences 500] [--rounds 3]

The beam is 4, without a length penalty. The precisions are float32 and the one that `decoding.precision: auto` chooses
on this machine; CTranslate2 also computes in int8. Each system has its own process, and the systems take turns. For each
system and precision, the table has the median of target tokens per second over the rounds, our speed in the same precision
(for int8, in `auto`) divided by the system's, the share of translations equal to ours in float32, and sacreBLEU if there
is a reference. The row of a system that cannot translate on this machine shows dashes and the reason.

Batches are sorted by length. Our batches are those of pipeline.decode. The peers' batches have the same size on a GPU, and
at most `PEERS` source pieces times beam on a CPU. On a CPU, CTranslate2 translates one batch per thread. So does our
decoder, but at most 4 batches at once. generate has no such mode. All processes keep the memory that they free, as
pipeline.decode does. The threads are those of params.yaml.

The second form uses random weights. They almost never choose EOS, so translations reach the length limit. This limit is
the length of every input, 27 pieces.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics import BLEU

from benchmarks import record
from benchmarks.record import Table
from benchmarks.training import marian
from benchmarks.turns import Entrant, Turn, take_turns
from pipeline.running import stage
from pipeline.running.hardware import keep_freed
from pipeline.settings.params import load, section
from pipeline.text.evaluation import read_lines
from transformer.checkpoint import WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import Beam
from transformer.decoding import batches_by_length, model_in, search_batches, settings_on
from transformer.device import at_once, device_of, precision_of
from transformer.layout import pad
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary

# For random weights. Other systems have one length limit per batch, so all sentences have the mean length of WMT14.
VOCABULARY, LENGTH = 37000, 27
PEERS = 4096  # batch_tokens of the peers on a CPU; CTranslate2 is slower with more

Batch = list[list[int]]
"""Source sentences or their translations, as ids of pieces."""

Translate = Callable[[Batch, list[list[int]]], Iterable[Batch]]
"""A function of all sources and of batches of their numbers. Returns the translations of each batch."""


def ours(model: Transformer, config: DecodingConfig) -> Translate:
    converted = model_in(config.precision, model)

    def translations(sources: Batch, batches: list[list[int]]) -> Iterator[Batch]:
        for found, _ in search_batches([converted], sources, batches, Beam(config), config, 1):
            yield [best.ids for best, *_ in found]

    return translations


def hugging_face(model: Transformer, config: DecodingConfig) -> Translate:
    from transformers.utils import logging

    from pipeline.extras.export.__main__ import POSSIBLE, tensors_of

    logging.set_verbosity_error()
    peer: Any = marian(model.config, len(model.embedding)).eval()
    missing = peer.load_state_dict(tensors_of(model), strict=False)
    assert not missing.unexpected_keys, missing
    peer.tie_weights()
    device = model.embedding.device
    peer.to(device, getattr(torch, config.precision))

    @torch.inference_mode()
    def translation(sources: Batch) -> Batch:
        rows = pad([[*source, EOS] for source in sources]).to(device)
        limit = max(map(len, sources)) + config.extra_length
        out = peer.generate(
            input_ids=rows,
            attention_mask=(rows != PAD).long(),
            num_beams=config.beam,
            length_penalty=0.0,
            max_new_tokens=limit,
            **POSSIBLE,
        )
        return [[token for token in row if token not in (PAD, BOS, EOS)] for row in out.tolist()]

    return lambda sources, batches: (translation([sources[number] for number in numbers]) for numbers in batches)


def ctranslate2(model: Transformer, config: DecodingConfig) -> Translate:
    import ctranslate2

    from pipeline.extras.export.__main__ import ctranslate2_spec

    pieces = [f"<{number}>" for number in range(len(model.embedding))]
    for number, name in ((BOS, "<s>"), (EOS, "</s>"), (PAD, "<pad>"), (1, "<unk>")):
        pieces[number] = name
    number_of = {piece: number for number, piece in enumerate(pieces)}
    device = model.embedding.device.type
    batches_at_once = config.threads if device == "cpu" else 1
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_spec(model.cpu(), pieces).save(folder)
        peer = ctranslate2.Translator(
            folder, device=device, inter_threads=batches_at_once, intra_threads=1, compute_type=config.precision
        )

    def start(sources: Batch) -> list:
        return peer.translate_batch(
            [[pieces[token] for token in source] for source in sources],
            beam_size=config.beam,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=max(map(len, sources)) + config.extra_length,
            asynchronous=True,
        )

    def translations(sources: Batch, batches: list[list[int]]) -> list[Batch]:
        started = [start([sources[number] for number in numbers]) for numbers in batches]
        return [[[number_of[p] for p in one.result().hypotheses[0]] for one in results] for results in started]

    return translations


# Each function imports its library when called, and raises ImportError if the library is not installed.
SYSTEMS = {"ours": ours, "Hugging Face generate": hugging_face, "CTranslate2": ctranslate2}


def translated(task: tuple[str | Path, Batch, str, DecodingConfig]) -> Turn:
    """A pass of a system over `sources`. `weights` are a model folder, or a shape of params.yaml with random weights."""
    weights, sources, system, settings = task
    keep_freed()
    torch.set_num_threads(settings.threads)
    torch.manual_seed(1)
    if isinstance(weights, Path):
        model = load_model(weights / WEIGHTS, torch.device("cpu"))[0]
    else:
        model = Transformer(section(load(), "models", weights, "model", ModelConfig), VOCABULARY).eval()
    device, own = device_of("auto"), system == "ours"
    config = settings_on(device, settings, model.config.d_model)
    tokens = config.batch_tokens if own or device.type == "cuda" else min(config.batch_tokens, PEERS)
    threads = at_once(device, config.threads) if own else 1
    batches = batches_by_length([*map(len, sources)], max(1, tokens // config.beam), threads)
    translate = SYSTEMS[system](model.to(device), config)

    def turn() -> tuple[int, Batch]:
        found = dict(zip(chain(*batches), chain(*translate(sources, batches))))
        return sum(len(ids) + 1 for ids in found.values()), [found[number] for number in range(len(found))]

    return turn


def task_of(arguments: argparse.Namespace) -> tuple[Batch, DecodingConfig, Callable[[Batch], str]]:
    """The sentences of the command line, the settings of decoding, and the BLEU of translations."""
    if bool(arguments.shape) == bool(arguments.text):
        raise UserError("give either a model folder and a text, or --shape")
    config = replace(section(load(), "models", arguments.shape or "base", "decoding", DecodingConfig), alpha=0.0)
    if arguments.shape:
        sources = np.random.default_rng(1).integers(4, VOCABULARY, (arguments.sentences, LENGTH)).tolist()
        return sources, replace(config, extra_length=0), lambda _: "–"
    vocabulary = Vocabulary(arguments.model / "vocabulary.model")
    paths = (arguments.text, arguments.reference or arguments.text)
    pairs = list(zip(*(read_lines(path)[: arguments.sentences] for path in paths), strict=True))
    kept = [(ids, line) for ids, (_, line) in zip(vocabulary.encode([line for line, _ in pairs]), pairs) if ids]
    sources, references = map(list, zip(*kept))  # without empty lines

    def bleu(translations: Batch) -> str:
        return f"{BLEU().corpus_score(vocabulary.decode(translations), [references]).score:.2f}"

    return sources, config, bleu if arguments.reference else lambda _: "–"


def measure(arguments: argparse.Namespace) -> Iterator[Table]:
    sources, settings, bleu = task_of(arguments)
    label = f"{arguments.shape}, random" if arguments.shape else str(arguments.model)
    auto = precision_of("auto", device_of("auto"))
    precisions = dict.fromkeys((auto, "float32"))
    chosen: list[tuple[str, Any]] = [(system, precision) for precision in precisions for system in SYSTEMS]
    tasks = {
        f"{system}, {precision}": (system, replace(settings, precision=precision))
        for system, precision in [*chosen, ("CTranslate2", "int8")]
    }
    given = arguments.shape or arguments.model, sources
    makers = {name: Entrant(task[0] == "ours", translated, (*given, *task)) for name, task in tasks.items()}
    turns = take_turns(makers, arguments.rounds)
    rows = []
    for name, found in turns.results.items():
        precision = tasks[name][1].precision
        own = f"ours, {precision}" if f"ours, {precision}" in tasks else f"ours, {auto}"
        same = sum(map(list.__eq__, found, turns.results["ours, float32"])) / len(found)
        rows.append([label, name, turns.speed(name), turns.ratio(own, name), f"{same:.1%}", bleu(found)])
    rows += [[label, f"{name}: {reason}", *4 * "–"] for name, reason in turns.reasons.items()]
    yield {"columns": ["model", "system", "target tokens/s", "ours / this", "same as ours", "BLEU"], "rows": rows}


if __name__ == "__main__":
    parser = stage.parser("benchmarks.decoding", __doc__)
    parser.add_argument("model", type=Path, nargs="?", help="a model folder, as written by average")
    parser.add_argument("text", type=Path, nargs="?", help="a file of source lines")
    parser.add_argument("--reference", type=Path, help="a file of reference translations")
    parser.add_argument("--shape", choices=("tiny", "small", "base", "big"), help="use random weights of this shape")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    record.run(measure, parser)
