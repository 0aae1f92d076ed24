"""Searches for settings and values of prefixes: tables of their files in results/, and a picture of the trials."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
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


def trials(search: Mapping[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """A row for each trial: first the completed trials, best first, then the others; and the settings that differ."""
    metric, found = search["search"]["metric"], pd.DataFrame(search["trials"], dtype=object)
    settings = pd.DataFrame(list(found["settings"]), dtype=object).reindex(columns=list(search["best"]["run"]))
    settings = settings.loc[:, settings.map(repr).nunique() > 1]
    losses = found["dev_losses"].map(lambda losses: losses[-1][1] if losses else None)
    results = {"steps": found["steps"], "dev loss": losses, METRICS[metric]: found["value"]}
    frame = found[["trial"]].join(settings).assign(**results, state=found["state"], why=found["why"])
    ordered = frame.sort_values(METRICS[metric], ascending=metric == "dev_loss", kind="stable")
    return ordered if found["why"].any() else ordered.drop(columns="why"), list(settings)


def search_table(search: Mapping[str, Any]) -> Table:
    (rows, varied), name = trials(search), search["name"]
    pruned = (rows["state"] == "pruned").sum()
    shares = ", ".join(f"{key} {share:.2f}" for key, share in search["importance"].items())
    notes = [
        f"{len(rows)} trials of at most {search['search']['steps']:,} steps by TPE, one seed each; {pruned} were pruned.",
        f"The best as a line of params.yaml: {line(f'{name}-best', search['best']['run'])}",
        *([f"Importance by PED-ANOVA (the values add up to 1): {shares}."] if shares else []),
    ]
    places = dict.fromkeys(METRICS.values(), 4)
    return table(f"search-{name}", f"Search {name}", rows, notes, places=places, given=varied)


def figures(search: Mapping[str, Any]) -> list[Figure]:
    """A panel for each setting: the value of each completed trial against it. The best trial has another colour.

    Empty if fewer than two trials have a value, and if no setting varies.
    """
    rows, names = trials(search)
    metric = METRICS[search["search"]["metric"]]
    completed = rows.dropna(subset=metric)
    if len(completed) < 2 or not names:
        return []
    canvas = Canvas(figsize=(max(5.2, 2.0 * len(names)), 3.0), layout="constrained")
    for plot, name in zip(canvas.subplots(1, len(names), sharey=True, squeeze=False)[0], names):
        values = list(completed[name])
        if not all(isinstance(value, int | float) for value in values):
            values = list(map(str, values))
        elif min(values) > 0 and max(values) / min(values) > LOGARITHMIC:
            plot.set_xscale("log")
        plot.scatter(values, list(completed[metric]), c=[COLOURS[1], *[COLOURS[0]] * (len(values) - 1)], s=14)
        plot.set_xlabel(name)
        plot.tick_params(axis="x", labelrotation=45)
    canvas.supylabel(metric)
    caption = f"{search['name']}: {metric} of the completed trials against each setting; the best one is orange."
    alt = f"{len(completed)} points against {', '.join(names)}."
    return [drawn(f"search-{search['name']}-settings", canvas, caption, alt)]


def value_table(values: Mapping[str, Mapping]) -> Table:
    """A row for each value."""
    rows = [
        {"value": name, "model": each["model"], "final score": each["settings"]["score"]}
        | {label: each["dev"].get(label.replace(" the ", " ").replace(" ", "_")) for label in MEASURED}
        for name, each in values.items()
    ]
    return table("values", "Values of prefixes", rows, [OF_VALUES], places=dict.fromkeys(MEASURED, 3))
