"""Table 1: the paper's formulae, and what benchmarks/layers.py counted and measured on one machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.reporting import evidence
from pipeline.reporting.published import TABLE1
from pipeline.reporting.tables import Column, Table
from pipeline.settings.score_files import entry

NOTES = [
    "n positions, d dimensions, kernel width k, neighbourhood r; the path is the longest between any two positions.",
    (
        "The measured layers are one head of attention without projections, which the paper does not count either, a "
        "plain recurrent layer (tanh), a convolution, and attention restricted to r positions on either side, computed in "
        "blocks. The paths are those of convolutions dilated by powers of k. Memory is what the forward pass keeps for the "
        "backward pass, without the weights. The expected memory is fitted in the same way to the count of the kept "
        "numbers, which is n^2 + n d for self-attention."
    ),
]
COLUMNS = [
    Column("layer"),
    Column("complexity per layer"),
    Column("time grows as", measured=True),
    Column("R²", "number", 3, measured=True),
    Column("memory expected"),
    Column("memory grows as"),
    Column("sequential operations"),
    Column("sequential operations, counted", "count"),
    Column("path length"),
    Column("path length, computed", "count"),
]


@dataclass(frozen=True)
class PowerLaw:
    """`scale` * n^`n` * d^`d`, fitted on logarithms with this R^2."""

    scale: float
    n: float
    d: float
    r_squared: float

    def __str__(self) -> str:
        return f"n^{self.n:.2f} d^{self.d:.2f}"


@dataclass(frozen=True)
class LayerCost:
    """The measured row of a layer."""

    time: PowerLaw
    memory: PowerLaw
    expected_memory: PowerLaw
    sequential_operations: int
    path_length: int


def table1(path: Path) -> Table:
    """The paper's formulae, and beside them the measurements in `path`, if there is this file."""
    rows: list[list[Any]]
    if not path.exists():
        rows = [[row.layer, row.complexity, *[None] * 4, row.sequential, None, row.path, None] for row in TABLE1]
        return Table("table1", "Table 1: what a layer costs", COLUMNS, rows, NOTES, grouped=True)
    value, rows = evidence.read(path), []
    layers = entry(value, "layers", dict[str, LayerCost], str(path))
    for row in TABLE1:
        cost = layers[row.layer]
        cells: list[Any] = [row.layer, row.complexity, str(cost.time), cost.time.r_squared]
        cells += [str(cost.expected_memory), str(cost.memory), row.sequential, cost.sequential_operations]
        rows.append([*cells, row.path, cost.path_length])
    note = (
        "One layer, forward and backward, batch 1, k {k}, r {r}; powers fitted by least squares on the logarithms, n and d "
        "{n_d[0]} to {n_d[1]}; counted and computed at n {counted_at_n}."
    ).format(**value["settings"])
    table = Table("table1", "Table 1: what a layer costs", COLUMNS, rows, [*NOTES, note], grouped=True)
    return table.with_measured_notes([f"Measured on {value['hardware']}."])
