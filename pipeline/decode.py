"""Translate dev and test by beam search (section 6.1) and measure the perplexity on dev.

    python -m pipeline.decode RUN --checkpoints models/RUN/checkpoints --average models/RUN/average \\
        --text data/CORPUS/normalised --out scores/RUN/translations --times work/times/RUN/decoding.json

Dev is translated with the last checkpoint (Table 3) and with the average, test with the average (Table 2). Writes
SET.WEIGHTS.txt with a translation a line; translations.json with the perplexities; samples.json; and the attention
weights of a few test sentences as attention.npz and attention.json.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from pipeline.settings.machine import machine
from pipeline.settings.params import entry, languages, load, section
from pipeline.workflow import hardware, stage
from pipeline.workflow.times import write_times
from transformer.checkpoint import load_model, read_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS
from transformer.decoding import Translation, batches_by_length, translate_batches
from transformer.files import atomic, atomic_folder, write_json
from transformer.layers import Weights
from transformer.layout import Rows, pad
from transformer.memory import enough_memory
from transformer.model import Transformer
from transformer.perplexity import mean_loss
from transformer.store import step_files
from transformer.vocabulary import Vocabulary

REMEDY = "lower decoding.batch_tokens"
SAMPLES = 8
LONGEST_ATTENTION = 24  # pieces; a larger picture cannot be read


@dataclass
class Decoder:
    """A model with what it needs to translate lines of text."""

    model: Transformer
    vocabulary: Vocabulary
    config: DecodingConfig
    description: dict[str, Any]  # what the weights' file says of them

    @property
    def device(self) -> torch.device:
        return self.model.embedding.device

    def encode(self, lines: list[str]) -> list[list[int]]:
        return self.vocabulary.encode(lines, self.config.threads)

    def translate(self, lines: list[str], name: str) -> list[Translation]:
        """The translations in the lines' order; an empty line is its own."""
        sources = self.encode(lines)
        results = [Translation([], 0.0)] * len(lines)
        asked = [number for number, source in enumerate(sources) if source]
        tokens = max(1, self.config.batch_tokens // self.config.beam)
        for number in asked:
            if len(sources[number]) > tokens:  # it would take hours, and memory by the square of its length
                raise UserError(
                    f"{name}: line {number + 1} is {len(sources[number]):,} pieces long, and decoding.batch_tokens "
                    f"{self.config.batch_tokens} leaves {tokens:,} to each of beam {self.config.beam}; split the line"
                )
        by_length = batches_by_length([len(sources[number]) for number in asked], tokens)
        batches = [[asked[place] for place in places] for places in by_length]
        texts = [[sources[number] for number in numbers] for numbers in batches]
        bar = tqdm(total=len(asked), desc=f"decode {name}", unit="sentence")
        with bar, enough_memory("in decoding", REMEDY):
            for numbers, translations in zip(batches, translate_batches(self.model, texts, self.config)):
                for number, translation in zip(numbers, translations):
                    results[number] = translation
                bar.update(len(numbers))
        return results

    def text(self, translations: Sequence[Translation]) -> list[str]:
        """Detokenised lines. A piece can hold a line break as bytes; in a file of lines it becomes a space."""
        texts = self.vocabulary.decode([translation.ids for translation in translations])
        return [" ".join(text.split("\n")).replace("\r", " ") for text in texts]


@dataclass
class EncodedPairs:
    """Pairs of pieces in memory, as batches want them."""

    sources: list[list[int]]
    targets: list[list[int]]

    def __len__(self) -> int:
        return len(self.sources)

    def lengths(self, side: str) -> np.ndarray:
        return np.array([len(ids) for ids in getattr(self, f"{side}s")])

    def pair(self, number: int) -> tuple[list[int], list[int]]:
        return self.sources[number], self.targets[number]


def perplexity(decoder: Decoder, source: list[str], target: list[str]) -> dict[str, float]:
    """The unsmoothed loss and perplexity a piece of the references."""
    pairs = EncodedPairs(decoder.encode(source), decoder.encode(target))
    loss = mean_loss(decoder.model, pairs, decoder.config.batch_tokens, decoder.device, decoder.config.precision)
    return {"loss": round(loss, 6), "perplexity": round(math.exp(loss), 6)}


@torch.inference_mode()
def attention(decoder: Decoder, source: list[int], target: list[int]) -> dict[str, np.ndarray]:
    """The weights [layers, heads, queries, keys] of each kind of attention, translating `source` as `target`."""
    kept = Weights()
    ids = (pad([[*source, EOS]]).to(decoder.device), pad([[BOS, *target]]).to(decoder.device))
    decoder.model.hidden(*map(Rows, ids), keep=kept)
    return {kind: torch.cat(layers).cpu().numpy().astype(np.float16) for kind, layers in vars(kept).items()}


def write_attention(decoder: Decoder, lines: list[str], translations: list[Translation], out: Path) -> None:
    """Keep the attention weights of the first few sentences that are short enough to look at."""
    sources = decoder.encode(lines)
    both = [len(source) and max(len(source), len(t.ids)) for source, t in zip(sources, translations)]
    chosen = [number for number, longest in enumerate(both) if 1 < longest <= LONGEST_ATTENTION]
    arrays, sentences = {}, []
    for place, number in enumerate(chosen[: decoder.config.attention_sentences]):
        for kind, weights in attention(decoder, sources[number], translations[number].ids).items():
            arrays[f"{place}.{kind}"] = weights
        pieces = decoder.vocabulary.pieces
        sentences.append(
            {
                "line": number + 1,
                "source": [*pieces(sources[number]), "</s>"],
                "target": ["<s>", *pieces(translations[number].ids)],
            }
        )
    with atomic(out / "attention.npz") as file:
        np.savez_compressed(file, **arrays)
    write_json(out / "attention.json", {"sentences": sentences})


def lines_of(path: Path) -> list[str]:
    """The lines of a normalised file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; run normalise again") from None
    return text.removesuffix("\n").split("\n") if text else []


def write_lines(path: Path, lines: list[str]) -> None:
    with atomic(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def work(last: Decoder, average: Decoder, text: Path, pair: tuple[str, str], out: Path) -> dict[str, dict[str, float]]:
    """Write everything into `out`; the seconds that each translation took."""
    sets = {name: [lines_of(text / f"{name}.{language}") for language in pair] for name in ("dev", "test")}
    perplexities, seconds, sentences, pieces = {"dev": {}}, {}, {}, {}
    for decoder, weights, name in [(last, "last", "dev"), (average, "average", "dev"), (average, "average", "test")]:
        started = time.monotonic()
        translations = decoder.translate(sets[name][0], f"{name} {weights}")
        seconds[f"{name}.{weights}"] = round(time.monotonic() - started, 3)
        sentences[f"{name}.{weights}"] = len(translations)
        pieces[f"{name}.{weights}"] = sum(len(translation.ids) + 1 for translation in translations)
        texts = decoder.text(translations)
        write_lines(out / f"{name}.{weights}.txt", texts)
        if name == "dev":
            perplexities["dev"][weights] = perplexity(decoder, *sets[name])
    settings = {"averaging": average.description, "decoding": vars(average.config)}
    write_json(
        out / "translations.json", {**perplexities, "sentences": sentences, "pieces": pieces, "settings": settings}
    )
    samples = [dict(zip(("source", "reference", "translation"), row)) for row in zip(*sets["test"], texts)]
    write_json(out / "samples.json", samples[:SAMPLES])
    write_attention(average, sets["test"][0], translations, out)
    return {"seconds": seconds, "pieces_per_second": {key: round(pieces[key] / seconds[key], 1) for key in seconds}}


def decoder_of(weights: Path, vocabulary: Path, config: DecodingConfig, device: torch.device) -> Decoder:
    model, description = load_model(weights, device)
    pieces = Vocabulary(vocabulary)
    if pieces.sha256 != read_settings(weights.parent)[2]:
        raise UserError(f"{vocabulary} is not the vocabulary that {weights} was trained with")
    return Decoder(model, pieces, config, description)


def main(arguments: argparse.Namespace) -> None:
    params = load()
    run = entry(params, "runs", arguments.run)
    pair = languages(params, run["corpus"])
    config = section(params, "models", run["model"], "decoding", DecodingConfig)
    device = hardware.torch_device(machine(params), config.threads)
    vocabulary = arguments.average / "vocabulary.model"
    last = decoder_of(step_files(arguments.checkpoints)[-1][1], vocabulary, config, device)
    average = decoder_of(arguments.average / "model.safetensors", vocabulary, config, device)
    with atomic_folder(arguments.out) as folder:
        times = work(last, average, arguments.text, pair, folder)
    times |= {"precision": config.precision, **hardware.hardware(device)}
    write_times(arguments.times, arguments.out / "translations.json", times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="decode", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    for name in ("--checkpoints", "--average", "--text", "--out", "--times"):
        parser.add_argument(name, type=Path, required=True)
    stage.run(main, parser)
