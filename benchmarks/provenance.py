"""The JSON file of a benchmark: its tables, and how they were made. Imports no module of the pipeline."""

import re
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from transformer.files import write_json


class Table(TypedDict):
    """All cells are strings. A value that was not measured is a dash."""

    columns: list[str]
    rows: list[list[str]]


def shown(table: Table) -> str:
    """The table in Markdown. Columns of numbers align to the right."""
    columns, rows = table["columns"], table["rows"]
    numbers = [all(re.match(r"[-+]?[\d.,]+|–", row[place]) for row in rows) for place in range(len(columns))]
    lines = [columns, ["---:" if right else "---" for right in numbers], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_record(
    path: Path,
    command: str,
    hardware: str,
    versions: dict[str, str],
    commit: str | None,
    tables: list[Table],
    **more: Any,
) -> None:
    """Write the JSON file. `python -m tests.pages` reads it to write tables of the documentation."""
    made = {"command": command, "hardware": hardware, "versions": versions, "commit": commit}
    write_json(path, {**made, "date": date.today().isoformat(), "tables": tables, **more})
