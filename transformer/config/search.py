"""The settings of the decoders `value_beam` and `mcts`. docs/search.md explains them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from transformer.config.decoding import BEAM_SETTINGS
from transformer.config.reading import require


@dataclass(frozen=True)
class ValueBeamConfig:
    """Beam search that ranks by log-likelihood and value."""

    weight: float

    USES: ClassVar = BEAM_SETTINGS
    PARTS: ClassVar = ()

    def __post_init__(self) -> None:
        require(0 <= self.weight < 1, "weight", self.weight, "a number from 0 up to, but not including, 1 is expected")

    @property
    def needs_value(self) -> bool:
        return True

    @property
    def metric(self) -> str | None:
        return None


@dataclass(frozen=True)
class MctsConfig:
    """Monte-Carlo tree search."""

    objective: Literal["value", "log_probability", "oracle_bleu", "oracle_chrf"]
    simulations: int
    c: float
    children: int
    temperature: float

    USES: ClassVar = ("penalty", "alpha")
    PARTS: ClassVar = ()

    def __post_init__(self) -> None:
        for key in ("simulations", "children"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        require(self.c >= 0, "c", self.c, "0 or a number above it is expected")
        require(self.temperature > 0, "temperature", self.temperature, "a number above 0 is expected")

    @property
    def needs_value(self) -> bool:
        return self.objective == "value"

    @property
    def metric(self) -> str | None:
        """The metric against the reference that an oracle maximises; None for the other objectives."""
        return self.objective.removeprefix("oracle_") if self.objective.startswith("oracle_") else None
