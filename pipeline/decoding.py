"""Translate a set with a trained model and score it: one line of `decodings` in params.yaml.

    python -m pipeline.decoding NAME --model models/RUN/average --set data/sets/SET --out scores/decodings/NAME \\
        --times work/times/decodings/NAME.json

Reads params.yaml (base.decoding and base.decoders with what decodings.NAME changes, base.scoring), the model folder and
the evaluation set. Writes translation.txt, a line a segment; decoding.json with the settings; score.json; and
metrics.json, the few numbers that a person compares. It trains nothing.
"""

import argparse
import time
from pathlib import Path

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.metrics import of_set
from pipeline.scoring.of_sets import filtered_scores, set_scores
from pipeline.settings.decodings import DecodingRun, decoding_run
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.scoring import ScoringConfig, scoring
from pipeline.workflow import hardware, stage
from pipeline.workflow.progress import Progress
from pipeline.workflow.times import write_times
from transformer.decoders.registry import decoder_of
from transformer.files import write_json, write_lines
from transformer.translator import Translator


def work(translator: Translator, chosen: EvaluationSet, decoding: DecodingRun, out: Path) -> dict:
    """Write the translation and what made it into `out`. Returns the time it took."""
    lines, _ = chosen.lines("normalised")
    decoder, started = decoder_of(decoding.choice), time.monotonic()
    with Progress(total=sum(map(bool, lines)), unit="sentence") as bar:
        found = translator.n_best(lines, decoding.set, 1, bar.update, decoder)
    translations = [best for best, *_ in found]
    seconds = time.monotonic() - started
    write_lines(out / "translation.txt", translator.text(translations))
    pieces = sum(len(translation.ids) + 1 for translation in translations)
    resolved = {key: getattr(translator.config, key) for key in ("batch_tokens", "precision")}
    settings = decoding.choice.description() | resolved  # where params.yaml has 0 and `auto`
    description = {
        "model": decoding.model,
        "set": decoding.set,
        "corpus": chosen.corpus,
        "languages": chosen.languages,
        "sentences": len(translations),
        "pieces": pieces,
        "calls": translator.calls,  # prefixes that the models scored
        "settings": {"averaging": translator.description, "decoding": settings},
    }
    write_json(out / "decoding.json", description)
    return {"seconds": round(seconds, 3), "pieces_per_second": round(pieces / seconds, 1)}


def score(translation: Path, chosen: EvaluationSet, settings: ScoringConfig) -> dict:
    """What score.json holds: the scores of the set and, if it has one, of its filtered part."""
    table = {"set": set_scores(translation, chosen, settings)}
    if chosen.is_filtered:
        table["filtered"] = filtered_scores(translation, chosen, settings)
    return table


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    decoding = decoding_run(params, name)
    device = hardware.torch_device(machine(params), decoding.choice.config.threads)
    translator = Translator.load(arguments.model, device, **vars(decoding.choice.config))
    chosen = EvaluationSet.open(arguments.set)
    times = work(translator, chosen, decoding, arguments.out)
    table = score(arguments.out / "translation.txt", chosen, scoring(params))
    write_json(arguments.out / "score.json", table)
    write_json(arguments.out / "metrics.json", of_set("test", table["set"]))
    times |= {"precision": translator.config.precision, **hardware.hardware(device)}
    write_times(arguments.times, arguments.out / "decoding.json", times)
    print(f"{arguments.out}: {table['set']['metrics']['bleu-13a']['score']:.2f} sacreBLEU on {decoding.set}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="decoding", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a decoding of params.yaml")
    for name in ("--model", "--set", "--out", "--times"):
        parser.add_argument(name, type=Path, required=True)
    stage.run(main, parser)
