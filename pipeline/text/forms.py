"""Reads the forms and encodings in which parallel text is published, as UTF-8 with one segment per line.

`text` reads one side: plain text, or an .sgm file of WMT. `pairs` reads both sides of one file: TSV, JSONL, TMX, parquet.
"""

import functools
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from pipeline.running.progress import say
from pipeline.settings.languages import fitting, script_of, tag
from pipeline.text.archives import HEAD, Unpacked, refuse_bomb, undamaged, unpacked
from pipeline.text.encodings import utf8
from pipeline.text.plain import SGM, notice, require_form, require_plain
from pipeline.text.sets import lines_of, refuse_long
from transformer.cleaning import resolve_references
from transformer.config.reading import UserError

Languages = tuple[str, str]
Row = tuple[int, Sequence[str], Sequence[Any]]  # its number, the names of its columns, and its texts
QUOTED = re.compile(rb'"(?:[^"]|"")*"')  # a cell of a table, as spreadsheets write those with special characters
VALUE = rb"\s*=\s*(?:\"([^\"]*)|'([^']*)|([^\s>]*))"  # of an attribute
DOCUMENT = rb"<doc\b[^>]*?\b%s" + VALUE
ORDER = rb"<(?:doc\b[^>]*?\bdocid|seg\b[^>]*?\bid)" + VALUE + rb"|<seg\b"
NATIVE = {"bpt", "ept", "it", "ph", "ut"}  # elements of a segment in TMX that hold codes of a program, no text


def text(stream: Unpacked, encoding: str | None = None) -> Iterator[bytes]:
    """Yield one side: the segments of an .sgm file, or a plain file without its byte order mark. UserError for mark-up."""
    require_plain(stream.head, stream.label)
    chunks = utf8(stream, encoding)
    first = next(chunks)
    require_plain(first[:HEAD], stream.label)
    whole = itertools.chain([first], chunks)
    yield from sgm_segments(whole, stream) if re.match(SGM, first, re.IGNORECASE) else whole


def sgm_segments(chunks: Iterable[bytes], stream: Unpacked) -> Iterator[bytes]:
    """Yield the text of each <seg> as a line, in order, with entities replaced by their characters.

    Raises UserError for an incomplete file, and for one with several texts of a document, as of several systems.
    """
    content, label = bytearray(), stream.label
    for chunk in chunks:
        content += chunk
        refuse_long(len(content), label)
    stated = re.sub(rb"<!--.*?-->", b"", content, flags=re.DOTALL)
    segments = re.findall(rb"<seg\b[^>]*(?:/>|(?<!/)>(.*?)</seg>)", stated, re.DOTALL | re.IGNORECASE)
    opened = len(re.findall(rb"<seg\b", stated, re.IGNORECASE))
    if len(segments) != opened or not opened:
        raise UserError(f"{label}: {opened} <seg> are opened and {len(segments)} closed; a complete .sgm is expected")
    names = [*filter(None, attributes(DOCUMENT % b"docid", stated))]
    if len({*names}) < len(names):
        held = (
            b", ".join(dict.fromkeys(filter(None, attributes(DOCUMENT % b"sysid", stated)))).decode(errors="replace")
            or "sets"
        )
        raise UserError(f"{label}: it holds several texts, one after the other ({held}); a file with one is expected")
    stream.documents = tuple(attributes(ORDER, stated)) if names else ()
    for segment in segments:  # bytes that are not UTF-8 are passed on
        yield line(resolve_references(segment.decode(errors="surrogateescape")).encode(errors="surrogateescape"))


def attributes(pattern: bytes, content: bytes) -> list[bytes]:
    """What the groups of a pattern have at each place of an .sgm file, or b"" where they have nothing."""
    return [*map(b"".join, re.findall(pattern, content, re.IGNORECASE))]


class Text(list[str]):
    """The lines of a text, and the documents and segments of an .sgm file or an XML of WMT, as in `Unpacked`."""

    documents: tuple[bytes, ...] = ()


def read_text(path: Path, encoding: str | None = None) -> Text:
    """Return the lines of a text that a user hands over to a command: a file, compressed or not, or a pipe."""
    return lines_in(path.read_bytes(), str(path), encoding)


def lines_in(content: bytes, label: str, encoding: str | None = None) -> Text:
    stream = Unpacked(io.BufferedReader(io.BytesIO(content)), label)
    found = b"".join(text(stream, encoding))
    notice(found[: 1 << 20], label)
    try:
        lines = Text(found.decode().split("\n"))
    except UnicodeDecodeError as error:
        place = found.count(b"\n", 0, error.start) + 1
        raise UserError(f"{label}: line {place:,} is not UTF-8; UTF-8 text is expected") from None
    lines.documents = stream.documents
    if not lines[-1]:
        lines.pop()
    return lines


def line(segment: str | bytes) -> bytes:
    """Return a segment as one trimmed line. A line feed in it becomes a space; other separators are kept as text."""
    data = segment.encode() if isinstance(segment, str) else segment
    return data.strip(b" \t\r\n").replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"


def pairs(
    form: str, path: Path, languages: Languages, encoding: str | None, noted: Counter[str]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a file of a `form` that holds both sides by language, or as source and target.

    If a row has several variants of a language, the one with the very code is taken, otherwise the first that is not empty,
    those in the usual script first.
    A unit without one of the languages and a row with a null are left out. The numbers of these are said on stderr, and
    added to `noted`.
    """
    several, incomplete, variants = 0, 0, dict[str, None]()
    require_form(path, form)
    for number, names, texts in ROWS[form](path, languages, encoding):
        try:
            has = [isinstance(text, str | bytes) and text.strip() for text in texts]
            sides = [list(filter(has.__getitem__, places)) or places for places in named(names, languages)]
            if not texts or (sides and None in (texts[at] for at, *_ in sides)):
                incomplete, noted["incomplete"] = incomplete + 1, noted["incomplete"] + 1
                continue
            source, target = (line(texts[at]) for at, *_ in sides)
        except (AttributeError, ValueError):  # no such columns, no text, half of a surrogate pair
            held = repr(dict(zip(names, texts)))[:99]
            raise UserError(f"{path}: row {number:,} has no text for {' and '.join(languages)}, but {held}") from None
        if max(map(len, sides)) > 1:
            several, noted["variants"] = several + 1, noted["variants"] + 1
            variants |= dict.fromkeys(names[at] for places in sides if len(places) > 1 for at in places)
        yield source, target
    if several:
        said = f"{path}: {several:,} rows or units have several texts for one language ({', '.join(variants)})"
        say(f"{said}; the one with the code in `languages` is used, otherwise the first with text, by the usual script")
    if incomplete:
        say(f"{path}: {incomplete:,} rows or units have no text for {' or '.join(languages)}, and are left out")


def named(names: Sequence[str], languages: Languages) -> list[list[int]]:
    """Return the places of each side in `names`, by language or as source and target. [] if there are none.

    Those of the very code come first, then other variants of the language, those in its usual script first. If there are
    none, a code without a region stands for one with a region.
    """
    bare = tuple(name.removeprefix("sentence_") for name in names)  # sentence_deu_Latn in FLORES-200
    return next((found for wanted in (languages, ("source", "target")) if all(found := places(bare, wanted))), [])


@functools.lru_cache(maxsize=1024)
def places(names: tuple[str, ...], languages: Languages) -> list[list[int]]:
    held, wanted = [tag(name) for name in names], [tag(code) for code in languages]

    def side(own: str) -> list[int]:
        free = [at for at, code in enumerate(held) if code == own or code not in wanted]  # not the other side's
        fit = fitting([names[at] for at in free], own)
        found = [at for at in free if names[at] in fit]
        return sorted(found, key=lambda at: (held[at] != own, script_of(names[at]) != script_of(own)))

    sides = [side(own) for own in wanted]
    return [[at for at in side if names[at] != "id"] or side for side in sides]  # id numbers rows if another is Indonesian


def columns(names: Sequence[str], languages: Languages) -> list[list[int]]:
    """Return the places of each side among the columns of a table. [] if there are none, or two of one code."""
    found = named(names, languages)
    return [] if any(len({tag(names[at]) for at in side}) < len(side) for side in found) else found


def filled(path: Path, encoding: str | None, blank: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and the content of the lines of a file that have more than `blank` characters or white space."""
    with unpacked(path) as stream:
        for number, row in enumerate(lines_of(utf8(stream, encoding), path), 1):
            if row.strip(blank):
                yield number, row.removesuffix(b"\r")


def table_rows(path: Path, encoding: str | None) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the numbers and the cells of the rows of a table with tabs.

    Raises UserError for a row of another width than the first, and at the end for cells in quotes: all of them, or, as
    spreadsheets write them, those with a quotation mark, which is doubled.
    """
    width, plain, all_quoted, doubled, opened = 0, False, True, False, False
    for number, row in filled(path, encoding, b" \r"):  # a row of tabs has empty cells
        cells = row.split(b"\t")
        width, before = width or len(cells), opened
        opened = any(cell.startswith(b'"') for cell in cells)
        if len(cells) != width:
            why = "; a tab or a line break in quotes is not read, write the table without" * (before or opened)
            raise UserError(f"{path}: row {number:,} has {len(cells)} columns, and the first row has {width}{why}")
        if not plain:
            marked = [cell for cell in cells if b'"' in cell]
            plain = not all(map(QUOTED.fullmatch, marked))
            all_quoted &= len(marked) == width
            doubled |= any(b'""' in cell[1:-1] for cell in marked)
        yield number, cells
    if width and not plain and (all_quoted or doubled):
        raise UserError(f"{path}: its cells are in quotes, which would be part of the text; write it without quotes")


def tsv_rows(path: Path, languages: Languages, encoding: str | None) -> Iterator[Row]:
    """Yield the rows of a table with tabs: of two columns, or of the columns that its first line names by language."""
    names: list[str] = []
    for number, cells in table_rows(path, encoding):
        if not names:
            names = [cell.strip().decode(errors="replace") for cell in cells]
            if columns(names, languages):
                continue
            if len(cells) != 2:
                wanted = (
                    f"the columns {' and '.join(languages)}, or two without names, or `columns`, with tabs between them"
                )
                raise UserError(f"{path}: its first row is {', '.join(names)[:99]!r}; {wanted}, are expected")
            names = ["source", "target"]
        yield number, names, cells


def jsonl_rows(path: Path, languages: Languages, encoding: str | None) -> Iterator[Row]:
    """Yield the rows of a file with one JSON object per line, whose keys are languages, also within `translation`.

    Bytes that are not UTF-8 are passed on, as from a text file. A file joined from others may have byte order marks within.
    """
    for number, row in filled(path, encoding):
        try:
            held: Any = json.loads(row.decode(errors="surrogateescape").removeprefix("\ufeff"))
            inner = held.get("translation")
            held = inner if isinstance(inner, dict) else held
            texts = list(held.values())
            if row.decode(errors="ignore").encode() != row:  # else half of a surrogate pair is an escape, no byte
                texts = [text.encode(errors="surrogateescape") if isinstance(text, str) else text for text in texts]
            yield number, list(held), texts
        except (ValueError, RecursionError, AttributeError) as error:
            held = repr(row[:60].decode(errors="replace"))
            why = f" ({str(error)[:100]})" if isinstance(error, ValueError) else ""
            raise UserError(f"{path}: row {number:,} is {held}{why}; a JSON object in each line is expected") from None


def parquet_rows(path: Path, languages: Languages, encoding: str | None) -> Iterator[Row]:
    """Yield the rows of a table: of two columns of text, or of a column `translation` with a text per language.

    Bytes that are not UTF-8 are passed on, as from a text file; `normalise` refuses or replaces them.
    """
    import pyarrow.parquet

    size, numbers = 0, itertools.count(1)
    with undamaged(path):
        file = pyarrow.parquet.ParquetFile(path)
        held = list(file.schema_arrow.empty_table().flatten().schema)
        kinds = [each.type.value_type if pyarrow.types.is_dictionary(each.type) else each.type for each in held]
        fields = [each for each, kind in zip(held, kinds) if str(kind) in ("string", "large_string", "string_view")]
        names = [each.name.removeprefix("translation.") for each in fields]
        sides = [fields[at] for side in columns(names, languages) for at in side]
        if not sides:
            given = ", ".join(f"{each.name} ({each.type})" for each in held)
            raise UserError(f"{path}: columns of strings for {' and '.join(languages)} are expected, not {given}")
        for batch in file.iter_batches(1024, columns=[side.name for side in sides]):
            table = pyarrow.Table.from_batches([batch]).flatten()
            size += table.nbytes
            refuse_bomb(size, path.stat().st_size, str(path))
            texts = [table[side.name].cast(pyarrow.large_binary()).to_pylist() for side in sides]
            chosen = [side.name.removeprefix("translation.") for side in sides]
            yield from ((number, chosen, row) for row, number in zip(zip(*texts), numbers))


def tmx_rows(path: Path, languages: Languages, encoding: str | None) -> Iterator[Row]:
    """Yield the segments that are not empty of each unit, and none for a unit without both languages.

    `en` stands for en-US, too.
    """
    parser: Any = XMLPullParser(("start", "end"))
    body, seen, since, units = Element("body"), dict[str, None](), 0, 0
    with unpacked(path) as stream:
        try:
            for chunk in stream:
                parser.feed(chunk)
                since += len(chunk)  # bytes since the end of a unit
                for event, element in parser.read_events():
                    element.tag = element.tag.rpartition("}")[2]  # without its namespace
                    if event == "start" and element.tag == "body":
                        body = element
                    elif event == "end" and element.tag == "tu":
                        units += 1
                        unit = [variant for variant in map(segment, element.iter("tuv")) if variant[1].strip()]
                        names = [code for code, _ in unit]
                        seen |= dict.fromkeys(names)
                        yield units, names, [content for _, content in unit] if named(names, languages) else []
                        body.clear()  # of the units that were read
                        since = 0
                refuse_long(since, path)
            parser.close()
        except ParseError as error:
            raise UserError(f"{path} is damaged or not a TMX file: {error}") from None
        except UserError:  # which is a ValueError
            raise
        except (LookupError, ValueError) as error:  # an encoding that the parser does not know
            remedy = 'convert the file to UTF-8 and write encoding="UTF-8" in its first line'
            raise UserError(f"{path} cannot be read in its encoding: {error}; {remedy}") from None
    if not named([*seen], languages):
        held = ", ".join(seen) or "none; is it a TMX file?"
        raise UserError(f"{path}: it has no unit in {' and '.join(languages)}; its languages are {held}")


def segment(variant: Element) -> tuple[str, str]:
    """Return the language of a variant of a unit, and its text without native codes in <seg>."""
    for code in [element for element in variant.iter() if element.tag in NATIVE]:
        code.text, code[:] = None, []
    stated = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
    return stated, "".join(text for seg in variant.iter("seg") for text in seg.itertext())


ROWS = {"tsv": tsv_rows, "jsonl": jsonl_rows, "tmx": tmx_rows, "parquet": parquet_rows}
