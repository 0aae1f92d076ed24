"""Evaluation sets: the text that models translate and are scored on, one folder per set.

data/sets/NAME holds raw.LANGUAGE (the text, unchanged but for damaged UTF-8; its target side has the references),
normalised.LANGUAGE (the text to translate) and set.json. The raw and normalised files match line by line. normalise
writes the sets of a corpus, CORPUS-dev and CORPUS-test. fetch_set writes the sets under `sets` in params.yaml. The test
set of a corpus with `test_filtered` (WMT14) also holds filtered.LANGUAGE, a subset of its segments.
"""

from dataclasses import dataclass
from pathlib import Path

from pipeline.settings.score_files import entry
from transformer.config.reading import UserError
from transformer.files import read_json

DESCRIPTION = "set.json"


@dataclass(frozen=True)
class EvaluationSet:
    """An evaluation set, stored in `folder`. A side is "source" or "target"."""

    folder: Path
    corpus: str
    languages: tuple[str, str]

    @classmethod
    def open(cls, folder: Path) -> "EvaluationSet":
        """Return the set in `folder`. Raises UserError if the folder holds no set."""
        path = folder / DESCRIPTION
        try:
            description = read_json(path)
        except FileNotFoundError:
            raise UserError(f"{path} is missing; it is made by normalise or fetch_set") from None
        languages = entry(description, "languages", tuple[str, str], str(path))
        return cls(folder, entry(description, "corpus", str, str(path)), languages)

    def path(self, form: str, side: str) -> Path:
        """Return the file of a side. `form` is "raw", "normalised" or "filtered"."""
        return self.folder / f"{form}.{self.languages[side == 'target']}"

    def lines(self, form: str) -> tuple[list[str], list[str]]:
        """Return the lines of both sides. Raises UserError unless they have the same number of lines."""
        return read_aligned(self.path(form, "source"), self.path(form, "target"))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file. Only "\\n" ends a line; any other line separator is part of the line."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; UTF-8 text is expected") from None
    return lines if lines[-1] else lines[:-1]


def read_aligned(first: Path, second: Path) -> tuple[list[str], list[str]]:
    """Return the lines of two files. Raises UserError unless they have the same number of lines."""
    lines, others = read_lines(first), read_lines(second)
    require_aligned(first, len(lines), second, len(others))
    return lines, others


def require_aligned(first: Path | str, lines: int, second: Path | str, others: int, *documents: tuple[bytes, ...]) -> None:
    """Raise UserError unless both files have the same number of lines and, if both have documents, the same in order.

    `documents` are the names of the documents and of their segments, b"" where a segment has none, as in `Unpacked`.
    """
    if lines != others:
        raise UserError(f"{first} has {lines:,} lines and {second} has {others:,}; they must match line by line")
    if all(documents) and (len({*map(len, documents)}) > 1 or any(a != b and a and b for a, b in zip(*documents))):
        raise UserError(f"{first} and {second} have different documents or segments, or the same in another order")
