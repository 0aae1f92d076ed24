"""The block `back_translations`: corpora that are made of another corpus and of synthetic pairs.

The target side of a synthetic pair is monolingual text. Its source side is the translation of this text by a run that
translates in the reverse direction (Sennrich et al. 2016).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.addresses import Address
from pipeline.settings.decodings import Decoder, choice, unguided
from pipeline.settings.download import Encoding, Sha256
from pipeline.settings.params import entry
from transformer.config.decoders import Choice
from transformer.config.reading import Count, Differences, Positive, Whole, read_keys


@dataclass(frozen=True)
class Monolingual:
    """Text in the target language of the corpus, one sentence per line."""

    text: Address  # a URL or a path below text/; .gz, .xz and .sgm are decoded
    sha256: Sha256 | None  # of the decompressed file
    skip: Whole | None  # leave out this many lines at the start
    first: Count | None  # use only this many lines, after the skipped lines
    encoding: Encoding | None  # if not UTF-8


@dataclass(frozen=True)
class BackTranslation:
    """One entry. params.yaml explains each setting. `decoding` holds the differences from `base`."""

    corpus: str
    run: str
    monolingual: Monolingual
    decoding: Decoder
    tagged: bool
    ratio: Positive


def back_translation(params: Mapping[str, Any], name: str, *keys: str) -> list[Any]:
    """Return some settings of the entry `name`. A stage reads only those that dvc.yaml declares for it."""
    given = entry(params, "back_translations", name)
    where = f"params.yaml: back_translations.{name}"
    return [*read_keys(Differences[BackTranslation], {key: given[key] for key in keys}, where).values()]


def decoder(params: Mapping[str, Any], name: str) -> Choice:
    """Return the decoder of the entry `name`: `base.decoding` and `base.decoders`, changed by its `decoding`."""
    where = f"params.yaml: back_translations.{name}.decoding"
    return unguided(choice(params, entry(params, "back_translations", name)["decoding"], where), where)
