"""What layers cost: the grid on which it is measured, and what scores/layer-costs.json says of it (Table 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from transformer.config.reading import read, require


@dataclass(frozen=True)
class LayerCostsConfig:
    """params.yaml's block `layer_costs`: the grid of n and d, and how it is measured."""

    lengths: tuple[int, ...]  # n
    widths: tuple[int, ...]  # d
    kernel: int  # k
    neighbourhood: int  # r
    batch: int
    repeats: int
    seed: int

    def __post_init__(self) -> None:
        for key in ("lengths", "widths"):
            sizes = list(getattr(self, key))
            rising = len(sizes) > 2 and sizes[0] > 0 and all(a < b for a, b in pairwise(sizes))
            require(rising, key, sizes, "three or more rising numbers above 0 are expected")
        for key in ("neighbourhood", "batch", "repeats"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        odd = self.kernel > 1 and self.kernel % 2 == 1
        require(odd, "kernel", self.kernel, "an odd number above 1 is expected, as many positions on either side")
        require(self.seed >= 0, "seed", self.seed, "a whole number, 0 or more, is expected")


def config(params: Mapping[str, Any]) -> LayerCostsConfig:
    return read(LayerCostsConfig, params.get("layer_costs"), "params.yaml: layer_costs")


def upper(sizes: Sequence[int]) -> Sequence[int]:
    """The upper half, on which powers are fitted: below it, what does not grow hides what does."""
    return sizes[len(sizes) // 2 :]


@dataclass(frozen=True)
class PowerLaw:
    """`scale` n^`n` d^`d`, and the R^2 with which it fits, on logarithms."""

    scale: float
    n: float
    d: float
    r_squared: float

    def at(self, n: int, d: int) -> float:
        return self.scale * n**self.n * d**self.d


@dataclass(frozen=True)
class Growth:
    """How a cost grows over the upper half of the lengths and widths: as it is counted, and as it was measured."""

    expected: PowerLaw
    measured: PowerLaw


@dataclass(frozen=True)
class Point:
    """One layer at one n and d: the time of a forward and a backward pass, and the memory that is kept between."""

    n: int
    d: int
    seconds: float
    bytes: int


@dataclass(frozen=True)
class LayerCost:
    """A row of Table 1, measured. Operations and path length are those of the shortest n."""

    seconds: Growth
    bytes: Growth
    sequential_operations: int
    path_length: int
    points: tuple[Point, ...]
