"""Segments, one a line, out of formats that are more than lines: the .sgm of WMT's test sets, the hub's parquet."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.archives import Unpacked, refuse_bomb
from transformer.config.reading import UserError

LARGEST_SGM = 1 << 28  # bytes; a test set has about one million
BATCH = 10_000  # pairs in memory at once


def text(stream: Unpacked, name: str) -> Iterator[bytes]:
    """The text of a file or member called `name`: the segments of an .sgm, anything else byte for byte."""
    if re.search(r"\.sgm(\.gz|\.xz)?$", name):
        return sgm_segments(stream)
    return iter(stream)


def sgm_segments(stream: Unpacked) -> Iterator[bytes]:
    """The text of each <seg> as a line, in order, entities replaced by what they stand for."""
    content = bytearray()
    for chunk in stream:
        content += chunk
        if len(content) > LARGEST_SGM:
            raise UserError(f"{stream.label} is refused: no .sgm is longer than {LARGEST_SGM:,} bytes")
    try:
        document = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{stream.label} is not UTF-8: {error}") from None
    segments = re.findall(r"<seg\b[^>]*>(.*?)</seg>", document, re.DOTALL | re.IGNORECASE)
    opened = len(re.findall(r"<seg\b", document, re.IGNORECASE))
    if len(segments) != opened or not opened:
        raise UserError(f"{stream.label}: {opened} <seg> open and {len(segments)} close; is it an .sgm, and whole?")
    for segment in segments:
        yield line(html.unescape(segment).encode())


def parquet_pairs(path: Path, languages: tuple[str, str]) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a data set of the Hugging Face hub: column `translation`, a struct with a text per language.

    Bytes that are no UTF-8 are passed on, as those of a text file are: `normalise` refuses or replaces them.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    packed, size = path.stat().st_size, 0
    try:
        file = pyarrow.parquet.ParquetFile(path)
        require_columns(file, path, languages)
        for batch in file.iter_batches(BATCH, columns=["translation"]):
            texts = (pyarrow.compute.struct_field(batch.column("translation"), language) for language in languages)
            sides = [side.cast(pyarrow.large_binary()).to_pylist() for side in texts]
            for i, pair in enumerate(zip(*sides, strict=True)):
                if None in pair:
                    raise UserError(f"{path}: a pair is null ({i + 1} of its batch); both sides are to be text")
                source, target = map(line, pair)
                size += len(source) + len(target)
                yield source, target
            refuse_bomb(size, packed, str(path))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # the last in a column's name
        raise UserError(f"{path} is damaged or no parquet file: {' '.join(str(error).split())}") from None


def require_columns(file, path: Path, languages: tuple[str, str]) -> None:
    import pyarrow

    columns = file.schema_arrow
    kind = columns.field("translation").type if columns.names.count("translation") == 1 else None
    names = [kind.field(i).name for i in range(kind.num_fields)] if kind and pyarrow.types.is_struct(kind) else []
    missing = [language for language in languages if language not in names]
    if missing:
        raise UserError(
            f"{path}: column translation has no {' and no '.join(missing)}; "
            f"it has {', '.join(names) or 'no languages'}, the columns are {', '.join(columns.names)}"
        )
    for language in languages:
        held = kind.field(language).type
        if not pyarrow.types.is_string(held) and not pyarrow.types.is_large_string(held):
            raise UserError(f"{path}: column translation.{language} holds {held}; string is expected")


def line(segment: bytes) -> bytes:
    """One segment as one line, trimmed; a line feed inside becomes a space, other separators are text."""
    return segment.strip(b" \t\r\n").replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"
