"""Reads the forms in which parallel text is published, as UTF-8 with one segment per line.

`text` reads one side: plain text, or an .sgm file of WMT. `PAIRS` reads both sides of one file: TSV, JSONL, TMX, parquet.
"""

import html
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from pipeline.corpora.archives import Unpacked, refuse_bomb, unpacked
from pipeline.corpora.encodings import head, utf8
from transformer.config.reading import UserError

Languages = tuple[str, str]
Pair = tuple[bytes, bytes]
LARGEST_SGM = 1 << 28  # bytes; the .sgm file of a test set has about one million
LARGEST_LINE = 1 << 24  # bytes of a line of a TSV or JSONL file, and of a unit of a TMX file
NATIVE = ("bpt", "ept", "it", "ph", "ut")  # elements of a segment in TMX that hold codes of a program, no text
BATCH = 10_000  # pairs of a parquet file in memory at a time
SGM = rb"\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE[^>]*>\s*)?<(srcset|refset|tstset|mteval|doc|seg)\b"
# What is no plain text, by its first bytes: a regular expression, and what to say.
OTHERS = {
    rb"PK\x03\x04": "a zip file; {{zip: {0}}} names one with a member for each language",
    rb"PAR1": "a parquet file; {{parquet: {0}}} reads it",
    rb"\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE[^>]*>\s*)?<tmx\b": "a TMX file; {{tmx: {0}}} reads it",
    rb"\s*(<!DOCTYPE html|<html|<head)": "an HTML page, perhaps an error page of the site; text is expected",
    rb"\s*<(\?xml|!DOCTYPE)": "an XML file; text without mark-up, one segment per line, is expected",
    rb'\s*\[?\s*\{\s*"': "a JSON file; {{jsonl: {0}}} reads one object per line",
    rb"\s*(WEBVTT|1\r?\n\d\d:\d\d:\d\d,\d{3} -->)": "subtitles; text without times, one segment per line, is expected",
    rb"(7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|\x1f\x9d|LZIP)": "compressed in a way that is not read here; "
    "plain text, .gz, .xz, .bz2 or .zip is expected",
    rb"(%PDF|\xd0\xcf\x11\xe0|\x7fELF|\x89PNG)": "not text; plain text, one segment per line, is expected",
    rb"([^\t\n]*\t[^\n]*\n){2,}[^\n]*\Z": "a table with tabs; {{tsv: {0}}} reads both sides",
}


def text(stream: Unpacked, encoding: str | None = None) -> Iterator[bytes]:
    """Yield the text of one side: the segments of an .sgm file, or a plain file without its byte order mark.

    Raises UserError for anything that is no plain text, so that mark-up is never taken for sentences.
    """
    if re.match(SGM, stream.head, re.IGNORECASE):
        yield from sgm_segments(stream, encoding)
        return
    starts = (stream.head, head(stream, encoding))
    for pattern, said in OTHERS.items():
        if any(re.match(pattern, start, re.IGNORECASE) for start in starts):
            raise UserError(f"{stream.label} is {said.format(stream.label)}")
    yield from utf8(stream, encoding)


def sgm_segments(stream: Unpacked, encoding: str | None = None) -> Iterator[bytes]:
    """Yield the text of each <seg> as a line, in order, with entities replaced by their characters."""
    content = bytearray()
    for chunk in utf8(stream, encoding, damaged=False):
        content += chunk
        if len(content) > LARGEST_SGM:
            raise UserError(f"{stream.label} is refused: an .sgm of more than {LARGEST_SGM:,} bytes is not plausible")
    document = content.decode("utf-8")
    segments = re.findall(r"<seg\b[^>]*>(.*?)</seg>", document, re.DOTALL | re.IGNORECASE)
    opened = len(re.findall(r"<seg\b", document, re.IGNORECASE))
    if len(segments) != opened or not opened:
        raise UserError(
            f"{stream.label}: {opened} <seg> are opened and {len(segments)} closed; a complete .sgm is expected"
        )
    for segment in segments:
        yield line(html.unescape(segment).encode())


def rows(path: Path, encoding: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield the non-empty lines of a TSV or JSONL file, each with a label for messages."""
    with unpacked(path) as stream:
        rest, number = b"", 0
        for chunk in itertools.chain(utf8(stream, encoding), [b"\n"]):
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > LARGEST_LINE:
                raise UserError(f"{path}: line {number + 1} is refused: it has more than {LARGEST_LINE:,} bytes")
            for row in whole:
                number += 1
                if row.strip():
                    yield f"{path}: line {number}", row.removesuffix(b"\r")


def tsv_pairs(path: Path, languages: Languages, encoding: str | None) -> Iterator[Pair]:
    """Yield the pairs of a table with tabs: of two columns, or of the columns that its first line names by language."""
    columns, width = (0, 1), 0
    for label, row in rows(path, encoding):
        cells = row.split(b"\t")
        if not width:
            width = len(cells)
            names = [cell.strip().decode(errors="replace").lower() for cell in cells]
            if found := named(names, languages):
                columns = (names.index(found[0]), names.index(found[1]))
                continue
            if width != 2:
                raise UserError(
                    f"{label} has {width} columns; two are expected, or a first line that names the columns "
                    f"{' and '.join(languages)}"
                )
        if len(cells) != width:
            raise UserError(f"{label} has {len(cells)} columns, and the first line has {width}")
        yield line(cells[columns[0]]), line(cells[columns[1]])


def jsonl_pairs(path: Path, languages: Languages, encoding: str | None) -> Iterator[Pair]:
    """Yield the pairs of a file with one JSON object per line, whose keys are languages, also within `translation`."""
    for label, row in rows(path, encoding):
        try:
            value = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{label} is not a JSON object: {str(error)[:100]}") from None
        held: Any = value.get("translation", value) if isinstance(value, dict) else None
        keys = named(held, languages) if isinstance(held, dict) else None
        if keys is None or not all(isinstance(held[key], str) for key in keys):
            shown = ", ".join(map(str, list(held)[:9])) if isinstance(held, dict) else str(held)[:40]
            raise UserError(f"{label}: text for the keys {' and '.join(languages)} is expected; it has {shown or 'none'}")
        try:
            source, target = (held[key].encode() for key in keys)
        except UnicodeEncodeError:
            raise UserError(f"{label} holds half of a surrogate pair, which is not valid Unicode") from None
        yield line(source), line(target)


def named(names: Iterable[str], languages: Languages) -> Languages | None:
    """Return how `names` call the two sides: by language, or source and target. None if they do neither."""
    names = list(names)
    return next((pair for pair in (languages, ("source", "target")) if all(names.count(name) == 1 for name in pair)), None)


def tmx_pairs(path: Path, languages: Languages, encoding: str | None) -> Iterator[Pair]:
    """Yield the pairs of the units that have a segment in both languages. `en` stands for en-US, too."""
    parser: Any = XMLPullParser(("start", "end"))
    opened: list[Element] = []
    seen: set[str] = set()
    since = 0  # bytes since the end of a unit
    try:
        with unpacked(path) as stream:
            for chunk in stream:
                parser.feed(chunk)
                since += len(chunk)
                for event, element in parser.read_events():
                    if event == "start":
                        opened.append(element)
                        continue
                    opened.pop()
                    if element.tag == "tu":
                        unit = {language_of(variant): segment(variant) for variant in element.iter("tuv")}
                        seen |= unit.keys()
                        if all(unit.get(language) for language in languages):
                            yield unit[languages[0]], unit[languages[1]]
                        opened[-1].clear() if opened else None  # the units that were read
                        since = 0
                if since > LARGEST_LINE:
                    raise UserError(f"{path} is refused: a unit of more than {LARGEST_LINE:,} bytes is not plausible")
            parser.close()
    except (ParseError, LookupError) as error:
        raise UserError(f"{path} is damaged or not a TMX file: {error}") from None
    if not {*languages} <= seen:
        shown = ", ".join(sorted(seen)) or "none"
        raise UserError(f"{path}: units in {' and '.join(languages)} are expected; its languages are {shown}")


def language_of(variant: Element) -> str:
    stated = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
    return re.split("[-_]", stated.lower())[0]


def segment(variant: Element) -> bytes:
    """Return the text of a <seg> without the native codes in it, as a line. Without a <seg>, the line is empty."""

    def plain(element: Element) -> str:
        inner = (("" if each.tag in NATIVE else plain(each)) + (each.tail or "") for each in element)
        return (element.text or "") + "".join(inner)

    found = variant.find("seg")
    return line(b"" if found is None else plain(found).encode())


def parquet_pairs(path: Path, languages: Languages, encoding: str | None) -> Iterator[Pair]:
    """Yield the pairs of a table: of two columns of text, or of a column `translation` with a text per language.

    Bytes that are not UTF-8 are passed on, as from a text file; `normalise` refuses or replaces them.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    packed, size, first = path.stat().st_size, 0, 1
    try:
        file = pyarrow.parquet.ParquetFile(path)
        column, keys = require_columns(file.schema_arrow, path, languages)
        for batch in file.iter_batches(BATCH, columns=[column] if column else list(keys)):
            texts = (pyarrow.compute.struct_field(batch.column(column), key) if column else batch[key] for key in keys)
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


def require_columns(columns: Any, path: Path, languages: Languages) -> tuple[str | None, Languages]:
    """Return the column of a table that holds the pairs, or None for a column each; and the names of both sides in it."""
    import pyarrow

    nested = columns.names.count("translation") == 1 and pyarrow.types.is_struct(columns.field("translation").type)
    held = columns.field("translation").type if nested else columns
    names = [held.field(i).name for i in range(held.num_fields)] if nested else columns.names
    keys, column = named(names, languages), "translation" if nested else None
    if keys is None:
        raise UserError(
            f"{path}: {'column translation has' if column else 'there are'} no {' and no '.join(languages)}; "
            f"it has {', '.join(names) or 'no languages'}, the columns are {', '.join(columns.names)}"
        )
    for key in keys:
        kind = held.field(key).type
        if not pyarrow.types.is_string(kind) and not pyarrow.types.is_large_string(kind):
            raise UserError(f"{path}: column {f'{column}.' if column else ''}{key} holds {kind}; string is expected")
    return column, keys


def line(segment: bytes) -> bytes:
    """Return a segment as one trimmed line. A line feed in it becomes a space; other separators are kept as text."""
    return segment.strip(b" \t\r\n").replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"


PAIRS: dict[str, Callable[[Path, Languages, str | None], Iterator[Pair]]] = {
    "tsv": tsv_pairs,
    "jsonl": jsonl_pairs,
    "tmx": tmx_pairs,
    "parquet": parquet_pairs,
}
