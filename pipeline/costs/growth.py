"""The cost of layers and its growth with n and d, as stored in scores/layer-costs.json (Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


def upper(sizes: Sequence[int]) -> Sequence[int]:
    """Return the upper half of the sizes, for fits of power laws. At small sizes, constant costs hide the growth."""
    return sizes[len(sizes) // 2 :]


@dataclass(frozen=True)
class PowerLaw:
    """The function `scale` * n^`n` * d^`d`, and the R^2 of its fit on logarithms."""

    scale: float
    n: float
    d: float
    r_squared: float

    def at(self, n: int, d: int) -> float:
        return self.scale * n**self.n * d**self.d


@dataclass(frozen=True)
class Growth:
    """The growth of a cost over the upper half of the lengths and widths, as counted and as measured."""

    expected: PowerLaw
    measured: PowerLaw


@dataclass(frozen=True)
class Point:
    """One layer at one n and d: the time of a forward and a backward pass, and the memory kept between them."""

    n: int
    d: int
    seconds: float | None
    bytes: int

    @property
    def time(self) -> float:
        """The measured seconds. They are None only in scores/layer-costs.json, which holds no times."""
        assert self.seconds is not None
        return self.seconds


@dataclass(frozen=True)
class LayerCost:
    """A measured row of Table 1. Sequential operations and path length are those of the smallest n."""

    seconds: Growth | None
    bytes: Growth
    sequential_operations: int
    path_length: int
    points: tuple[Point, ...]

    @property
    def time_law(self) -> PowerLaw:
        """The power law of the measured time. The layer must have times."""
        assert self.seconds is not None
        return self.seconds.measured

    def without_times(self) -> "LayerCost":
        """Return a copy without times. It is equal each time that the stage runs."""
        return replace(self, seconds=None, points=tuple(replace(point, seconds=None) for point in self.points))
