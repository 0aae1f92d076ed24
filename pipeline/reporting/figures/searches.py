"""Figures of a search for settings: its history, the settings of its trials, and their importance."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from matplotlib.figure import Figure as Canvas

from pipeline.reporting.figures.style import COLOURS, Figure, axes, drawn
from pipeline.reporting.searches import METRICS, completed, varied

LOGARITHMIC = 20.0  # an axis is logarithmic if the ratio of its largest to its smallest number is above this


def figures(search: Mapping[str, Any]) -> list[Figure]:
    """The history, the settings and their importance. Empty if fewer than two trials have a value."""
    if len(completed(search)) < 2:
        return []
    return [history(search), *([settings(search)] if varied(search) else []), *importance(search)]


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


def settings(search: Mapping[str, Any]) -> Figure:
    """A panel for each setting: the value of each completed trial against it. The best trial has another colour."""
    trials, names, metric = completed(search), varied(search), METRICS[search["search"]["metric"]]
    canvas = Canvas(figsize=(max(5.2, 2.0 * len(names)), 3.0), layout="constrained")
    for plot, name in zip(canvas.subplots(1, len(names), sharey=True, squeeze=False)[0], names):
        values = [trial["settings"].get(name) for trial in trials]
        if not all(isinstance(value, int | float) for value in values):
            values = list(map(str, values))
        elif min(values) > 0 and max(values) / min(values) > LOGARITHMIC:
            plot.set_xscale("log")
        colours = [COLOURS[1], *[COLOURS[0]] * (len(trials) - 1)]
        plot.scatter(values, [trial["value"] for trial in trials], c=colours, s=14)
        plot.set_xlabel(name)
        plot.tick_params(axis="x", labelrotation=45)
    canvas.supylabel(metric)
    caption = f"{search['name']}: {metric} of the completed trials against each setting; the best one is orange."
    alt = f"{len(trials)} points against {', '.join(names)}."
    return drawn(f"search-{search['name']}-settings", canvas, caption, alt)
