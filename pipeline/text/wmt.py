"""Reads translations and references that a user hands over: plain text, .sgm, or the XML that WMT has published since 2021.

The XML holds a test set by document: the source, references by translator, and translations by system. Documents of test
suites and segments that no translator translated are no part of the set, as in sacreBLEU.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element, ParseError, fromstring

from pipeline.settings.languages import fitting
from pipeline.text.archives import Unpacked
from pipeline.text.forms import Text, line, lines_in
from pipeline.text.plain import XML
from transformer.config.reading import UserError

Lines = Sequence[str | None]  # None where a file has no text for a segment
AUTHORS = {"ref": "translator", "hyp": "system"}  # the attribute that names whose text it is


def read_sides(named: str, kind: str, language: str, encoding: str | None = None) -> dict[str, Lines]:
    """Return the texts of a file, by name. `kind` is "ref" or "hyp". `FILE#NAME` takes the text of one author of an XML.

    Raises UserError for an XML without such a text in `language`.
    """
    alone = "#" not in named or Path(named).exists()
    name, author = (named, "") if alone else named.rpartition("#")[::2]
    content = Path(name).read_bytes()
    stream = Unpacked(io.BufferedReader(io.BytesIO(content)), name)
    if not re.match(XML + rb"<dataset\b", stream.head.removeprefix(b"\xef\xbb\xbf"), re.IGNORECASE):
        if author:
            raise UserError(f"{named} is missing, and {name} is no XML of WMT, which could have a part #{author}")
        return {name: lines_in(content, name, encoding)}
    try:
        root = fromstring(b"".join(stream))
        found = texts(root, kind, language, name)
    except UserError:
        raise
    except (ParseError, LookupError, ValueError) as error:
        raise UserError(f"{name} is damaged or in an unknown encoding: {error}") from None
    if author not in ("", *found) or not found:
        others = ", ".join({side.get("lang", "no language"): None for side in root.iter(kind)})
        held = (
            ", ".join(found) or f"none; those outside of test suites are read, and the file has {others or 'no such text'}"
        )
        raise UserError(f"{named}: no <{kind}> in {language} has this {AUTHORS[kind]}; there is {held}")
    return {f"{name}#{by}": lines for by, lines in found.items() if author in ("", by)}


def texts(root: Element, kind: str, language: str, name: str) -> dict[str, Lines]:
    """Return the texts of one kind in a test set, by author. Each has an entry for each segment of the set."""
    rows, order = list[dict[str, str]](), list[bytes]()
    wanted = fitting({side.get("lang", language) for side in root.iter(kind)}, language)
    for document in (each for each in root.iter("doc") if "testsuite" not in each.attrib):
        sides = [(side, content(side, name)) for side in document.iter() if side.tag in ("src", *AUTHORS)]
        references = [segments for side, segments in sides if side.tag == "ref"]
        chosen = [
            (side.get(AUTHORS[kind], ""), segments)
            for side, segments in sides
            if side.tag == kind and side.get("lang", language) in wanted
        ]
        if len({author for author, _ in chosen}) < len(chosen):
            raise UserError(f"{name}: a document has two <{kind}> of one {AUTHORS[kind]}; each needs its own name")
        order.append(document.get("id", "").encode())
        for number in dict.fromkeys(number for _, segments in sides for number in segments):
            if not references or any(segments.get(number) for segments in references):
                rows.append({author: segments[number] for author, segments in chosen if segments.get(number)})
                order.append(number.encode())
    found: dict[str, Lines] = {}
    for by in dict.fromkeys(author for row in rows for author in row):
        found[by] = lines = Text(cast(list[str], [row.get(by) for row in rows]))
        lines.documents = tuple(order)
    return found


def content(side: Element, name: str) -> dict[str, str]:
    """Return the text of each segment of one side of a document, by its number."""
    segments = list(side.iter("seg"))
    numbered = {each.get("id", ""): line("".join(each.itertext())).decode().removesuffix("\n") for each in segments}
    if len(numbered) < len(segments):
        raise UserError(f"{name}: a <{side.tag}> has two segments of one id; each needs its own")
    return numbered
