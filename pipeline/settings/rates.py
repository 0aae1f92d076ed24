"""TFLOPS by GPU: the blocks `hardware` (sustained, for the paper's estimate) and `peak_tflops` (for utilisation)."""

from collections.abc import Mapping
from typing import Any

from transformer.config.reading import UserError, convert


def rates(params: Mapping[str, Any], block: str) -> dict[str, float]:
    """TFLOPS by GPU, from params.yaml's block `hardware` or `peak_tflops`; empty if there is no such block."""
    table = convert(dict[str, float], params.get(block, {}), f"params.yaml: {block}")
    for name, value in table.items():
        if value <= 0:
            raise UserError(f"params.yaml: {block}.{name}: {value!r} is not possible; TFLOPS above 0 are expected")
    return table
