"""Plots of the time of Table 1's layers against n and against d."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.layer_table import Measured, law
from pipeline.reporting.lines import COLOURS
from pipeline.reporting.plots import Figure, svg


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
