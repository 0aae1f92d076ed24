"""The block `layer_costs`: the sizes at which the layers of Table 1 are measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from transformer.config.reading import read, require, require_seed


@dataclass(frozen=True)
class LayerCostsConfig:
    """The block `layer_costs` of params.yaml: the sizes n, d, k and r, and the settings of the measurement."""

    lengths: tuple[int, ...]  # n, the sequence length
    widths: tuple[int, ...]  # d, the representation dimension
    kernel: int  # k, the kernel size of the convolution
    neighbourhood: int  # r, the neighbourhood of restricted self-attention
    batch: int
    repeats: int
    seed: int

    def __post_init__(self) -> None:
        for key, least in (("lengths", 2), ("widths", 1)):  # a length of 1 has no path between positions
            sizes = list(getattr(self, key))
            rising = len(sizes) > 2 and sizes[0] >= least and all(a < b for a, b in pairwise(sizes))
            require(rising, key, sizes, f"three or more rising numbers from {least} are expected")
        for key in ("neighbourhood", "batch", "repeats"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        odd = self.kernel > 1 and self.kernel % 2 == 1
        require(odd, "kernel", self.kernel, "an odd number above 1 is expected")
        require_seed(self.seed)


def config(params: Mapping[str, Any]) -> LayerCostsConfig:
    return read(LayerCostsConfig, params.get("layer_costs"), "params.yaml: layer_costs")
