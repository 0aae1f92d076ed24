"""The section of the report about searches for settings: a table of each file in results/searches."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.reporting.tables import Table, table

FOLDER, BLOCKS, TITLE = "searches", ("searches",), "Searches for settings"
METRICS = {"dev_loss": "dev loss", "dev_bleu": "dev BLEU"}


def tables(searches: Mapping[str, Mapping]) -> list[Table]:
    return [*map(search_table, searches.values())]


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
    best = ", ".join(f"{key}: {value}" for key, value in search["best"]["run"].items())
    shares = ", ".join(f"{key} {share:.2f}" for key, share in search["importance"].items())
    notes = [
        f"{len(rows)} trials of at most {search['search']['steps']:,} steps by TPE, one seed each; {pruned} were pruned.",
        f"The best as a line of params.yaml: {name}-best: {{{best}}}",
        *([f"Importance by PED-ANOVA (the values add up to 1): {shares}."] if shares else []),
    ]
    places = dict.fromkeys(METRICS.values(), 4)
    return table(f"search-{name}", f"Search {name}", rows, notes, places=places, given=list(settings))
