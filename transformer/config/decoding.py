"""The settings of decoding (section 6.1)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from transformer.config.reading import require, require_threads

BEAM_SETTINGS = ("beam", "penalty", "alpha")  # the settings of `DecodingConfig` that every beam search uses


@dataclass(frozen=True)
class DecodingConfig:
    """One way to decode (6.1). params.yaml explains each setting."""

    beam: int
    penalty: Literal["gnmt", "power"]
    alpha: float
    extra_length: int
    batch_tokens: int
    precision: Literal["auto", "float32", "bfloat16"]
    threads: int
    attention_sentences: int

    def __post_init__(self) -> None:
        require(self.beam > 0, "beam", self.beam, "a whole number above 0 is expected")
        require_threads(self.threads)
        for key in ("alpha", "extra_length", "batch_tokens", "attention_sentences"):
            most = 10 if key == "alpha" else 2**31 - 1  # far above 10, long translations score 0 in float32
            require(0 <= getattr(self, key) <= most, key, getattr(self, key), f"a number from 0 to {most} is expected")


class DecoderConfig:
    """The settings of a decoder besides those of `DecodingConfig`. decoders.py explains these attributes."""

    USES: ClassVar[tuple[str, ...]] = ()
    PARTS: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class BeamConfig(DecoderConfig):
    regulariser: float

    USES = BEAM_SETTINGS

    def __post_init__(self) -> None:
        require(self.regulariser >= 0, "regulariser", self.regulariser, "0 or a number above it is expected")
