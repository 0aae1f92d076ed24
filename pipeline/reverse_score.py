"""Score the decodings of a set without references: one line of `reverse_scores` in params.yaml.

    python -m pipeline.reverse_score NAME --model models/RUN/average --set data/sets/SET --decodings scores/decodings \\
        --out scores/reverse_scores/NAME.json

A model of the reverse direction gives log p(source | translation) for each sentence and each decoding of the set, in
float32. Writes these, and log p(source | reference) for comparison.
"""

import argparse
from pathlib import Path

from pipeline.corpora.evaluation import EvaluationSet, read_lines
from pipeline.corpora.sets import require_aligned
from pipeline.settings.decodings import choice
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.reverse_scores import reverse_score
from pipeline.settings.score_files import entry
from pipeline.workflow import hardware, stage
from pipeline.workflow.progress import Progress
from transformer.decoders.forced import log_probabilities
from transformer.files import read_json, write_json
from transformer.translator import Translator


def source_log_prob(translator: Translator, translations: list[str], sources: list[list[int]]) -> list[float]:
    """log p(source | translation) of each pair. An empty translation has a score, too."""
    given = translator.encode(translator.normalise(translations))
    tokens = translator.config.batch_tokens // 4  # logits of a whole sentence take more memory than those of a step
    scores = log_probabilities([translator.model], given, sources, tokens, empty=True)
    return [round(score, 4) for score in scores]


def decodings_of(folder: Path, name: str) -> dict[str, Path]:
    """The translations of the set `name` in scores/decodings, by the decoding's name."""
    found = sorted(path.parent for path in folder.glob("*/decoding.json"))
    chosen = [each for each in found if entry(read_json(each / "decoding.json"), "set", str, str(each)) == name]
    return {each.name: each / "translation.txt" for each in chosen}


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    config, settings = choice(params, {}, "params.yaml: base.decoding").config, reverse_score(params, name)
    device = hardware.torch_device(machine(params), config.threads)
    translator = Translator.load(arguments.model, device, **vars(config))
    chosen = EvaluationSet.open(arguments.set)
    lines, references = chosen.lines("normalised")
    sources = translator.encode(lines)
    paths = decodings_of(arguments.decodings, settings.set)
    found = {}
    with Progress(total=len(paths), unit="decoding") as bar:
        for decoding, path in paths.items():
            translations = read_lines(path)
            require_aligned(chosen.path("normalised", "source"), len(lines), path, len(translations))
            found[decoding] = source_log_prob(translator, translations, sources)
            bar.update()
    description = {"model": settings.model, "set": settings.set, "averaging": translator.description}
    scores = {"references": source_log_prob(translator, references, sources), "decodings": found}
    write_json(arguments.out, description | scores)
    print(f"{arguments.out}: {len(found)} decodings of {settings.set}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="reverse_score", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a line of `reverse_scores` in params.yaml")
    for name in ("--model", "--set", "--decodings", "--out"):
        parser.add_argument(name, type=Path, required=True)
    stage.run(main, parser)
