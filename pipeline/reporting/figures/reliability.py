"""How far predictions can be believed: token probabilities of runs, and values of prefixes."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
from pipeline.reporting.results import Results
from pipeline.reporting.seeds import alike


def diagonal(plot: Axes) -> None:
    plot.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")


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
    canvas, plot = axes(5.2, 4.2)
    diagonal(plot)
    shown = []
    for number, (name, *_) in enumerate(alike(results.runs, known)):
        run = results.runs.loc[name]
        bins = [(each["probability"], each["accuracy"], each["tokens"]) for each in run["reliability"]]
        curve(plot, bins, COLOURS[number % len(COLOURS)], name)
        shown.append(f"{name} {run['calibration error']:.3f}")
    plot.set(xlabel="probability of the most probable token", ylabel="share in which it is right", xlim=(0, 1), ylim=(0, 1))
    canvas.legend(loc="outside lower center", ncols=2)
    caption = (
        "Token probabilities on dev, last checkpoint: below the dotted line the model is over-confident, which label "
        f"smoothing is meant to prevent (5.4). Calibration errors: {', '.join(shown)}."
    )
    name = f"reliability-{of}" if of else "reliability"
    return [drawn(name, canvas, caption, f"Reliability curves of {len(shown)} trainings beside the diagonal.")]


def value(name: str, content: Mapping[str, Any]) -> Figure:
    """Two panels: the reliability curve of a value, and its correlation with the final score by prefix length."""
    canvas, of, metric = Canvas(figsize=(8.4, 3.6), layout="constrained"), content["dev"], content["settings"]["score"]
    reliability, by_length = canvas.subplots(1, 2)
    diagonal(reliability)
    curve(reliability, [(each["value"], each["score"], each["prefixes"]) for each in of["reliability"]], COLOURS[0], "")
    reliability.set(xlabel="value", ylabel=f"mean final {metric}", xlim=(0, 1), ylim=(0, 1))
    known = {each["length"]: each["correlation"] for each in of["by_length"] if each["correlation"] is not None}
    by_length.plot(list(known), list(known.values()), color=COLOURS[0])
    if (of_length := of["correlation_of_length"]) is not None:
        by_length.axhline(of_length, color=COLOURS[1], linestyle="--")
    by_length.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    lowest = min([0.0, of_length or 0.0, *known.values()])
    by_length.set(xlabel="tokens of the prefix", ylabel=f"correlation with the final {metric}", ylim=(lowest - 0.1, 1))
    whole = f"{of['correlation']:.2f}" if of["correlation"] is not None else "none"
    caption = (
        f"The value {name} on dev: the mean final {metric} of the prefixes of each interval of the value, and the "
        f"correlation of value and score by prefix length. Over all prefixes, this correlation is {whole}. The dashed line "
        "is the correlation of prefix length and score."
    )
    alt = f"Reliability curve of the value {name} and its correlation with the final score by prefix length."
    return drawn(f"value-{name}", canvas, caption, alt)
