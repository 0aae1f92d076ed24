"""The JSON file of a benchmark: its tables, and how they were made. Imports no module of the pipeline."""

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from transformer.files import write_json

ROOT = Path(__file__).parent.parent
MEASURED = ("transformer/**/*.py", "benchmarks/gpu/*.py", "benchmarks/profile.py", "benchmarks/workload.py")


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


def code_digest() -> str:
    """The sha256 of the code of benchmarks.gpu and of the code that it measures."""
    total = hashlib.sha256()
    for path in sorted(path for pattern in MEASURED for path in ROOT.glob(pattern)):
        total.update(f"{path.relative_to(ROOT).as_posix()}\n".encode() + path.read_bytes())
    return total.hexdigest()
