"""Reads the .sgm files of WMT's test sets and the parquet files of the Hugging Face hub. A segment becomes one line."""

import codecs
import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.corpora.archives import Unpacked, refuse_bomb
from transformer.config.reading import UserError

LARGEST_SGM = 1 << 28  # bytes; the .sgm file of a test set has about one million
BATCH = 10_000  # pairs in memory at a time


def text(stream: Unpacked, name: str) -> Iterator[bytes]:
    """Return the text of a file or member `name`: the segments of an .sgm file, or the bytes of other files.

    A UTF-8 byte order mark at the start of a file is left out, because it would be part of the first sentence.
    """
    if re.search(r"\.sgm(\.gz|\.xz)?$", name):
        return sgm_segments(stream)
    return without_mark(stream)


def without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes without a byte order mark at their start. Chunks may divide the mark."""
    start: bytes | None = b""
    for chunk in chunks:
        if start is not None:
            start += chunk
            if len(start) < len(codecs.BOM_UTF8):
                continue
            chunk, start = start.removeprefix(codecs.BOM_UTF8), None
        yield chunk
    if start:
        yield start


def sgm_segments(stream: Unpacked) -> Iterator[bytes]:
    """Yield the text of each <seg> as a line, in order, with entities replaced by their characters."""
    content = bytearray()
    for chunk in stream:
        content += chunk
        if len(content) > LARGEST_SGM:
            raise UserError(f"{stream.label} is refused: an .sgm of more than {LARGEST_SGM:,} bytes is not plausible")
    try:
        document = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{stream.label} is not UTF-8: {error}") from None
    segments = re.findall(r"<seg\b[^>]*>(.*?)</seg>", document, re.DOTALL | re.IGNORECASE)
    opened = len(re.findall(r"<seg\b", document, re.IGNORECASE))
    if len(segments) != opened or not opened:
        raise UserError(
            f"{stream.label}: {opened} <seg> are opened and {len(segments)} closed; a complete .sgm is expected"
        )
    for segment in segments:
        yield line(html.unescape(segment).encode())


def parquet_pairs(path: Path, languages: tuple[str, str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a data set of the Hugging Face hub.

    The pairs are in the column `translation`, a struct with a text per language. Bytes that are not UTF-8 are passed on, as
    from a text file; `normalise` refuses or replaces them.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    packed, size, first = path.stat().st_size, 0, 1
    try:
        file = pyarrow.parquet.ParquetFile(path)
        require_columns(file, path, languages)
        for batch in file.iter_batches(BATCH, columns=["translation"]):
            texts = (pyarrow.compute.struct_field(batch.column("translation"), language) for language in languages)
            sides = [side.cast(pyarrow.large_binary()).to_pylist() for side in texts]
            for row, pair in enumerate(zip(*sides, strict=True), first):
                if None in pair:
                    raise UserError(f"{path}: a side of row {row:,} is null; text on both sides is expected")
                source, target = map(line, pair)
                size += len(source) + len(target)
                yield source, target
            first += len(batch)
            refuse_bomb(size, packed, str(path))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # UnicodeDecodeError: in a column's name
        raise UserError(f"{path} is damaged or not a parquet file: {' '.join(str(error).split())}") from None


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
    assert kind is not None  # otherwise all languages would be missing
    for language in languages:
        held = kind.field(language).type
        if not pyarrow.types.is_string(held) and not pyarrow.types.is_large_string(held):
            raise UserError(f"{path}: column translation.{language} holds {held}; string is expected")


def line(segment: bytes) -> bytes:
    """Return a segment as one trimmed line. A line feed in it becomes a space; other separators are kept as text."""
    return segment.strip(b" \t\r\n").replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"
