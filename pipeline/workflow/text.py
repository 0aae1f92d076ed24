"""Helpers of the terminal commands: they read JSON files that may be missing, and format tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer.files import read_json


def content(path: Path) -> Any:
    """Return the content of a JSON file, or None if the file does not exist."""
    return read_json(path) if path.is_file() else None


def in_columns(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """Return the rows as lines of aligned columns. If `numbers`, all columns except the first align to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rest = str.rjust if numbers else str.ljust
    return ["  ".join([row[0].ljust(widths[0]), *map(rest, row[1:], widths[1:])]).rstrip() for row in rows]
