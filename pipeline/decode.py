"""Translate a corpus's dev and test set by beam search (section 6.1) and measure the perplexity on dev.

    python -m pipeline.decode RUN --checkpoints models/RUN/checkpoints --average models/RUN/average \\
        --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test --out scores/RUN/translations \\
        --times work/times/RUN/decoding.json

Translates dev with the last checkpoint (Table 3) and with the average, and test with the average (Table 2). Writes
SET.WEIGHTS.txt with one translation per line; translations.json with the perplexities, the accuracy and the calibration of
the probabilities; samples.json with a few test sentences and translations; attention.npz with attention weights of a few
test sentences; attention.json with their pieces.
"""

import argparse
import math
from itertools import chain
from pathlib import Path

import numpy as np

from pipeline.running import hardware, stage
from pipeline.running.times import write_times
from pipeline.running.translating import best
from pipeline.scoring.calibration import calibration_error, confidences, reliability
from pipeline.settings.machine import machine
from pipeline.settings.params import entry, load, section
from pipeline.text.binarised import BinarisedSet
from pipeline.text.evaluation import EvaluationSet
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.decoders.steps import Translation
from transformer.files import atomic, atomic_folder, write_json, write_lines
from transformer.store import step_files
from transformer.translator import Translator

SAMPLES = 8
LONGEST_ATTENTION = 24  # pieces; a larger picture is illegible


def of_references(translator: Translator, source: list[str], target: list[str]) -> tuple[dict[str, float], list[dict]]:
    """How well the model predicts the pieces of the references: the measures, and the bins of a reliability diagram.

    The loss is without label smoothing. `accuracy` is the share of pieces that are the model's most probable one, and
    `calibration_error` the mean distance between this share and the probability. All are in float32.
    """

    def binarised(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        ids = translator.encode(lines)
        return np.array([*chain(*ids)], np.int64), np.cumsum([0, *map(len, ids)])

    pairs = BinarisedSet(binarised(source), binarised(target))
    batch_tokens, device = translator.config.batch_tokens, translator.device
    loss, confidence_N, right_N = confidences(translator.model, pairs, batch_tokens, device)
    bins = [
        {"probability": each["value"], "accuracy": each["score"], "tokens": each["prefixes"]}
        for each in reliability(confidence_N, right_N)
    ]
    error = calibration_error(confidence_N, right_N)
    values = {"loss": loss, "perplexity": math.exp(loss), "accuracy": float(right_N.mean()), "calibration_error": error}
    return {key: round(value, 6) for key, value in values.items()}, bins


def write_attention(translator: Translator, lines: list[str], translations: list[Translation], out: Path) -> None:
    """Write the attention weights of the first few sentences that are short enough for a picture."""
    sources = translator.encode(lines)
    both = [len(source) and max(len(source), len(t.ids)) for source, t in zip(sources, translations)]
    chosen = [number for number, longest in enumerate(both) if 1 < longest <= LONGEST_ATTENTION]
    arrays, sentences, pieces = {}, [], translator.vocabulary.pieces
    for place, number in enumerate(chosen[: translator.config.attention_sentences]):
        for kind, weights in translator.attention(sources[number], translations[number].ids).items():
            arrays[f"{place}.{kind}"] = weights.numpy().astype(np.float16)
        source, target = pieces(sources[number]), pieces(translations[number].ids)
        sentences.append({"line": number + 1, "source": [*source, "</s>"], "target": ["<s>", *target]})
    with atomic(out / "attention.npz") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # for mypy, a key may be `allow_pickle`
    write_json(out / "attention.json", {"sentences": sentences})


def work(last: Translator, average: Translator, sets: dict[str, EvaluationSet], out: Path) -> dict[str, dict[str, float]]:
    """Write all outputs into `out`. Returns the seconds and the speed (pieces per second) of each translation."""
    texts = {name: chosen.lines("normalised") for name, chosen in sets.items()}
    measures: dict[str, dict[str, float]] = {}
    seconds, speeds, sentences, pieces, bins = {}, {}, {}, {}, {}
    for translator, weights, name in [(last, "last", "dev"), (average, "average", "dev"), (average, "average", "test")]:
        key, found = f"{name}.{weights}", best(translator, texts[name][0], f"{name} {weights}")
        sentences[key], pieces[key] = len(found.translations), found.pieces
        seconds[key], speeds[key] = round(found.seconds, 3), round(found.pieces / found.seconds, 1)
        lines = translator.text(found.translations)
        write_lines(out / f"{key}.txt", lines)
        if name == "dev":
            measures[weights], bins[key] = of_references(translator, *texts[name])
    settings = {"averaging": average.description, "decoding": vars(average.config)}
    description = {"dev": measures, "reliability": bins, "sentences": sentences, "pieces": pieces, "settings": settings}
    write_json(out / "translations.json", description)
    samples = [dict(zip(("source", "reference", "translation"), row)) for row in zip(*texts["test"], lines)]
    write_json(out / "samples.json", samples[:SAMPLES])
    write_attention(average, texts["test"][0], found.translations, out)
    return {"seconds": seconds, "pieces_per_second": speeds}


def main(arguments: argparse.Namespace) -> None:
    params = load()
    run = entry(params, "runs", arguments.run)
    config = section(params, "models", run["model"], "decoding", DecodingConfig)
    device = hardware.torch_device(machine(params), config.threads, config.arithmetic)
    vocabulary = arguments.average / "vocabulary.model"
    if not (saved := step_files(arguments.checkpoints)):
        raise UserError(f"{arguments.checkpoints} has no checkpoint; the stage train writes them")
    last = Translator.open(saved[-1][1], vocabulary, config, device)
    average = Translator.load(arguments.average, device, **vars(config))
    sets = {"dev": EvaluationSet.open(arguments.dev), "test": EvaluationSet.open(arguments.test)}
    with atomic_folder(arguments.out) as folder:
        times = work(last, average, sets, folder)
    measured = {**times, "precision": average.config.precision, **hardware.hardware(device)}
    write_times(arguments.times, arguments.out / "translations.json", measured)


if __name__ == "__main__":
    stage.script(main, "decode", __doc__, "checkpoints average dev test out times", run="a run of params.yaml")
