"""The settings of Monte-Carlo tree search."""

from dataclasses import dataclass
from typing import Literal

from transformer.config.reading import require


@dataclass(frozen=True)
class MctsConfig:
    """One way to search a tree. params.yaml explains each setting."""

    simulations: int
    c: float
    children: int
    temperature: float
    objective: Literal["value", "log_probability", "metric"]

    def __post_init__(self) -> None:
        for key in ("simulations", "children"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        require(self.c >= 0, "c", self.c, "0 or a number above it is expected")
        require(self.temperature > 0, "temperature", self.temperature, "a number above 0 is expected")
