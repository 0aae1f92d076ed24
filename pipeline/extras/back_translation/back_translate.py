"""Make synthetic training pairs: translate monolingual text with a run of the reverse direction.

    python -m pipeline.extras.back_translation.back_translate NAME --model models/RUN/average \\
        --monolingual data/NAME/monolingual --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test \\
        --out data/NAME/synthetic --report scores/corpora/NAME/back_translate.json

Reads params.yaml (base.decoding and base.decoders, changed by back_translations.NAME.decoding; languages and normalise
of the corpus of the back-translation), the model folder and the monolingual text. Writes the translations to
train.SOURCE and the monolingual text to train.TARGET. The translations are cleaned and the pairs are filtered with the
settings of the corpus; those of which a side stands in its dev or test set are counted, and dropped with `decontaminate`.
The report has the counts and the settings.
"""

import argparse
from pathlib import Path
from typing import Any

from pipeline.extras.back_translation.settings import back_translation, decoder
from pipeline.running import hardware, stage
from pipeline.running.translating import best
from pipeline.settings.machine import machine
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import languages, load, section
from pipeline.text.evaluation import read_lines
from pipeline.text.normalising import Filter, Side, sentences
from transformer.config.decoders import Choice
from transformer.config.reading import UserError
from transformer.decoders.registry import decoder_of
from transformer.files import atomic_folder, write_json, write_lines
from transformer.translator import Translator


def work(
    translator: Translator, choice: Choice, text: Path, paths: list[Path], config: NormaliseConfig, select: Filter
) -> dict[str, Any]:
    """Write the pairs of translations and text to the two `paths`. Returns the counts."""
    lines, rules = read_lines(text), translator.text_config
    other = rules and any(getattr(rules, key) != getattr(config, key) for key in ("entities", "nfc", "punctuation"))
    given = translator.normalise(lines) if other else lines  # as the text of the run that translates
    found = best(translator, given, str(text), decoder_of(choice))
    side = Side(paths[0], paths[0].suffix[1:], config)
    sources = side.lines([f"{line}\n".encode() for line in translator.text(found.translations)])
    sources, targets = select(sources, lines)
    if not sources:
        why = ", ".join(f"{number:,} {key}" for key, number in select.dropped.items())
        raise UserError(f"{text}: no translation is kept; dropped: {why}")
    for path, chosen in zip(paths, (sources, targets)):
        write_lines(path, chosen)
    counts = {"dropped": dict(select.dropped), "in_evaluation": select.in_evaluation}
    return {"pieces": found.pieces, "sets": {"synthetic": {"read": len(lines), "kept": len(sources), **counts}}}


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    corpus, run = back_translation(params, name, "corpus", "run")
    choice, (source, target) = decoder(params, name), languages(params, corpus)
    config = section(params, "corpora", corpus, "normalise", NormaliseConfig)
    select = Filter(config, sentences([arguments.dev, arguments.test]))
    device = hardware.torch_device(machine(params), choice.config.threads, choice.config.arithmetic)
    translator = Translator.load(arguments.model, device, **vars(choice.config))
    with atomic_folder(arguments.out) as folder:
        paths = [folder / f"train.{language}" for language in (source, target)]
        made = work(translator, choice, arguments.monolingual / f"train.{target}", paths, config, select)
    select.tell(name)
    settings = {"averaging": translator.description, "decoding": choice.description(translator.config)}
    write_json(arguments.report, {"run": run, **made, "settings": settings})
    counts = made["sets"]["synthetic"]
    print(f"{arguments.out}: {counts['kept']:,} of {counts['read']:,} pairs")


if __name__ == "__main__":
    options = "model monolingual dev test out report"
    stage.script(main, "back_translate", __doc__, options, name="a back-translation of params.yaml")
