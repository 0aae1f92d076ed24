"""The settings of the decoders of `decodings`, besides those of `DecodingConfig`. docs/decoding.md explains them.

USES lists the settings of `DecodingConfig` that a decoder uses besides COMMON. PARTS lists its settings that choose another
decoder, as {decoder: NAME, number: N, ...}. `BeamConfig` is in `decoding.py`, so that a new decoder here makes no
translation of a training stale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from transformer.config.decoding import BeamConfig, DecodingConfig

COMMON = ("extra_length", "batch_tokens", "precision", "threads")


@dataclass(frozen=True)
class GreedyConfig:
    """Greedy search has no settings."""

    USES: ClassVar = ()
    PARTS: ClassVar = ()


DECODERS: dict[str, Any] = {
    "beam": BeamConfig,
    "greedy": GreedyConfig,
}
DEFAULT = "beam"  # the paper's


@dataclass(frozen=True)
class Choice:
    """A decoder with all its settings. `parts` are the decoders that it uses, each with the number of their results."""

    decoder: str
    config: DecodingConfig
    own: Any  # the dataclass of DECODERS
    number: int = 1
    parts: Mapping[str, "Choice"] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        """The settings that the decoder uses, for the file beside its translation."""
        shared = {key: getattr(self.config, key) for key in (*self.own.USES, *COMMON)}
        parts = {key: {"number": part.number, **part.description()} for key, part in self.parts.items()}
        return {"decoder": self.decoder, **shared, **vars(self.own), **parts}


def settings_of(decoder: str) -> list[str]:
    """The names of the settings that a decoder has."""
    cls = DECODERS[decoder]
    return [*cls.__dataclass_fields__, *cls.PARTS, *cls.USES, *COMMON]
