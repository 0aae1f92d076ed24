"""One assertion for all refusals."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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
