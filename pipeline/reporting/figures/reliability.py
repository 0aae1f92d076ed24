"""How far predictions can be believed: token probabilities of runs, and values of prefixes."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
from pipeline.reporting.results import Results


def square(xlabel: str, ylabel: str) -> tuple[Canvas, Axes]:
    """Axes of two shares, with their diagonal."""
    canvas, plot = axes(5.2, 4.2)
    plot.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    plot.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, 1), ylim=(0, 1))
    return canvas, plot


def curve(plot: Axes, points: Sequence[tuple[float, float, int]], colour: str, label: str) -> None:
    """Draw (believed, right, number) as a line. The area of a point grows with its share of the number."""
    believed, right, numbers = zip(*points)
    plot.plot(believed, right, color=colour, label=label)
    areas = [12 + 150 * number / sum(numbers) for number in numbers]
    plot.scatter(believed, right, s=areas, color=colour, alpha=0.5, linewidths=0)


def tokens(results: Results, of: str = "") -> list[Figure]:
    """How often the most probable token is right, by its probability, for each training. Seeds are shown by the first."""
    known = [name for name in results.runs.index if results.runs.at[name, "reliability"]]
    if not known:
        return []
    canvas, plot = square("probability of the most probable token", "share in which it is right")
    shown = []
    for number, (name, *_) in enumerate(results.alike(known)):
        run = results.runs.loc[name]
        bins = [(each["probability"], each["accuracy"], each["tokens"]) for each in run["reliability"]]
        curve(plot, bins, COLOURS[number % len(COLOURS)], name)
        shown.append(f"{name} {run['calibration error']:.3f}")
    canvas.legend(loc="outside lower center", ncols=2)
    caption = (
        "Token probabilities on dev, last checkpoint: below the dotted line the model is over-confident, which label "
        f"smoothing is meant to prevent (5.4). Calibration errors: {', '.join(shown)}."
    )
    name = f"reliability-{of}" if of else "reliability"
    return [drawn(name, canvas, caption, f"Reliability curves of {len(shown)} trainings beside the diagonal.")]


def values(contents: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    """The reliability curve of each value."""
    found = []
    for name, content in contents.items():
        metric = content["settings"]["score"]
        canvas, plot = square("value", f"mean final {metric}")
        bins = [(each["value"], each["score"], each["prefixes"]) for each in content["dev"]["reliability"]]
        curve(plot, bins, COLOURS[0], "")
        caption = f"The value {name} on dev: the mean final {metric} of the prefixes of each interval of the value."
        found.append(drawn(f"value-{name}", canvas, caption, f"Reliability curve of the value {name} beside the diagonal."))
    return found
