"""Reads tables with tabs by their columns, as corpora of mined sentences are published: with scores and with numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.running.progress import say
from pipeline.settings.download import Part
from pipeline.text.forms import line, table_rows
from pipeline.text.plain import require_form
from transformer.config.reading import UserError, similar


def chosen_pairs(path: Path, part: Part, noted: Counter[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of the columns that the part states. If it names one, the first row has the names.

    Rows with a score below `least` are left out; their number is said on stderr, and added to `noted`.
    """
    wanted = [*(part.columns or ()), *([] if part.score is None else [part.score])]
    require_form(path, "tsv")
    places, below = list[int](), 0
    for number, cells in table_rows(path, part.encodings[0]):
        if not places:
            named = [cell.strip().decode(errors="replace") for cell in cells]
            places = [place(column, named, path) for column in wanted]
            if any(isinstance(column, str) for column in wanted):
                continue
        where = f"{path}: row {number:,}, column {part.score}"
        if part.least is not None and any(cells) and score(cells[places[2]], where) < part.least:
            below, noted["below"] = below + 1, noted["below"] + 1
            continue
        yield line(cells[places[0]]), line(cells[places[1]])
    if below:
        say(f"{path}: {below:,} rows with a score below {part.least:g} are left out")


def place(column: int | str, named: Sequence[str], path: Path) -> int:
    """Return the place, from 0, of a column among those of the first row."""
    if isinstance(column, int):
        if column > len(named):
            raise UserError(f"{path}: there is no column {column}; its first row has {len(named)}")
        return column - 1
    if named.count(column) != 1:
        hint = "the number of one is expected" if column in named else similar(column, named)[:200]
        raise UserError(f"{path}: {named.count(column)} columns are named {column!r}; {hint}")
    return named.index(column)


def score(cell: bytes, where: str) -> float:
    with suppress(ValueError):
        if not math.isnan(found := float(cell)):
            return found
    raise UserError(f"{where}: {cell[:40].decode(errors='replace')!r} is not a number; a score is expected")
