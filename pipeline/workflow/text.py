"""What the terminal's commands read and print: files that may not be there, and tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer.files import read_json


def content(path: Path) -> Any:
    """The JSON of a file; None if there is none."""
    return read_json(path) if path.is_file() else None


def in_columns(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The rows as lines of aligned columns; if they hold `numbers`, all columns but the first align to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rest = str.rjust if numbers else str.ljust
    return ["  ".join([row[0].ljust(widths[0]), *map(rest, row[1:], widths[1:])]).rstrip() for row in rows]
