"""What one stage needs of a JSON file that another wrote: entries of a type, or one line that says what is wrong.

A file may hold more than is needed of it.
"""

from collections.abc import Mapping
from typing import Any

from transformer.config.reading import UserError, convert, describe, optional


def within(value: Any, *keys: str) -> Any:
    """What stands under these keys in mappings in mappings, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def entry(value: Any, key: str, kind: Any, where: str) -> Any:
    """What stands under `key` (`settings.model`, where it lies deeper) in what a file holds, as the annotation `kind`.

    `where` names the file. Raises UserError for a wrong type, or for nothing where `kind` is not optional.
    """
    found = within(value, *key.split("."))
    if found is None and not optional(kind):
        raise UserError(f"{where}: {key} is missing; {describe(kind)} is expected")
    return convert(kind, found, f"{where}: {key}")


def count(value: Any, key: str, where: str) -> int:
    """`entry` of a whole number above 0."""
    number = entry(value, key, int, where)
    if number <= 0:
        raise UserError(f"{where}: {key}: {number} is not possible; a whole number above 0 is expected")
    return number


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """`value` if it is a mapping, whatever it holds."""
    if not isinstance(value, Mapping):
        raise UserError(f"{where}: a mapping is expected, not {value!r}")
    return value
