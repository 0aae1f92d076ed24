"""Table 1: the paper's formulae, and the costs that pipeline/layer_costs.py measured on this and on recorded machines.

The plots show the measured times against n and against d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.costs.growth import LayerCost, PowerLaw, upper
from pipeline.reporting import evidence
from pipeline.reporting.lines import COLOURS
from pipeline.reporting.plots import Figure, svg
from pipeline.reporting.published import TABLE1, Table1Row
from pipeline.reporting.tables import Column, Table
from pipeline.settings.layer_costs import LayerCostsConfig
from pipeline.settings.score_files import entry
from pipeline.workflow.times import times_of
from transformer.config.reading import UserError

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


@dataclass(frozen=True)
class Measured:
    """A file of layer costs. `name` is the name of a recorded file, and empty for the costs of this machine.

    If there are no times of this machine, its `hardware` and the seconds of the layers are None.
    """

    name: str
    hardware: str | None
    settings: LayerCostsConfig
    layers: dict[str, LayerCost]

    @property
    def has_times(self) -> bool:
        return all(cost.seconds for cost in self.layers.values())


def measured(scores: Path, results: Path, times: Path) -> list[Measured]:
    """This machine's costs, if they were measured, then the recorded ones, by name."""
    here, timed = scores / "layer-costs.json", times / "layer-costs.json"
    found, known = times_of(timed, here)
    names = {here if known is None else found: ""} if here.exists() else {}
    recorded = sorted((results / "layer-costs").glob("*.json"))
    return [of_file(path, name) for path, name in (names | {path: path.stem for path in recorded}).items()]


def of_file(path: Path, name: str) -> Measured:
    value = evidence.read(path)
    layers = entry(value, "layers", dict[str, LayerCost], str(path))
    if list(layers) != [row.layer for row in TABLE1]:
        raise UserError(f"{path}: layers: the four of Table 1 are expected, not {', '.join(layers) or 'none'}")
    return Measured(
        name=name,
        hardware=entry(value, "machine.hardware", str | None, str(path)),
        settings=entry(value, "settings", LayerCostsConfig, str(path)),
        layers=layers,
    )


def table1(machines: Sequence[Measured]) -> Table:
    """The paper's formulae, and beside them a line for each machine."""
    columns = [Column("layer"), Column("complexity per layer"), Column("time grows as", measured=True)]
    columns += [Column("R²", "number", 3, measured=True)]
    columns += [Column("memory expected"), Column("memory grows as"), Column("sequential operations")]
    columns += [Column("sequential operations, counted", "count"), Column("path length")]
    columns += [Column("path length, computed", "count"), Column("machine"), Column("hardware", measured=True)]
    shown: Sequence[Measured | None] = machines or [None]
    rows = [row(layer, machine) for layer in TABLE1 for machine in shown]
    table = Table("table1", "Table 1: what a layer costs", columns, rows, [*NOTES, *map(note, machines)], grouped=True)
    if len(machines) > 1:
        return table
    return table.without("machine", "hardware").with_measured_notes(
        f"Measured on {machine.hardware}." for machine in machines if machine.hardware
    )


def row(layer: Table1Row, machine: Measured | None) -> list[Any]:
    if machine is None:
        formulae = [layer.layer, layer.complexity, None, None, None, None, layer.sequential, None, layer.path]
        return [*formulae, None, None, None]
    cost = machine.layers[layer.layer]
    fit = cost.seconds and cost.seconds.measured
    cells: list[Any] = [layer.layer, layer.complexity, fit and law(fit), fit and fit.r_squared]
    cells += [law(cost.bytes.expected), law(cost.bytes.measured), layer.sequential, cost.sequential_operations]
    return [*cells, layer.path, cost.path_length, machine.name or "this one", machine.hardware]


def law(fit: PowerLaw) -> str:
    return f"n^{fit.n:.2f} d^{fit.d:.2f}"


def note(machine: Measured) -> str:
    """A note on the sizes that were measured and on the fit of the powers."""
    of = machine.settings
    n, d = upper(of.lengths), upper(of.widths)
    return (
        f"On {machine.name or 'this machine'}: one layer, forward and backward, batch {of.batch}, k {of.kernel}, "
        f"r {of.neighbourhood}; powers fitted by least squares on the logarithms, n {n[0]} to {n[-1]}, d {d[0]} to "
        f"{d[-1]}; counted and computed at n {of.lengths[0]}."
    )


def layer_times(machine: Measured) -> Figure:
    """Two panels with logarithmic axes: against n at the largest d, and against d at the largest n; fits are dotted."""
    lengths, widths = machine.settings.lengths, machine.settings.widths
    canvas = Canvas(figsize=(8.4, 3.9), layout="constrained")
    against_n, against_d = canvas.subplots(1, 2, sharey=True)
    draw(against_n, machine, lengths, [(n, widths[-1]) for n in lengths])
    draw(against_d, machine, widths, [(lengths[-1], d) for d in widths])
    against_n.set(xlabel=f"n, at d = {widths[-1]}", ylabel="seconds")
    against_d.set(xlabel=f"d, at n = {lengths[-1]}")
    canvas.legend(*against_n.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    grows = "; ".join(f"{kind} as {law(cost.time_law)}" for kind, cost in machine.layers.items())
    caption = (
        f"Time of one layer, forward and backward, on {machine.hardware}: measured, and the fitted power law, dotted. "
        f"It grows: {grows}."
    )
    alt = "Time of the four layers of Table 1 against n and against d, on logarithmic axes: nearly straight lines."
    name = f"layer-costs{machine.name and f'-{machine.name}'}"
    return Figure(name, "layers", svg(canvas), caption, alt, measured=True)


def draw(plot: Axes, machine: Measured, sizes: Sequence[int], places: Sequence[tuple[int, int]]) -> None:
    """Plot each layer's times at these (n, d), and its fit, against the sizes."""
    for (kind, cost), colour in zip(machine.layers.items(), COLOURS):
        times = {(point.n, point.d): point.time for point in cost.points}
        fit = [cost.time_law.at(*place) for place in places]
        plot.plot(sizes, [times[place] for place in places], color=colour, marker="o", markersize=3, label=kind)
        plot.plot(sizes, fit, color=colour, linestyle=":", linewidth=1.2)
    plot.set_xscale("log", base=2)
    plot.set_yscale("log")
    plot.set_xticks(sizes, [str(size) for size in sizes])
