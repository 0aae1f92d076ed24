"""Reads typed entries of a JSON file that another stage wrote. Raises a one-line UserError for a wrong entry.

Entries that a stage does not need are ignored.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from transformer.config.reading import UserError, convert, describe, optional
from transformer.files import read_json

DECIMALS = 4  # of the scores in score files


def rounded(value: float | None, places: int = 2, form: str = "") -> str:
    """Return a number as every command and table shows it, rounded half up from DECIMALS decimals.

    A score of a file and the same score before it was written to the file are therefore shown alike. `form` is a sign or a
    comma of Python's format. A value that is not known is a hyphen.
    """
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(f"{value:.{max(DECIMALS, places)}f}").quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{exact + 0:{form}}"  # 0 has no sign


def content(path: Path) -> Any:
    """Return the content of a JSON file, or None if the file does not exist."""
    return read_json(path) if path.is_file() else None


def within(value: Any, *keys: str) -> Any:
    """Return the value under these keys in nested mappings, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def entry(value: Any, key: str, kind: Any, where: str) -> Any:
    """Return the value under `key` in the content of a file, converted to the type `kind`.

    A dot separates the parts of a nested key, as in `settings.model`. `where` names the file in error messages.
    Raises UserError for a wrong type, and for a missing value unless `kind` is optional.
    """
    found = within(value, *key.split("."))
    if found is None and not optional(kind):
        raise UserError(f"{where}: {key} is missing; {describe(kind)} is expected")
    return convert(kind, found, f"{where}: {key}")
