"""TFLOPS by GPU: the blocks `hardware` (sustained, for the paper's estimate) and `peak_tflops` (for utilisation)."""

from collections.abc import Mapping
from typing import Any

from transformer.config.reading import Positive, convert

Rates = dict[str, Positive]


def rates(params: Mapping[str, Any], block: str) -> Rates:
    """TFLOPS by GPU, from params.yaml's block `hardware` or `peak_tflops`; empty if there is no such block."""
    return convert(Rates, params.get(block, {}), f"params.yaml: {block}")
