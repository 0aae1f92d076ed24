"""The block `back_translations`: corpora that are made of another corpus and of synthetic pairs.

The target side of a synthetic pair is monolingual text. Its source side is the translation of this text by a run that
translates in the reverse direction (Sennrich et al. 2016).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.decodings import choice
from pipeline.settings.download import Sum, check_sums, pinned, require_address
from pipeline.settings.params import entry
from transformer.config.decoders import DECODERS, Choice
from transformer.config.reading import UserError, read, require, shown

MORE = ("mbr", "value_beam", "mcts")  # decoders that need a utility, or may need a value or references


@dataclass(frozen=True)
class Monolingual:
    """Text in the target language of the corpus, one sentence per line."""

    text: str  # a URL or a path below text/; .gz, .xz and .sgm are decoded
    sha256: str | None  # of the decompressed file
    skip: int | None  # leave out this many lines at the start
    first: int | None  # use only this many lines, after the skipped lines

    def __post_init__(self) -> None:
        require_address(self.text)
        check_sums(self, "sha256")
        require(self.skip is None or self.skip >= 0, "skip", self.skip, "0 or a number of lines is expected")
        require(self.first is None or self.first > 0, "first", self.first, "a number above 0 is expected")

    @property
    def sum(self) -> Sum | None:
        return pinned("sha256", self.sha256, unpacked=True)


@dataclass(frozen=True)
class BackTranslation:
    """One entry, without `decoding`. params.yaml explains each setting."""

    corpus: str
    run: str
    monolingual: Monolingual
    tagged: bool
    ratio: float

    def __post_init__(self) -> None:
        require(self.ratio > 0, "ratio", self.ratio, "a number above 0 is expected")


def back_translation(params: Mapping[str, Any], name: str) -> BackTranslation:
    """Return the entry `name`, without its decoder."""
    values = entry(params, "back_translations", name)
    others = {key: value for key, value in values.items() if key != "decoding"}
    return read(BackTranslation, others, f"params.yaml: back_translations.{name}")


def decoder(params: Mapping[str, Any], name: str) -> Choice:
    """Return the decoder of the entry `name`: `base.decoding` and `base.decoders`, changed by its `decoding`.

    Raises UserError for a decoder in MORE, because back_translate.py provides no utility, no value and no references.
    """
    where = f"params.yaml: back_translations.{name}.decoding"
    given = entry(params, "back_translations", name).get("decoding")
    if not isinstance(given, Mapping):
        raise UserError(f"{where}: {shown(given)} is not possible; a mapping is expected, {{}} if nothing differs")
    if given.get("decoder") in MORE:
        valid = ", ".join(kind for kind in DECODERS if kind not in MORE)
        raise UserError(f"{where}.decoder: {given['decoder']!r} is not possible here; the decoders here are {valid}")
    return choice(params, given, where)


def require_no_circle(params: Mapping[str, Any], name: str) -> None:
    """Raise UserError if the run of the entry `name` is trained on this entry, directly or through other entries."""
    chain = [name]
    while True:
        run = back_translation(params, chain[-1]).run
        corpus = entry(params, "runs", run)["corpus"]
        if corpus not in params["back_translations"]:
            return
        if corpus in chain:
            raise UserError(
                f"params.yaml: back_translations.{chain[-1]}.run: {run} is trained on {corpus}, which therefore needs "
                f"itself ({' <- '.join([*chain, corpus])}); a run that is trained on another corpus is expected"
            )
        chain.append(corpus)
