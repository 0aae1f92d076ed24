"""The values of prefixes: how well they predict the final score, as a table and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.evidence import read
from pipeline.reporting.lines import COLOURS, INK
from pipeline.reporting.plots import Figure, svg
from pipeline.reporting.tables import Column, Table
from pipeline.settings.score_files import entry
from pipeline.settings.values import BLOCKS
from transformer.config.reading import convert

NOTES = [
    "A value is one line of `values` or `reverse_values` in params.yaml: a head on the decoder's output that predicts the "
    "final score of a translation from its prefixes. It is measured on all prefixes of samples of the dev set. The "
    "correlations with the final score are Pearson's: of the value, and of the length of the prefix. The calibration error "
    "is the mean distance between mean value and mean score in ten intervals of the value, weighted by their prefixes.",
]


@dataclass(frozen=True)
class Point:
    """The prefixes whose value lies in one interval: their mean value, mean final score and number."""

    value: float
    score: float
    prefixes: int


@dataclass(frozen=True)
class AtLength:
    """The prefixes of one length in tokens. `correlation` is that of their values and final scores."""

    length: int
    prefixes: int
    correlation: float | None


@dataclass(frozen=True)
class Calibration:
    """The calibration of a value on dev, from scores/values/NAME.json or its record in results/values/."""

    name: str
    recorded: bool
    model: str
    metric: str
    prefixes: int
    correlation: float | None
    correlation_of_length: float | None
    calibration_error: float
    by_length: tuple[AtLength, ...]
    reliability: tuple[Point, ...]


def selected(params: Mapping[str, Any], scores: Path) -> list[Calibration]:
    """The values of params.yaml that have been trained, in its order."""
    paths = {name: scores / "values" / f"{name}.json" for block in BLOCKS for name in params[block]}
    return [of_file(name, path) for name, path in paths.items() if path.exists()]


def records(results: Path) -> list[Calibration]:
    """The recorded values, by name."""
    return [of_file(path.stem, path, recorded=True) for path in sorted((results / "values").glob("*.json"))]


def of_file(name: str, path: Path, recorded: bool = False) -> Calibration:
    content, where = read(path), str(path)
    return Calibration(
        name=name,
        recorded=recorded,
        model=entry(content, "model", str, where),
        metric=entry(content, "settings.score", str, where),
        prefixes=entry(content, "dev.prefixes", int, where),
        correlation=entry(content, "dev.correlation", float | None, where),
        correlation_of_length=entry(content, "dev.correlation_of_length", float | None, where),
        calibration_error=entry(content, "dev.calibration_error", float, where),
        by_length=convert(tuple[AtLength, ...], content["dev"].get("by_length"), f"{where}: dev.by_length"),
        reliability=convert(tuple[Point, ...], content["dev"].get("reliability"), f"{where}: dev.reliability"),
    )


def table(values: Sequence[Calibration]) -> Table | None:
    """Return a table with one row for each value, or None if there are no values."""
    if not values:
        return None
    columns = [Column("value"), Column("model"), Column("final score"), Column("prefixes", "count")]
    columns += [Column(name, "number", 3) for name in ("correlation", "correlation of the length", "calibration error")]
    keys = ("model", "metric", "prefixes", "correlation", "correlation_of_length", "calibration_error")
    rows = [
        [f"{each.name} (recorded)" if each.recorded else each.name, *(getattr(each, key) for key in keys)]
        for each in values
    ]
    return Table("values", "Values of prefixes", columns, rows, NOTES)


def calibration(value: Calibration) -> Figure:
    """Two panels: the reliability curve, and the correlation with the final score by prefix length."""
    canvas = Canvas(figsize=(8.4, 3.6), layout="constrained")
    reliability, by_length = canvas.subplots(1, 2)
    draw_reliability(reliability, value)
    draw_by_length(by_length, value)
    whole = f"{value.correlation:.2f}" if value.correlation is not None else "none"
    caption = (
        f"The value {value.name} on dev: the mean final {value.metric} of the prefixes of each interval of the value, and "
        f"the correlation of value and score by prefix length. Over all prefixes, this correlation is {whole}. The dashed "
        "line is the correlation of prefix length and score."
    )
    alt = f"Reliability curve of the value {value.name} and its correlation with the final score by prefix length."
    name = f"value-{value.name}{'-recorded' if value.recorded else ''}"
    return Figure(name, "search", svg(canvas), caption, alt)


def draw_reliability(plot: Axes, value: Calibration) -> None:
    """Plot the mean final score against the value. The area of a point grows with its share of the prefixes."""
    plot.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    areas = [12 + 150 * point.prefixes / value.prefixes for point in value.reliability]
    places = [point.value for point in value.reliability], [point.score for point in value.reliability]
    plot.plot(*places, color=COLOURS[0])
    plot.scatter(*places, s=areas, color=COLOURS[0], alpha=0.5, linewidths=0)
    plot.set(xlabel="value", ylabel=f"mean final {value.metric}", xlim=(0, 1), ylim=(0, 1))


def draw_by_length(plot: Axes, value: Calibration) -> None:
    """Plot the correlation of value and score by prefix length, and dashed that of length and score over all prefixes."""
    points = {point.length: point.correlation for point in value.by_length if point.correlation is not None}
    plot.plot(list(points), list(points.values()), color=COLOURS[0])
    if value.correlation_of_length is not None:
        plot.axhline(value.correlation_of_length, color=COLOURS[1], linestyle="--")
    plot.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    lowest = min([0.0, value.correlation_of_length or 0.0, *points.values()])
    plot.set(xlabel="tokens of the prefix", ylabel=f"correlation with the final {value.metric}", ylim=(lowest - 0.1, 1))
