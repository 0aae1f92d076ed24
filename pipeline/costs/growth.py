"""What layers cost: the grid on which it is measured, and what scores/layer-costs.json says of it (Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass


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
