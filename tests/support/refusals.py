"""Assertions for all refusals."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pipeline.settings.check import check
from transformer.config.reading import UserError


@contextmanager
def refused(*parts: object) -> Iterator[None]:
    """Assert that the block ends with a UserError of one line of text that has all of `parts`.

    They are what a user needs: the place, the value, the file, and the remedy.
    """
    with pytest.raises(UserError) as raised:
        yield
    said = str(raised.value)
    assert "\n" not in said and len(said) < 700, said
    assert [part for part in map(str, parts) if part not in said] == [], said


def refusals(params: Mapping[str, Any]) -> list[str]:
    """Return the lines that the check says of params.yaml. Each names the file and is short."""
    with pytest.raises(UserError) as raised:
        check(params)
    lines = str(raised.value).split("\n")
    assert lines == list(raised.value.args)
    assert all(line.startswith(("params.yaml: ", "studies.yaml: ")) and len(line) < 700 for line in lines)
    return lines


def spoilt(params: Mapping[str, Any], place: str | Sequence, value: Any) -> dict[str, Any]:
    """Return a copy of `params` with another value at `place`, which is a path or the keys with dots."""
    *path, key = place.split(".") if isinstance(place, str) else place
    changed: Any = copy.deepcopy(params)
    inner = changed
    for step in path:
        inner = inner[step]
    inner[key] = value
    return changed
