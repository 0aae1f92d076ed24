"""Searches for settings and values of prefixes: tables of their files in results/."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.extras.search.settings import line
from pipeline.reporting.tables import Table, table

METRICS = {"dev_loss": "dev loss", "dev_bleu": "dev BLEU"}
OF_VALUES = (
    "A value is one line of `values` or `reverse_values` in params.yaml: a head on the decoder's output that predicts the "
    "final score of a translation from its prefixes. It is measured on all prefixes of samples of the dev set. The "
    "correlations with the final score are Pearson's: of the value, and of the length of the prefix. The calibration error "
    "is the mean distance between mean value and mean score in ten intervals of the value, weighted by their prefixes."
)
MEASURED = ("prefixes", "correlation", "correlation of the length", "calibration error")  # of a value, on dev


def search_table(search: Mapping[str, Any]) -> Table:
    """A row for each trial, with the settings that differ: the completed trials, best first, then the others."""
    metric, name, found = search["search"]["metric"], search["name"], pd.DataFrame(search["trials"], dtype=object)
    settings = pd.DataFrame(list(found["settings"]), dtype=object).reindex(columns=list(search["best"]["run"]))
    settings = settings.loc[:, settings.map(repr).nunique() > 1]
    losses = found["dev_losses"].map(lambda losses: losses[-1][1] if losses else None)
    results = {"steps": found["steps"], "dev loss": losses, METRICS[metric]: found["value"]}
    rows = found[["trial"]].join(settings).assign(**results, state=found["state"], why=found["why"])
    rows = rows.sort_values(METRICS[metric], ascending=metric == "dev_loss", kind="stable")
    pruned = (rows["state"] == "pruned").sum()
    shares = ", ".join(f"{key} {share:.2f}" for key, share in search["importance"].items())
    notes = [
        f"{len(rows)} trials of at most {search['search']['steps']:,} steps by TPE, one seed each; {pruned} were pruned.",
        f"The best as a line of params.yaml: {line(f'{name}-best', search['best']['run'])}",
        *([f"Importance by PED-ANOVA (the values add up to 1): {shares}."] if shares else []),
    ]
    places = dict.fromkeys(METRICS.values(), 4)
    return table(f"search-{name}", f"Search {name}", rows, notes, places=places, given=list(settings))


def value_table(values: Mapping[str, Mapping]) -> Table:
    """A row for each value."""
    rows = [
        {"value": name, "model": each["model"], "final score": each["settings"]["score"]}
        | {label: each["dev"].get(label.replace(" the ", " ").replace(" ", "_")) for label in MEASURED}
        for name, each in values.items()
    ]
    return table("values", "Values of prefixes", rows, [OF_VALUES], places=dict.fromkeys(MEASURED, 3))
