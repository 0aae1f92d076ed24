"""The settings of the decoders of `decodings`, besides those of `DecodingConfig`.

docs/reference.md explains them. `BeamConfig` is in `decoding.py`, so that a new decoder here does not make the stage
`decode` stale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from transformer.config.decoding import BEAM_SETTINGS, BeamConfig, DecoderConfig, DecodingConfig
from transformer.config.reading import Count, Limits, NotNegative, Positive, Seed, Share, Whole, require

COMMON = ("extra_length", "batch_tokens", "precision", "arithmetic", "threads")


@dataclass(frozen=True)
class GreedyConfig(DecoderConfig):
    """Greedy search has no settings besides COMMON."""


@dataclass(frozen=True)
class SamplingConfig(DecoderConfig):
    seed: Seed
    temperature: Positive
    top_k: Whole
    top_p: Annotated[float, Limits(gt=0, le=1)]
    epsilon: Share


@dataclass(frozen=True)
class DiverseConfig(DecoderConfig):
    groups: Count
    diversity: NotNegative

    USES = BEAM_SETTINGS

    def check(self, config: DecodingConfig) -> None:
        require(config.beam % self.groups == 0, "groups", self.groups, f"a divisor of beam {config.beam} is expected")


@dataclass(frozen=True)
class MbrConfig(DecoderConfig):
    utility: Literal["bleu", "chrf", "chrf_aggregate"]

    PARTS = ("candidates", "references")


@dataclass(frozen=True)
class ExactConfig(DecoderConfig):
    max_steps: Count

    USES = ("beam",)


@dataclass(frozen=True)
class ValueBeamConfig(DecoderConfig):
    """Beam search that ranks by log-likelihood and value."""

    weight: Share

    USES = BEAM_SETTINGS
    needs_value = True


@dataclass(frozen=True)
class MctsConfig(DecoderConfig):
    """Monte-Carlo tree search."""

    objective: Literal["value", "log_probability", "oracle_bleu", "oracle_chrf"]
    simulations: Count
    c: NotNegative
    children: Count
    temperature: Positive

    USES = ("penalty", "alpha")

    @property
    def needs_value(self) -> bool:
        return self.objective == "value"

    @property
    def metric(self) -> str | None:
        """The metric against the reference that an oracle maximises; None for the other objectives."""
        return self.objective.removeprefix("oracle_") if self.objective.startswith("oracle_") else None


DECODERS: dict[str, Any] = {
    "beam": BeamConfig,
    "greedy": GreedyConfig,
    "sampling": SamplingConfig,
    "diverse": DiverseConfig,
    "mbr": MbrConfig,
    "exact": ExactConfig,
    "value_beam": ValueBeamConfig,
    "mcts": MctsConfig,
}
DEFAULT = "beam"  # the paper's


@dataclass(frozen=True)
class Choice:
    """A decoder with all its settings. `parts` are the decoders that it uses.

    In a part, `number` is the number of translations that the part gives for each sentence.
    """

    decoder: str
    config: DecodingConfig
    own: Any  # the dataclass of DECODERS
    number: int = 1
    parts: Mapping[str, "Choice"] = field(default_factory=dict)

    @property
    def needs_value(self) -> bool:
        """Whether this decoder, or a decoder in `parts`, needs the values of prefixes (see value.py)."""
        return self.own.needs_value or any(part.needs_value for part in self.parts.values())

    def description(self, config: DecodingConfig) -> dict[str, Any]:
        """The settings that the decoder uses, for the file beside its translation.

        `config` is that of the translator, with the values in use where `self.config` and its parts have 0 or `auto`.
        """
        shared = {key: getattr(config, key) for key in (*self.own.USES, *COMMON)}
        in_use = {key: shared[key] for key in COMMON}
        parts = {}
        for key, part in self.parts.items():
            parts[key] = {"number": part.number, **part.description(replace(part.config, **in_use))}
        return {"decoder": self.decoder, **shared, **vars(self.own), **parts}
