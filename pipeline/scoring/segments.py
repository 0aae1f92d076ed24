"""Reads the segments of translations and references, one per line."""

from pathlib import Path

from pipeline.corpora.sets import require_aligned
from transformer.config.reading import UserError


def lines(path: Path) -> list[str]:
    """The segments of a text file. Only "\\n" ends a segment; any other line separator is part of it."""
    try:
        segments = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; the file must be UTF-8 text") from None
    return segments if segments[-1] else segments[:-1]


def aligned(translation: Path, reference: Path) -> tuple[list[str], list[str]]:
    """The segments of both files, which must have the same number of lines."""
    hypotheses, references = lines(translation), lines(reference)
    require_aligned(translation, len(hypotheses), reference, len(references))
    if not references:
        raise UserError(f"{reference} is empty; there is nothing to score {translation} against")
    return hypotheses, references
