"""The settings of decoding (section 6.1)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from transformer.config.arithmetic import Arithmetic, require_float32
from transformer.config.reading import Count, Limits, NotNegative, Threads, Whole

BEAM_SETTINGS = ("beam", "penalty", "alpha")  # the settings of `DecodingConfig` that every beam search uses


@dataclass(frozen=True)
class DecodingConfig:
    """One way to decode (6.1). params.yaml explains each setting."""

    beam: Count
    penalty: Literal["gnmt", "power"]
    alpha: Annotated[float, Limits(ge=0, le=10)]  # far above 10, long translations score 0 in float32
    extra_length: Whole
    batch_tokens: Whole
    precision: Literal["auto", "float32", "bfloat16"]
    arithmetic: Arithmetic
    threads: Threads
    attention_sentences: Whole

    def __post_init__(self) -> None:
        require_float32(self.precision, self.arithmetic)


class DecoderConfig:
    """The settings of a decoder besides those of `DecodingConfig`."""

    USES: ClassVar[tuple[str, ...]] = ()  # the settings of `DecodingConfig` that the decoder uses, besides COMMON
    PARTS: ClassVar[tuple[str, ...]] = ()  # settings that choose another decoder, as {decoder: NAME, number: N, ...}
    needs_value: Any = False  # whether it needs the values of prefixes (value.py)
    metric: Any = None  # the metric against the reference that it maximises

    def check(self, config: DecodingConfig) -> None:
        """Raise UserError if the settings do not fit those of `DecodingConfig`."""


@dataclass(frozen=True)
class BeamConfig(DecoderConfig):
    regulariser: NotNegative
    ends: Literal["beam", "all"]  # the candidates among which an end counts: the best `beam`, or all 2 x `beam`
    no_repeat_ngram: Whole
    finished: Whole  # hypotheses with which the search of a sentence ends; 0: it goes on while one can still win

    USES = BEAM_SETTINGS
