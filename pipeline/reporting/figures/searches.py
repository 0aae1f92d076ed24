"""Figures of a search for settings: its history, the settings of its trials, and their importance."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes

from pipeline.reporting.figures.style import COLOURS, Figure, axes, drawn
from pipeline.reporting.searches import METRICS, completed, varied

LOGARITHMIC = 20.0  # an axis is logarithmic if the ratio of its largest to its smallest number is above this


def figures(search: Mapping[str, Any]) -> list[Figure]:
    """The history, parallel coordinates and importance. Empty if fewer than two trials have a value."""
    if len(completed(search)) < 2:
        return []
    return [history(search), *([coordinates(search)] if varied(search) else []), *importance(search)]


def history(search: Mapping[str, Any]) -> Figure:
    """The value of each completed trial against its number, and the best value so far."""
    canvas, plot = axes()
    trials = sorted(completed(search), key=lambda trial: trial["trial"])
    numbers, values = [trial["trial"] for trial in trials], [trial["value"] for trial in trials]
    metric, name, pruned = METRICS[search["search"]["metric"]], search["name"], len(search["trials"]) - len(trials)
    better = min if search["search"]["metric"] == "dev_loss" else max
    plot.plot(numbers, values, "o", color=COLOURS[0], markersize=4, label="trial")
    plot.step(numbers, list(accumulate(values, better)), color=COLOURS[1], where="post", label="best so far")
    plot.set(xlabel="trial", ylabel=metric)
    canvas.legend(loc="outside lower center", ncols=2)
    caption = f"{name}: the {metric} of each completed trial; {pruned} trials were pruned."
    alt = f"{len(trials)} points and a line of the best so far, which ends at {better(values):.4g}."
    return drawn(f"search-{name}-history", canvas, caption, alt)


def importance(search: Mapping[str, Any]) -> list[Figure]:
    if not search["importance"]:
        return []
    canvas, plot = axes(height=1.2 + 0.3 * len(search["importance"]))
    ordered = sorted(search["importance"].items(), key=lambda item: item[1])
    plot.barh([name for name, _ in ordered], [share for _, share in ordered], height=0.6, color=COLOURS[0])
    plot.set(xlabel="importance (PED-ANOVA)", xlim=(0, None))
    caption = f"{search['name']}: how much each setting of the space decides whether a trial is among the best."
    alt = "Bars: " + ", ".join(f"{name} {share:.2f}" for name, share in reversed(ordered)) + "."
    return [drawn(f"search-{search['name']}-importance", canvas, caption, alt)]


def coordinates(search: Mapping[str, Any]) -> Figure:
    """A line per trial through its settings, to its value. The better the trial, the more opaque is its line."""
    trials, names = completed(search), [*varied(search), METRICS[search["search"]["metric"]]]
    columns = [[trial["settings"].get(key) for trial in trials] for key in names[:-1]]
    columns.append([trial["value"] for trial in trials])
    canvas, plot = axes(max(5.2, 1.3 * len(names)), 3.6)
    heights = [axis(plot, place, column) for place, column in enumerate(columns)]
    for rank, across in reversed(list(enumerate(zip(*heights)))):
        colour, width = (COLOURS[1], 2.2) if rank == 0 else (COLOURS[0], 1.2)
        plot.plot(range(len(names)), across, color=colour, alpha=1 - 0.85 * rank / len(trials), linewidth=width)
    plot.set_xticks(range(len(names)), names)
    plot.set(xlim=(-0.3, len(names) - 0.7), ylim=(-0.12, 1.1), yticks=[])
    plot.spines["left"].set_visible(False)
    plot.grid(True, axis="x")
    caption = f"{search['name']}: settings and {names[-1]} of the completed trials; the best one is orange."
    alt = f"Parallel coordinates of {len(trials)} trials over {', '.join(names)}."
    return drawn(f"search-{search['name']}-settings", canvas, caption, alt)


def axis(plot: Axes, place: int, values: Sequence[Any]) -> list[float]:
    """Draw the labels of a vertical axis at `place`. Returns the height of each value, from 0 to 1.

    Numbers are spread by their size, on a logarithmic scale if they differ widely, and other values evenly.
    """
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = min(values), max(values)
        scale = math.log if low > 0 and high / low > LOGARITHMIC else float
        ends = {f"{high:.4g}": float(high > low), f"{low:.4g}": 0.0}
        heights = [(scale(value) - scale(low)) / ((scale(high) - scale(low)) or 1.0) for value in values]
    else:
        known = list(dict.fromkeys(map(str, values)))
        ends = {value: number / max(1, len(known) - 1) for number, value in enumerate(known)}
        heights = [ends[str(value)] for value in values]
    for text, height in ends.items():
        below = height < 0.5
        align: dict[str, Any] = {"ha": "center", "va": "top" if below else "bottom", "fontsize": 8}
        plot.annotate(text, (place, height), xytext=(0, -4 if below else 4), textcoords="offset points", **align)
    return heights
