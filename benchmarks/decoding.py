"""Decoding speed compared with Hugging Face's generate and CTranslate2, on the same weights and sentences.

    python -m benchmarks.decoding MODEL_FOLDER SOURCE_TEXT [--reference TEXT] [--sentences 500] [--rounds 3]
    python -m benchmarks.decoding --shape base [--sentences 500] [--rounds 3]

The beam is 4, without a length penalty. The precisions are float32 and the one that `decoding.precision: auto` chooses
on this machine; CTranslate2 also computes in int8. The systems take turns. For each system and precision, the table has
the median of target tokens per second over the rounds, our speed in the same precision (for int8, in `auto`) divided by
the system's, the share of translations equal to ours in float32, and sacreBLEU if there is a reference. The row of a
system that cannot translate on this machine shows dashes and the reason.

Batches are sorted by length. Our batches are those of pipeline.decode. The peers' batches have the same size on a GPU, and
at most `PEERS` source pieces times beam on a CPU. On a CPU, CTranslate2 translates one batch per thread. So does our
decoder, but at most 4 batches at once. generate has no such mode. All systems run
in one process, which keeps the memory that it frees, as pipeline.decode does. Its OpenMP threads spin as long as by
default, which suits generate. With fewer than 8 `--threads`, each thread of our decoder has one OpenMP thread, which does
not spin.

The second form uses random weights. They almost never choose EOS, so translations reach the length limit. This limit is
the length of every input, 27 pieces.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics import BLEU

from benchmarks.peers import marian
from benchmarks.process import Process
from benchmarks.provenance import shown
from pipeline.commands.export import ctranslate2_spec, tensors_of
from pipeline.corpora.evaluation import read_lines
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer.checkpoint import WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import Beam
from transformer.decoding import batches_by_length, model_in, search_batches, settings_on
from transformer.device import at_once
from transformer.layout import pad
from transformer.memory import keep_freed
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary

# For random weights. Other systems have one length limit per batch, so all sentences have the mean length of WMT14.
VOCABULARY, LENGTH = 37000, 27
PEERS = 4096  # batch_tokens of the peers on a CPU; CTranslate2 is slower with more


System = tuple[str, str]
"""The name of a system, and its precision."""

Batch = list[list[int]]
"""Source sentences or their translations, as ids of pieces."""

Translate = Callable[[list[Batch]], list[Batch]]
"""A function from batches of sources to batches of translations."""


def ours(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    converted = model_in(precision, model)

    def translations(batches: list[Batch]) -> list[Batch]:
        numbers = [range(*ends) for ends in pairwise(accumulate(map(len, batches), initial=0))]
        found = search_batches([converted], [*chain(*batches)], numbers, Beam(config), config, 1)
        return [[best.ids for best, *_ in searched.translations] for searched in found]

    return translations


def hugging_face(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    from transformers.utils import logging

    logging.set_verbosity_error()
    peer: Any = marian(model.config, len(model.embedding)).eval()
    missing = peer.load_state_dict(tensors_of(model), strict=False)
    assert not missing.unexpected_keys, missing
    peer.tie_weights()
    device = model.embedding.device
    peer.to(device, getattr(torch, precision))

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
        )
        return [[token for token in row if token not in (PAD, BOS, EOS)] for row in out.tolist()]

    return lambda batches: list(map(translation, batches))


def ctranslate2(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    import ctranslate2

    pieces = [f"<{number}>" for number in range(len(model.embedding))]
    for number, name in ((BOS, "<s>"), (EOS, "</s>"), (PAD, "<pad>"), (1, "<unk>")):
        pieces[number] = name
    number_of = {piece: number for number, piece in enumerate(pieces)}
    device = model.embedding.device.type
    batches_at_once = config.threads if device == "cpu" else 1
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_spec(model.cpu(), pieces).save(folder)
        model.to(device)
        peer = ctranslate2.Translator(
            folder, device=device, inter_threads=batches_at_once, intra_threads=1, compute_type=precision
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

    def translations(batches: list[Batch]) -> list[Batch]:
        started = [start(sources) for sources in batches]
        return [[[number_of[p] for p in one.result().hypotheses[0]] for one in results] for results in started]

    return translations


# Each function takes the precision to compute in: float32 or bfloat16, for CTranslate2 also int8. It imports its library
# when called, and raises ImportError if the library is not installed.
SYSTEMS = {"ours": ours, "Hugging Face generate": hugging_face, "CTranslate2": ctranslate2}


def available(
    chosen: Iterable[System], model: Transformer, config: DecodingConfig, sources: Batch
) -> tuple[dict[System, Translate], dict[System, str]]:
    """The systems that can translate `sources` on this machine, and the reason why each of the others cannot."""
    systems, reasons = {}, {}
    for system in chosen:
        name, precision = system
        try:
            systems[system] = SYSTEMS[name](model, config, precision)
            systems[system]([sources])
        except (ImportError, RuntimeError, ValueError) as error:
            # CTranslate2 reports missing CUDA libraries only at its first batch.
            if name == "ours":
                raise
            systems.pop(system, None)
            reasons[system] = str(error).split("\n")[0]
    return systems, reasons


def run(system: Translate, sources: Batch, batches: list[list[int]], threads: int) -> tuple[Batch, float]:
    """The translations, in the order of `sources`, and the time in seconds."""
    torch.set_num_threads(threads)  # CTranslate2 changes the setting of the process
    results: Batch = [[]] * len(sources)
    started = time.perf_counter()
    translations = system([[sources[number] for number in numbers] for numbers in batches])
    seconds = time.perf_counter() - started
    for number, ids in zip(chain(*batches), chain(*translations)):
        results[number] = ids
    return results, seconds


@dataclass
class Task:
    """The sentences that all systems translate."""

    label: str
    sources: Batch
    rounds: int
    bleu: Callable[[Batch], str]  # takes translations in the order of `sources`

    def compare(self, names: list[str], model: Transformer, config: DecodingConfig) -> list[list[str]]:
        """The rows of the table for these systems. `config.precision` is the one that `auto` chooses here."""
        precisions = dict.fromkeys((config.precision, "float32"))
        chosen = [(name, precision) for precision in precisions for name in names] + [("CTranslate2", "int8")]
        systems, reasons = available(chosen, model, config, self.sources[:1])
        count, tokens = len(self.sources), max(1, config.batch_tokens // config.beam)
        lengths, device = [len(source) for source in self.sources], model.embedding.device
        most = tokens if device.type == "cuda" else min(tokens, PEERS // config.beam)
        by_length = batches_by_length(lengths, most)
        own = batches_by_length(lengths, tokens, at_once(device, config.threads))
        speeds: dict[System, list[float]] = {system: [] for system in systems}
        results: dict[System, Batch] = {}
        for number in range(self.rounds + 1):
            for system, translations in systems.items():
                batches = own if system[0] == "ours" else by_length
                # Round 0 is a warm-up on the first and the last batch. In `by_length`, these are the longest and shortest.
                batches = batches if number else [batches[0], batches[-1]]
                results[system], seconds = run(translations, self.sources, batches, config.threads)
                if number:
                    speeds[system].append(sum(len(ids) + 1 for ids in results[system]) / seconds)
        rows = []
        for system, measured in speeds.items():
            speed = statistics.median(measured)
            ours = ("ours", system[1]) if ("ours", system[1]) in speeds else ("ours", config.precision)
            ratio = statistics.median(speeds[ours]) / speed
            same = sum(a == b for a, b in zip(results[system], results["ours", "float32"])) / count
            cells = [f"{speed:,.0f}", f"{ratio:.2f}", f"{same:.1%}", self.bleu(results[system])]
            rows.append([self.label, ", ".join(system), *cells])
        return rows + [[self.label, f"{', '.join(system)}: {reason}", *4 * "–"] for system, reason in reasons.items()]


def scorer(vocabulary: Vocabulary, reference: list[str]) -> Callable[[Batch], str]:
    return lambda translations: f"{BLEU().corpus_score(vocabulary.decode(translations), [reference]).score:.2f}"


def random_task(shape: str, sentences: int, rounds: int) -> tuple[Transformer, Task]:
    torch.manual_seed(1)
    model = Transformer(section(load(), "models", shape, "model", ModelConfig), VOCABULARY).eval()
    sources = np.random.default_rng(1).integers(4, VOCABULARY, (sentences, LENGTH)).tolist()
    return model, Task(f"{shape}, random", sources, rounds, lambda _: "–")


def text_task(folder: Path, text: Path, reference: Path | None, sentences: int, rounds: int) -> tuple[Transformer, Task]:
    model, _ = load_model(folder / WEIGHTS, torch.device("cpu"))
    vocabulary = Vocabulary(folder / "vocabulary.model")
    pairs = list(zip(*(read_lines(path)[:sentences] for path in (text, reference or text)), strict=True))
    sources, references = vocabulary.encode([line for line, _ in pairs]), [line for _, line in pairs]
    kept = [number for number, source in enumerate(sources) if source]  # without empty lines
    bleu = scorer(vocabulary, [references[number] for number in kept]) if reference else lambda _: "–"
    return model, Task(str(folder), [sources[number] for number in kept], rounds, bleu)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.decoding", description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path, nargs="?", help="a model folder, as written by average")
    parser.add_argument("text", type=Path, nargs="?", help="a file of source lines")
    parser.add_argument("--reference", type=Path, help="a file of reference translations")
    parser.add_argument(
        "--shape", choices=("tiny", "small", "base", "big"), help="use random weights of this shape instead"
    )
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-tokens", type=int, help="source pieces times beam (default: as in params.yaml)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main(arguments: argparse.Namespace) -> None:
    from benchmarks.decoding import compare  # the other process may not find a function of __main__

    with closing(Process(ours=False)) as process:
        process.do(compare, arguments)


def compare(arguments: argparse.Namespace) -> None:
    if bool(arguments.shape) == bool(arguments.text):
        raise UserError("give either a model folder and a text, or --shape")
    keep_freed()
    torch.set_num_threads(arguments.threads)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    config = section(load(), "models", arguments.shape or "base", "decoding", DecodingConfig)
    tokens = arguments.batch_tokens or config.batch_tokens
    config = dataclasses.replace(config, alpha=0.0, threads=arguments.threads, batch_tokens=tokens, precision="auto")
    if arguments.shape:
        config = dataclasses.replace(config, extra_length=0)
        model, task = random_task(arguments.shape, arguments.sentences, arguments.rounds)
    else:
        paths = (arguments.model, arguments.text, arguments.reference)
        model, task = text_task(*paths, arguments.sentences, arguments.rounds)
    config = settings_on(device, config, model.config.d_model)
    model.to(device)
    name = torch.cuda.get_device_name() if cuda else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    columns = ["model", "system", "target tokens/s", "ours / this", "same as ours", "BLEU"]
    print(shown({"columns": columns, "rows": task.compare([*SYSTEMS], model, config)}))


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
