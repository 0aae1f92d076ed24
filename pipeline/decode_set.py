"""Translate a set with a trained model and score it: one line of `decodings` in params.yaml.

    python -m pipeline.decode_set NAME --model models/RUN/average --set data/sets/SET --out scores/decodings/NAME

Reads params.yaml (base.decoding and base.decoders, changed by decodings.NAME; base.scoring), the model folder and the
evaluation set. Writes translation.txt with one segment per line; sentences.json with the log-probability of each
segment; decoding.json with the settings; score.json; and metrics.json with the scores that `dvc metrics show` prints. A
new or changed decoding requires no training.
"""

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from pipeline.running import hardware, stage
from pipeline.running.translating import best
from pipeline.scoring.of_sets import of_test_set, set_scores
from pipeline.scoring.utilities import Texts, sentence_score, utility
from pipeline.settings.decodings import DecodingRun, decoding_run
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.score_files import entry, rounded
from pipeline.settings.scoring import scoring
from pipeline.text.evaluation import EvaluationSet
from transformer import value
from transformer.config.decoding import DecodingConfig
from transformer.decoders.forced import log_probabilities
from transformer.decoders.mcts import Metric
from transformer.decoders.registry import decoder_of
from transformer.decoders.steps import Decoder, Translation
from transformer.files import write_json, write_lines
from transformer.translator import Translator


def chosen_decoder(
    translator: Translator, chosen: EvaluationSet, decoding: DecodingRun, folder: Path
) -> tuple[Decoder, str]:
    """The decoder with its inputs: texts for MBR, the references for an oracle, and the value of the model folder.

    Returns the name of the model, too, which is that of the run if the folder has a value.
    """
    texts, model, head = partial(texts_of, translator), decoding.model, None
    if (folder / value.VALUE).exists():
        head, said = value.load(folder / value.VALUE, translator.model.config.d_model, translator.device)
        model = entry(said, "model", str, str(folder / value.VALUE))
    similarity = partial(utility, texts=texts, language=chosen.languages[1])
    return decoder_of(decoding.choice, similarity, head, partial(oracle, chosen, texts)), model


def oracle(chosen: EvaluationSet, texts: Texts, metric: Literal["bleu", "chrf"]) -> Metric:
    """A function that scores a translation, given as ids, against the reference of its sentence."""
    (_, references), score = chosen.lines("raw"), sentence_score(metric, chosen.languages[1])
    return lambda number, ids: score(texts([ids])[0], references[number])


def work(translator: Translator, chosen: EvaluationSet, decoding: DecodingRun, folder: Path, out: Path) -> None:
    """Write all outputs except the scores into `out`."""
    # The set of another corpus may be normalised in another way than the text of the training
    lines = translator.normalise(chosen.lines("raw")[0]) if translator.text_config else chosen.lines("normalised")[0]
    decoder, model = chosen_decoder(translator, chosen, decoding, folder)
    found = best(translator, lines, decoding.set, decoder)
    write_lines(out / "translation.txt", translator.text(found.translations))
    write_json(out / "sentences.json", per_sentence(translator, lines, found.translations))
    settings = decoding.choice.description(translator.config)
    if decoding.choice.needs_value:
        settings["value"] = decoding.model.partition("/")[2]
    description = {
        "model": model,
        "set": decoding.set,
        "corpus": chosen.corpus,
        "languages": chosen.languages,
        "sentences": len(lines),
        "pieces": found.pieces,
        "calls": translator.calls,  # prefixes that the models scored
        "settings": {"averaging": translator.description, "decoding": settings},
    }
    write_json(out / "decoding.json", description)


def translator_of(model: Path, config: DecodingConfig, device: torch.device) -> Translator:
    """The translator of a model folder, or of the ensemble of the models in its subfolders 1, 2 and so on."""
    folders = sorted(model.glob("[0-9]")) or [model]
    first, *others = [Translator.load(folder, device, **vars(config)) for folder in folders]
    return dataclasses.replace(first, others=[other.model for other in others])


def per_sentence(translator: Translator, lines: list[str], translations: Sequence[Translation]) -> list[dict]:
    """The model's log-probability of each translation, in float32, and whether the search of the sentence finished."""
    models, targets = (translator.model, *translator.others), [translation.ids for translation in translations]
    found = log_probabilities(models, translator.encode(lines), targets, translator.config.batch_tokens)
    return [{"log_prob": round(score, 4), "finished": t.finished} for score, t in zip(found, translations)]


def texts_of(translator: Translator, sentences: Sequence[Sequence[int]]) -> list[str]:
    return translator.text([Translation(list(ids), 0.0) for ids in sentences])


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    decoding = decoding_run(params, name)
    config = decoding.choice.config
    device = hardware.torch_device(machine(params), config.threads, config.arithmetic)
    translator = translator_of(arguments.model, config, device)
    chosen = EvaluationSet.open(arguments.set)
    work(translator, chosen, decoding, arguments.model, arguments.out)
    table = set_scores(arguments.out / "translation.txt", chosen, scoring(params))
    write_json(arguments.out / "score.json", table)
    write_json(arguments.out / "metrics.json", of_test_set(table["set"]))
    measure, cell = next(iter(table["set"]["metrics"].items()))
    print(f"{arguments.out}: {rounded(cell['score'])} {measure} (sacreBLEU) on {decoding.set}")


if __name__ == "__main__":
    stage.script(main, "decode_set", __doc__, "model set out", name="a decoding of params.yaml")
