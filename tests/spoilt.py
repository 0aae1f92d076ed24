"""Copies of the content of a JSON file with another value at one place, for tests of what damaged files cause."""

import copy

MISSING = "nothing at all"


def places(value, *before):
    """Yield the path of each value in the content of a JSON file, as keys and indices from the outside in."""
    yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, *before, key)


def spoilt(value, place, new):
    """A copy of `value` with `new` at a place in it, or without that entry if `new` is MISSING."""
    if not place:
        return new
    value = copy.copy(value)
    if len(place) == 1 and new == MISSING:
        del value[place[0]]
    else:
        value[place[0]] = spoilt(value[place[0]], place[1:], new)
    return value
