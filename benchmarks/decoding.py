"""Decoding beside Hugging Face's generate and CTranslate2: the same weights, sentences and batches, turn by turn.

    python -m benchmarks.decoding MODEL_FOLDER SOURCE_TEXT [--reference TEXT] [--sentences 500] [--rounds 3]
    python -m benchmarks.decoding --shape base [--sentences 64] [--rounds 3]

Beam 4, no length penalty, float32; on a GPU once more in bfloat16. Prints target tokens a second as medians over the
rounds, the ratios, how many translations are the same as ours, and sacreBLEU where there is a reference. Batches are
ours, sorted by length. On a processor we and CTranslate2 give each thread a batch of its own; generate, which has no
such thing, is shown as it comes, and called by as many threads; and, as it sorts nothing, with 32 lines at a time in
the text's order. The second form takes random weights, which rarely end a sentence: all go on to the limit, here the
input's length, 27 pieces. A peer that is not installed is a dash.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from benchmarks.decoders import BY_THREADS, IN_ORDER, SYSTEMS, Batch, Translate
from pipeline.decode import lines_of
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer.checkpoint import WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.decoding import batches_by_length
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary

# With random weights. Peers know only one limit a batch, so all sentences are as long as WMT14's mean.
VOCABULARY, LENGTH = 37000, 27
GPU_BATCH_TOKENS = 65536  # few sentences leave a GPU waiting for its host


def available(
    names: Iterable[str], model: Transformer, config: DecodingConfig, sources: Batch
) -> tuple[dict[str, Translate], dict[str, str]]:
    """The systems that are installed and translate `sources` here, and why the others do not."""
    systems, reasons = {}, {}
    for name in names:
        try:
            systems[name] = SYSTEMS[name](model, config)
            systems[name]([sources])
        except (ImportError, RuntimeError, ValueError) as error:
            # CTranslate2 may lack CUDA's libraries, and says so as late as at its first batch.
            if name == "ours":
                raise
            systems.pop(name, None)
            reasons[name] = str(error).split("\n")[0]
    return systems, reasons


def run(system: Translate, sources: Batch, batches: list[list[int]], threads: int) -> tuple[Batch, float]:
    """The translations in the sources' order and the seconds they took."""
    torch.set_num_threads(threads)  # CTranslate2 sets those of the whole process
    results: Batch = [[]] * len(sources)
    started = time.perf_counter()
    translations = system([[sources[number] for number in numbers] for numbers in batches])
    seconds = time.perf_counter() - started
    for number, ids in zip(chain(*batches), chain(*translations)):
        results[number] = ids
    return results, seconds


@dataclass
class Task:
    """What all systems translate."""

    label: str
    sources: Batch
    rounds: int
    bleu: Callable[[Batch], str]  # of translations in the sources' order

    def compare(self, names: list[str], model: Transformer, config: DecodingConfig) -> list[str]:
        """Rows of the table for the systems of these names."""
        systems, reasons = available(names, model, config, self.sources[:1])
        count, tokens = len(self.sources), max(1, config.batch_tokens // config.beam)
        by_length = batches_by_length([len(source) for source in self.sources], tokens)
        in_order = [list(range(start, min(start + 32, count))) for start in range(0, count, 32)]
        speeds: dict[str, list[float]] = {system: [] for system in systems}
        results: dict[str, Batch] = {}
        for number in range(self.rounds + 1):
            for system, translations in systems.items():
                batches = in_order if system == IN_ORDER else by_length
                # The first round warms up, on the longest and the shortest.
                batches = batches if number else [batches[0], batches[-1]]
                results[system], seconds = run(translations, self.sources, batches, config.threads)
                if number:
                    speeds[system].append(sum(len(ids) + 1 for ids in results[system]) / seconds)
        rows = []
        for system, measured in speeds.items():
            speed = statistics.median(measured)
            ratio = statistics.median(speeds["ours"]) / speed
            same = sum(a == b for a, b in zip(results[system], results["ours"])) / count
            cells = (f"{speed:,.0f}", f"{ratio:.2f}", f"{same:.1%}", self.bleu(results[system]))
            rows.append((f"{system}, {config.precision}", *cells))
        rows += [(f"{system}, {config.precision}: {reason}", *4 * "–") for system, reason in reasons.items()]
        return [f"| {' | '.join((self.label, *row))} |" for row in rows]


def scorer(vocabulary: Vocabulary, reference: list[str]) -> Callable[[Batch], str]:
    from sacrebleu.metrics import BLEU

    return lambda translations: f"{BLEU().corpus_score(vocabulary.decode(translations), [reference]).score:.2f}"


def random_task(shape: str, sentences: int, rounds: int) -> tuple[Transformer, Task]:
    torch.manual_seed(1)
    model = Transformer(section(load(), "models", shape, "model", ModelConfig), VOCABULARY).eval()
    sources = np.random.default_rng(1).integers(4, VOCABULARY, (sentences, LENGTH)).tolist()
    return model, Task(f"{shape}, random", sources, rounds, lambda _: "–")


def text_task(
    folder: Path, text: Path, reference: Path | None, sentences: int, rounds: int
) -> tuple[Transformer, Task]:
    model, _ = load_model(folder / WEIGHTS, torch.device("cpu"))
    vocabulary = Vocabulary(folder / "vocabulary.model")
    pairs = list(zip(*(lines_of(path)[:sentences] for path in (text, reference or text)), strict=True))
    sources, references = vocabulary.encode([line for line, _ in pairs]), [line for _, line in pairs]
    kept = [number for number, source in enumerate(sources) if source]  # an empty line is nothing to translate
    bleu = scorer(vocabulary, [references[number] for number in kept]) if reference else lambda _: "–"
    return model, Task(str(folder), [sources[number] for number in kept], rounds, bleu)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.decoding", description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path, nargs="?", help="a model folder, as average writes it")
    parser.add_argument("text", type=Path, nargs="?", help="a file of source lines")
    parser.add_argument("--reference", type=Path, help="a file of their translations")
    parser.add_argument("--shape", choices=("tiny", "base", "big"), help="random weights of this shape instead")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--batch-tokens", type=int, help="source pieces x beam; else params.yaml's, on a GPU 65,536")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main(arguments: argparse.Namespace) -> None:
    if bool(arguments.shape) == bool(arguments.text):
        raise UserError("either a model folder and a text, or --shape")
    torch.set_num_threads(arguments.threads)
    cuda = torch.cuda.is_available()
    config = section(load(), "models", arguments.shape or "base", "decoding", DecodingConfig)
    tokens = arguments.batch_tokens or (GPU_BATCH_TOKENS if cuda else config.batch_tokens)
    config = dataclasses.replace(config, alpha=0.0, threads=arguments.threads, batch_tokens=tokens)
    names = [name for name in SYSTEMS if not (cuda and name == BY_THREADS)]
    if arguments.shape:
        names.remove(IN_ORDER)  # all are as long
        config = dataclasses.replace(config, extra_length=0)
        model, task = random_task(arguments.shape, arguments.sentences, arguments.rounds)
    else:
        paths = (arguments.model, arguments.text, arguments.reference)
        model, task = text_task(*paths, arguments.sentences, arguments.rounds)
    model.to("cuda" if cuda else "cpu")
    name = torch.cuda.get_device_name() if cuda else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    print("| model | system | target tokens/s | ours / this | same as ours | BLEU |\n|---|---|---:|---:|---:|---:|")
    for precision in ("float32", "bfloat16") if cuda else ("float32",):
        rows = task.compare(names, model, dataclasses.replace(config, precision=precision))
        print("\n".join(rows), flush=True)


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
