"""The JSON file of a benchmark: its tables, and how they were made. Imports no module of the pipeline.

    python -m benchmarks.provenance

writes benchmarks/results/README.md, which has the tables of all files there.
"""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from transformer.files import atomic, write_json


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
    """Write the JSON file."""
    made = {"command": command, "hardware": hardware, "versions": versions, "commit": commit}
    write_json(path, {**made, "date": date.today().isoformat(), "tables": tables, **more})


def write_page(folder: Path) -> None:
    """Write README.md with the tables of all JSON files of a folder, and below them how they were made."""
    parts = [
        "# Benchmarks\n\nWritten by `python -m benchmarks.record` from the files beside this page. Ours and its peers take "
        "turns in one run, so compare ratios, not times. Real tokens leave out padding. A dash was not measured.\n"
    ]
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        made = f"`{record['command']}`; {record['hardware']}; {versions}; commit {record['commit']}; {record['date']}.\n"
        parts += [f"## {path.stem}\n", *(shown(table) for table in record["tables"]), made]
    with atomic(folder / "README.md", "w") as file:
        file.write("\n".join(parts))


if __name__ == "__main__":
    write_page(Path(__file__).parent / "results")
