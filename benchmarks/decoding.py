"""Decoding beside Hugging Face's generate and CTranslate2: the same weights, sentences and batches, turn by turn.

    python -m benchmarks.decoding MODEL_FOLDER SOURCE_TEXT [--sentences 500] [--rounds 3]
    python -m benchmarks.decoding --shape base [--sentences 32] [--rounds 3]

Beam 4, float32, no length penalty. Prints target tokens a second as medians over the rounds, the ratios, and how many
translations are the same as ours. Batches are ours, sorted by length; generate sorts nothing by itself, so it is shown
with 32 lines at a time in the text's order, too. The second form takes random weights, which rarely end a sentence: all
go on to the limit, here the input's length, 27 pieces. A peer that is not installed is a dash.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from pipeline.export import ctranslate2_spec, marian_config, tensors_of
from pipeline.machine import processor
from pipeline.params import load, section
from transformer.checkpoint import load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoding import batches_by_length, translate
from transformer.layout import pad
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary

# With random weights. Peers know only one limit a batch, so all sentences are as long as WMT14's mean.
VOCABULARY, LENGTH = 37000, 27

Translate = Callable[[list[list[int]]], list[list[int]]]
"""The translations of a batch of sources, as pieces."""


def ours(model: Transformer, config: DecodingConfig) -> Translate:
    return lambda sources: [translation.ids for translation in translate(model, sources, config)]


def hugging_face(model: Transformer, config: DecodingConfig) -> Translate:
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    ids = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    peer = MarianMTModel(MarianConfig(**marian_config(model.config, len(model.embedding)), **ids)).eval()
    missing = peer.load_state_dict(tensors_of(model), strict=False)
    assert not missing.unexpected_keys, missing
    peer.tie_weights()
    device = model.embedding.device
    peer.to(device)

    @torch.inference_mode()
    def translations(sources: list[list[int]]) -> list[list[int]]:
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

    return translations


def ctranslate2(model: Transformer, config: DecodingConfig) -> Translate:
    import ctranslate2

    pieces = [f"<{number}>" for number in range(len(model.embedding))]
    for number, name in ((BOS, "<s>"), (EOS, "</s>"), (PAD, "<pad>"), (1, "<unk>")):
        pieces[number] = name
    number_of = {piece: number for number, piece in enumerate(pieces)}
    device = model.embedding.device.type
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_spec(model.cpu(), pieces).save(folder)
        model.to(device)
        peer = ctranslate2.Translator(folder, device=device, intra_threads=config.threads, compute_type="float32")

    def translations(sources: list[list[int]]) -> list[list[int]]:
        results = peer.translate_batch(
            [[pieces[token] for token in source] for source in sources],
            beam_size=config.beam,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=max(map(len, sources)) + config.extra_length,
        )
        return [[number_of[piece] for piece in result.hypotheses[0]] for result in results]

    return translations


IN_ORDER = "Hugging Face generate, 32 lines in order"
SYSTEMS = {"ours": ours, "Hugging Face generate": hugging_face, IN_ORDER: hugging_face, "CTranslate2": ctranslate2}


def available(
    model: Transformer, config: DecodingConfig, sources: list[list[int]]
) -> tuple[dict[str, Translate], dict[str, str]]:
    """The systems that are installed and translate `sources` here, and why the others do not."""
    systems, reasons = {}, {}
    for name, make in SYSTEMS.items():
        try:
            systems[name] = make(model, config)
            systems[name](sources)
        except (ImportError, RuntimeError, ValueError) as error:
            # CTranslate2 may lack CUDA's libraries, and says so as late as at its first batch.
            if name == "ours":
                raise
            systems.pop(name, None)
            reasons[name] = str(error).split("\n")[0]
    return systems, reasons


def run(system: Translate, sources: list[list[int]], batches: list[list[int]]) -> tuple[list[list[int]], float]:
    """The translations in the sources' order and the seconds they took."""
    results: list[list[int]] = [[]] * len(sources)
    started = time.perf_counter()
    for numbers in batches:
        for number, ids in zip(numbers, system([sources[number] for number in numbers])):
            results[number] = ids
    return results, time.perf_counter() - started


def compare(name: str, model: Transformer, sources: list[list[int]], config: DecodingConfig, rounds: int) -> list[str]:
    """Rows of the table for one model."""
    systems, reasons = available(model, config, sources[:1])
    tokens = max(1, config.batch_tokens // config.beam)
    by_length = batches_by_length([len(source) for source in sources], tokens)
    in_order = [list(range(start, min(start + 32, len(sources)))) for start in range(0, len(sources), 32)]
    speeds: dict[str, list[float]] = {system: [] for system in systems}
    results: dict[str, list[list[int]]] = {}
    for number in range(rounds + 1):
        for system, translations in systems.items():
            batches = in_order if system == IN_ORDER else by_length
            # The first round warms up, on the shortest.
            results[system], seconds = run(translations, sources, batches if number else batches[-1:])
            if number:
                speeds[system].append(sum(len(ids) + 1 for ids in results[system]) / seconds)
    rows = []
    for system, measured in speeds.items():
        speed = statistics.median(measured)
        ratio = statistics.median(speeds["ours"]) / speed
        same = sum(a == b for a, b in zip(results[system], results["ours"])) / len(sources)
        rows.append(f"| {name} | {system} | {speed:,.0f} | {ratio:.2f} | {same:.1%} |")
    return rows + [f"| {name} | {system}: {reason} | – | – | – |" for system, reason in reasons.items()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.decoding", description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path, nargs="?", help="a model folder, as average writes it")
    parser.add_argument("text", type=Path, nargs="?", help="a file of source lines")
    parser.add_argument("--shape", choices=("tiny", "base", "big"), help="random weights of this shape instead")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if bool(arguments.shape) == bool(arguments.text):
        parser.error("either a model folder and a text, or --shape")
    torch.set_num_threads(arguments.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = section(load(), "models", arguments.shape or "base", "decoding", DecodingConfig)
    config = dataclasses.replace(config, alpha=0.0, precision="float32", threads=arguments.threads)
    if arguments.shape:
        config = dataclasses.replace(config, extra_length=0)
        torch.manual_seed(1)
        model = Transformer(section(load(), "models", arguments.shape, "model", ModelConfig), VOCABULARY).eval()
        sources = np.random.default_rng(1).integers(4, VOCABULARY, (arguments.sentences, LENGTH)).tolist()
    else:
        model, _ = load_model(arguments.model / "model.safetensors", device)
        lines = arguments.text.read_text(encoding="utf-8").splitlines()[: arguments.sentences]
        sources = [ids for ids in Vocabulary(arguments.model / "vocabulary.model").encode(lines) if ids]
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    print("| model | system | target tokens/s | ours / this | same as ours |\n|---|---|---:|---:|---:|")
    label = arguments.shape or str(arguments.model)
    print("\n".join(compare(label, model.to(device), sources, config, arguments.rounds)))


if __name__ == "__main__":
    main()
