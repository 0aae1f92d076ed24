"""Translates the lines of a text with a progress bar, and measures the speed."""

import time
from dataclasses import dataclass

from pipeline.running.progress import Progress
from transformer.decoders.steps import Decoder, Translation
from transformer.translator import Translator


@dataclass(frozen=True)
class Translated:
    """The best translation of each line, the number of all pieces with EOS, and the time."""

    translations: list[Translation]
    pieces: int
    seconds: float


def best(translator: Translator, lines: list[str], name: str, decoder: Decoder | None = None) -> Translated:
    """The best translation of each normalised line. `Translator.n_best` describes the arguments and the errors."""
    started = time.monotonic()
    with Progress(total=sum(map(bool, lines)), desc=name, unit="sentence") as bar:
        translations = [first for first, *_ in translator.n_best(lines, name, 1, bar.update, decoder)]
    seconds = time.monotonic() - started
    return Translated(translations, sum(len(each.ids) + 1 for each in translations), seconds)
