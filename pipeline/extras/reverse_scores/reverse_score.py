"""Score the decodings of a set by a reverse model, an entry of `reverse_scores` in params.yaml.

    python -m pipeline.extras.reverse_scores.reverse_score NAME --model models/RUN/average --set data/sets/SET \\
        --decodings scores/decodings --out scores/reverse_scores/NAME.json

Reads params.yaml (base.decoding, reverse_scores.NAME, decodings), the model folder, the evaluation set and the
translations in --decodings. The model, of the reverse direction, gives log p(source | translation) for each sentence
and each decoding of the set, in float32. Writes these values, and log p(source | reference) for comparison.
"""

import argparse

from pipeline.extras.reverse_scores.reverse import source_log_prob
from pipeline.running import hardware, stage
from pipeline.running.progress import Progress
from pipeline.settings.machine import machine
from pipeline.settings.params import entry, load
from pipeline.text.evaluation import EvaluationSet, read_aligned
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import read
from transformer.files import write_json
from transformer.translator import Translator


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    settings = entry(params, "reverse_scores", name)
    config = read(DecodingConfig, entry(params, "base", "decoding"), "params.yaml: base.decoding")
    device = hardware.torch_device(machine(params), config.threads, config.arithmetic)
    translator = Translator.load(arguments.model, device, **vars(config) | {"precision": "float32"})
    chosen = EvaluationSet.open(arguments.set)
    lines, references = chosen.lines("normalised")
    sources = translator.encode(lines)
    decodings = [other for other, line in params["decodings"].items() if line["set"] == settings["set"]]
    found = {}
    with Progress(total=len(decodings), unit="decoding") as bar:
        for decoding in decodings:
            path = arguments.decodings / decoding / "translation.txt"
            translations, _ = read_aligned(path, chosen.path("normalised", "source"))
            found[decoding] = source_log_prob(translator, translator.normalise(translations), sources)
            bar.update()
    description = {"model": settings["model"], "set": settings["set"], "averaging": translator.description}
    scores = {"references": source_log_prob(translator, references, sources), "decodings": found}
    write_json(arguments.out, description | scores)
    print(f"{arguments.out}: {len(found)} decodings of {settings['set']}")


if __name__ == "__main__":
    stage.script(
        main, "reverse_score", __doc__, "model set decodings out", name="a line of `reverse_scores` in params.yaml"
    )
