"""The block `back_translations`: corpora that are made of another corpus and of synthetic pairs.

The target side of a synthetic pair is monolingual text. Its source side is the translation of this text by a run that
translates in the reverse direction (Sennrich et al. 2016).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.settings.addresses import Address
from pipeline.settings.decodings import Decoder, choice
from pipeline.settings.download import Sha256, Sum, pinned
from pipeline.settings.params import entry
from transformer.config.decoders import DECODERS, Choice
from transformer.config.reading import Count, Positive, Whole, read_keys

# back_translate.py provides no utility, which MBR needs, and no value and no references, which searches may need.
KINDS = tuple(kind for kind in DECODERS if kind not in ("mbr", "value_beam", "mcts"))


@dataclass(frozen=True)
class Monolingual:
    """Text in the target language of the corpus, one sentence per line."""

    text: Address  # a URL or a path below text/; .gz, .xz and .sgm are decoded
    sha256: Sha256 | None  # of the decompressed file
    skip: Whole | None  # leave out this many lines at the start
    first: Count | None  # use only this many lines, after the skipped lines

    @property
    def sum(self) -> Sum | None:
        return pinned("sha256", self.sha256, unpacked=True)


@dataclass(frozen=True)
class Translating(Decoder):
    """The decoder of a back-translation."""

    decoder: Literal[KINDS] | None  # type: ignore[valid-type]


@dataclass(frozen=True)
class BackTranslation:
    """One entry. params.yaml explains each setting. `decoding` holds the differences from `base`."""

    corpus: str
    run: str
    monolingual: Monolingual
    decoding: Translating
    tagged: bool
    ratio: Positive


def decoder(params: Mapping[str, Any], name: str) -> Choice:
    """Return the decoder of the entry `name`: `base.decoding` and `base.decoders`, changed by its `decoding`."""
    where, given = f"params.yaml: back_translations.{name}.decoding", entry(params, "back_translations", name)["decoding"]
    read_keys(Translating, given, where)
    return choice(params, given, where)
