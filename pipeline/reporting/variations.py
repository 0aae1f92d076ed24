"""How the settings of runs differ, as cells of Table 3 and of the tables of studies."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.published import BASE
from pipeline.reporting.tables import Column, Table

# The columns of settings in Table 3, by label. `positions`, which has no column in the paper, identifies row E.
SETTINGS = {"N": "N", "d_model": "d_model", "d_ff": "d_ff", "h": "h", "d_k": "d_k", "d_v": "d_v"}
SETTINGS |= {"P_drop": "dropout", "eps_ls": "label_smoothing", "positions": "positions", "steps": "steps"}
OTHERS = "other settings"  # the column of the settings that have no column of their own
GROUPS = ("base", "A", "B", "C", "D", "E", "big", "other")


def stated(run: Evidence) -> dict[str, Any]:
    """Return a run's values of the settings in BASE."""
    return {key: run.settings.get(key) for key in BASE}


def group(settings: Mapping[str, Any]) -> str:
    """Return the group of Table 3 to which the differences from BASE belong, or `other`."""
    changed = {key for key in settings if settings[key] != BASE[key]}
    if not changed:
        return "base"
    if changed <= {"h", "d_k", "d_v"}:
        return "A" if "h" in changed else "B"
    if changed <= {"N", "d_model", "d_ff", "h", "d_k", "d_v"}:
        return "C"
    if changed <= {"dropout", "label_smoothing", "attention_dropout", "relu_dropout"}:
        return "D"
    return "E" if changed == {"positions"} else "other"


def columns() -> list[Column]:
    return [*(Column(label, "given") for label in SETTINGS), Column(OTHERS)]


def cells(settings: Mapping[str, Any], is_base: bool) -> list[str]:
    """The values under `columns`; empty where they are those of BASE, unless this is its own row."""
    hidden = {} if is_base else BASE
    shown = ["" if settings[key] in (None, hidden.get(key)) else str(settings[key]) for key in SETTINGS.values()]
    differences = {key: value for key, value in settings.items() if value != BASE[key]}
    return [*shown, described({key: differences[key] for key in differences if key not in SETTINGS.values()})]


def merged(table: Table) -> Table:
    """Merge the settings into the first column, so that a narrow screen shows them beside the first result."""
    own = {*SETTINGS, OTHERS}
    places = [place for place, column in enumerate(table.columns) if column.label in own]
    rows = []
    for row in table.rows:
        changes = [(table.columns[place].label, row[place]) for place in places if row[place]]
        text = ", ".join(value if label == OTHERS else f"{label} {value}" for label, value in changes)
        rows.append([f"{row[0]}: {text}" if text and row[0] != "base" else row[0], *row[1:]])
    return dataclasses.replace(table, rows=rows, grouped=False).without(*own)


def described(differences: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in differences.items())
