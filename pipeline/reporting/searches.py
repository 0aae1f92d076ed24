"""Searches for settings and values of prefixes: tables of their files in results/, and a picture of the trials."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure as Canvas

from pipeline.reporting.figures.style import COLOURS, Figure, drawn
from pipeline.reporting.tables import Table, table
from pipeline.settings.searches import line

LOGARITHMIC = 20.0  # an axis is logarithmic if the ratio of its largest to its smallest number is above this
METRICS = {"dev_loss": "dev loss", "dev_bleu": "dev BLEU"}
OF_VALUES = (
    "A value is one line of `values` or `reverse_values` in params.yaml: a head on the decoder's output that predicts the "
    "final score of a translation from its prefixes. It is measured on all prefixes of samples of the dev set. The "
    "correlations with the final score are Pearson's: of the value, and of the length of the prefix. The calibration error "
    "is the mean distance between mean value and mean score in ten intervals of the value, weighted by their prefixes."
)
MEASURED = ("prefixes", "correlation", "correlation of the length", "calibration error")  # of a value, on dev


def varied(search: Mapping[str, Any]) -> list[str]:
    """The settings that differ between trials."""
    return [key for key in search["best"]["run"] if len({repr(each["settings"].get(key)) for each in search["trials"]}) > 1]


def completed(search: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The trials with a value, best first."""
    sign = 1 if search["search"]["metric"] == "dev_loss" else -1
    return sorted((each for each in search["trials"] if each["value"] is not None), key=lambda each: sign * each["value"])


def search_table(search: Mapping[str, Any]) -> Table:
    """A row for each trial: first the completed trials, best first, then the others."""
    trials, name, settings = search["trials"], search["name"], search["search"]
    metric, rows = METRICS[settings["metric"]], []
    for trial in [*completed(search), *(each for each in trials if each["value"] is None)]:
        row = {"trial": trial["trial"], **{key: trial["settings"].get(key) for key in varied(search)}}
        row |= {"steps": trial["steps"], "dev loss": trial["dev_losses"][-1][1] if trial["dev_losses"] else None}
        row |= {metric: trial["value"], "state": trial["state"]}
        rows.append(row | ({"why": trial["why"]} if any(each["why"] for each in trials) else {}))
    budget = f"{settings['steps']:,} steps"
    pruned = sum(each["state"] == "pruned" for each in trials)
    shares = ", ".join(f"{key} {share:.2f}" for key, share in search["importance"].items())
    notes = [
        f"{len(trials)} trials of at most {budget} by TPE, one seed each; {pruned} were pruned.",
        f"The best as a line of params.yaml: {line(f'{name}-best', search['best']['run'])}",
        *([f"Importance by PED-ANOVA (the values add up to 1): {shares}."] if shares else []),
    ]
    places = {"dev loss": 4, metric: 4}
    return table(f"search-{name}", f"Search {name}", rows, notes, places=places, given=varied(search))


def figures(search: Mapping[str, Any]) -> list[Figure]:
    """A panel for each setting: the value of each completed trial against it. The best trial has another colour.

    Empty if fewer than two trials have a value, and if no setting varies.
    """
    trials, names, metric = completed(search), varied(search), METRICS[search["search"]["metric"]]
    if len(trials) < 2 or not names:
        return []
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
    return [drawn(f"search-{search['name']}-settings", canvas, caption, alt)]


def value_table(values: Mapping[str, Mapping]) -> Table:
    """A row for each value."""
    rows = [
        {"value": name, "model": each["model"], "final score": each["settings"]["score"]}
        | {label: each["dev"].get(label.replace(" the ", " ").replace(" ", "_")) for label in MEASURED}
        for name, each in values.items()
    ]
    return table("values", "Values of prefixes", rows, [OF_VALUES], places=dict.fromkeys(MEASURED, 3))
