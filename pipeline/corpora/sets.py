"""The sets of a corpus: one file per language, in which line n is the translation of line n of the other file."""

import itertools
from pathlib import Path

from transformer.config.reading import UserError


def find_sets(folder: Path, languages: tuple[str, str], required: tuple[str, ...]) -> dict[str, list[Path]]:
    """Return both files of each set in `folder`, the `required` sets first.

    Raises UserError if a required set or one side of a set is missing.
    """
    files = [path.name for path in folder.glob("*") if not path.name.startswith(".")] if folder.is_dir() else []
    ends = {f".{language}" for language in languages}
    found = {file.removesuffix(end) for file, end in itertools.product(files, ends) if file.endswith(end)}
    names = [*required, *sorted(found - set(required))]
    for name, language in itertools.product(names, languages):
        if f"{name}.{language}" not in files:
            raise UserError(
                f"{folder / name}.{language} is missing; every set needs a file for {' and for '.join(languages)}"
            )
    return {name: [folder / f"{name}.{language}" for language in languages] for name in names}


def require_aligned(first: Path | str, lines: int, second: Path | str, others: int) -> None:
    """Raise UserError unless both files have the same number of lines."""
    if lines != others:
        raise UserError(f"{first} has {lines:,} lines and {second} has {others:,}; they must match line by line")
