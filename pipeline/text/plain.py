"""Tells text, one segment per line, from other forms, and what is in a text that is no part of its sentences."""

import codecs
import re
from collections.abc import Sequence
from pathlib import Path

from charset_normalizer import from_bytes

from pipeline.running.progress import say
from pipeline.settings.languages import unknown
from pipeline.text.archives import PACKED, unpacked
from pipeline.text.letters import NAMES
from transformer.config.reading import UserError

# What may stand in front of the first element of an XML file: declaration, comments, type
XML = rb"\s*((<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>[]*(\[[^]]*\]\s*)?>)\s*+)*+"
SGM = XML + rb"<(srcset|refset|tstset|mteval|doc|seg)\b"
# What is no plain text, by its first bytes: a regular expression, and what to say.
OTHERS = {
    rb"PK\x03\x04": "a zip file; {{zip: {0}}} names one with a member for each language",
    rb"[\s\S]{257}ustar(\0|  \0)": "a tar file; an entry of `archives` names it, and `archive` its members",
    rb"PAR1": "a parquet file; {{parquet: {0}}} reads it",
    XML + rb"<tmx\b": "a TMX file; {{tmx: {0}}} reads it",
    rb"\s*(<!DOCTYPE html|<html|<head)": "an HTML page, perhaps an error page of the site; text is expected",
    rb"\s*<(\?xml|!DOCTYPE|xliff\b|[a-z][\w:.-]*(\s[^<>]*)?>\s*\n\s*<)": "an XML file; text without mark-up, one "
    "segment per line, is expected",
    rb'\s*(\[?\s*\{\s*|\[\s*\n\s*)"': "a JSON file; {{jsonl: {0}}} reads one object per line",
    rb"\s*(WEBVTT|1\r?\n\d\d:\d\d:\d\d,\d{3} -->)": "subtitles; text without times, one segment per line, is expected",
    b"|".join(PACKED) + rb"|7z\xbc\xaf|Rar!\x1a|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|\x1f\x9d|LZIP\x01|%PDF-|\xd0\xcf\x11\xe0|"
    rb"\x7fELF|\x89PNG": "not text, or compressed in a way that is not read here; plain text, .gz, .xz, .bz2 or .zip is "
    "expected",
    rb"([^|\n]+ \|\|\| [^\n]+\n){2,}[^\n]*\Z": "a table with |||; {{tsv: {0}}} reads both sides if ' ||| ' is a tab",
    rb"\s*<(url|keywords|talkid|speaker|chapter)\b[^\n]*>[ \t\r]*\n": "a text with lines of mark-up, as of IWSLT; the rest "
    "is expected, on both sides: sed '/^</d'",
    rb"version https://git-lfs": "a pointer of Git LFS; its text is expected: git lfs pull",
    rb"(\"[^\n]*\",\"[^\n]*\"\r?\n){2,}[^\n]*\Z": "a table with commas; {{tsv: {0}}} reads one with tabs and no quotes",
    rb'(#[^\n]*\n|\s)*msg(id|ctxt) "': "a catalogue of gettext; text without mark-up, one segment per line, is expected",
    rb"(\d+-\d+( \d+-\d+)*\n){2,}[^\n]*\Z": "word alignments; text is expected",
}
TABLE = "a table with tabs; {{tsv: {0}}} reads both sides, and cut -f2 {0} prints the second"
FIRST = 1 << 16  # bytes of a text, by which it is judged
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
MARKS |= {codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_BE: "utf-16"}
# ISO 2022 writes Chinese, Japanese and Korean in 7 bits, between these sequences
SHIFTED = re.compile(rb"\x1b\$[@-B(][^\x1b\n]+\x1b\(|\x0e[^\x0f\n]+\x0f")
# Marks of pieces, and of words of languages that are written without such marks, and how to undo them
PIECES = {
    r"(^|\s)▁": "sed 's/ //g; s/▁/ /g'",
    r"\S@@(\s|$)": "sed -E 's/@@( |$)//g'",
    r"(^|\s)##(?!AT)\w": "sed 's/ ##//g'",
    r" (@[-,.]@|##AT##-##AT##) ": "sed -E 's/ (@([-,.])@|##AT##(-)##AT##) /\\2\\3/g'",
    r"^[^\s|]+\|\S++( [^\s|]+\|\S++)+\s*$": "sed -E 's/\\|[^ ]+//g'",
    r"\S￭|￭\S": "sed -E 's/ ?￭ ?//g'",
    r"\S</w>(\s|$)": "sed 's/ //g; s|</w>| |g'",
    r"(^|\s)Ġ\w": "sed 's/ //g; s/Ġ/ /g'",
    r"(^|\s)(?=\S*[^\x00-\x7f])[^\W\d_]+(_[^\W\d_]+)+(\s|$)": "sed 's/_/ /g'",  # Vietnamese words
    # Chinese or Japanese words: five short ones, as subtitles have spaces between clauses
    r"( [、-鿿]{1,3}){5} ": r"perl -CSD -pe 's/(?<=[\x{3001}-\x{9fff}]) (?=[\x{3001}-\x{9fff}])//g'",
}
ENOUGH = 0.1  # the share of lines with a mark
# What the first row of a table, or the first line of a text, says if it names columns; and the names of languages
COLUMNS = "source|target|src|tgt|trg|text|sentence|segment|translation|reference|hypothesis|original|input|output|index|id"
CODE = re.compile("[a-z]{2,3}([_-][A-Za-z]+)*")
ROW = re.compile(rf"({COLUMNS}|{'|'.join(re.findall('[A-Z][a-z]+', NAMES)).lower()})([ _-]?({COLUMNS}|[a-z]{{2}}|\d+))?")


def require_plain(beginning: bytes, label: str, form: str = "") -> None:
    """Raise UserError for the beginning of a file that is not text, or not of a `form` of tables."""
    said = form_of(beginning)
    if said and not re.match(SGM, beginning, re.IGNORECASE):
        if (form and f"{{{form}: " in said) or (form == "tmx" and beginning.lstrip()[:1] == b"<"):
            return
        member = ": " in label and "{" in said  # only a text can be the member of an archive
        held = said.format("FILE" if member else label) + ", unpacked from the archive first" * member
        raise UserError(f"{label} is {held}")


def form_of(beginning: bytes) -> str:
    """Return what a beginning that is not plain text is, and what to do. "" for plain text.

    In a table, nearly all lines have a tab: an empty line, or a line break in a cell, makes no text of it.
    """
    said = next((said for pattern, said in OTHERS.items() if re.match(pattern, beginning, re.IGNORECASE)), "")
    tabs = [b"\t" in line for line in beginning.split(b"\n")[:-1] if line.strip(b"\r")]
    return said or TABLE * (sum(tabs) > max(1, len(tabs) * (1 - ENOUGH)))


def require_form(path: Path, form: str) -> None:
    with unpacked(path) as stream:
        require_plain(stream.head, stream.label, form)


def unmarked(beginning: bytes, label: str) -> bytes:
    """Return the beginning of a stream of UTF-8 without its byte order mark. Raises UserError for any other form."""
    mark = next((mark for mark in MARKS if beginning.startswith(mark)), b"")
    if MARKS.get(mark, "utf-8") != "utf-8":
        raise UserError(f"{label} is {MARKS[mark]}; convert it by iconv -f {MARKS[mark]} -t utf-8")
    if any(re.match(pattern, beginning) for pattern in PACKED):
        raise UserError(f"{label} is compressed; unpack it first, for example by zcat, xzcat or bzcat")
    if b"\0" in beginning:
        require_plain(beginning, label)
    return beginning.removeprefix(mark)


def notice(beginning: bytes, label: str) -> bool:
    """Return whether the text is already in pieces, by the share of its first lines. A model would learn their marks.

    If so, say it on stderr.
    """
    lines, found = [line for line in beginning[:FIRST].decode(errors="ignore").split("\n") if line.strip()], False
    for mark, undo in PIECES.items():
        marked = [line.strip() for line in lines if re.search(mark, line)]
        if many := len(marked) > ENOUGH * len(lines):
            said = f"{label}: {len(marked) / len(lines):.0%} of its lines have marks of pieces, as in {marked[0][:40]!r}"
            say(f"{said}; text without such marks is expected: {undo}")
        found |= many
    return found


def notice_form(beginning: bytes, label: str) -> None:
    """Say on stderr if a text whose lines are taken as they stand is not plain, or is in pieces."""
    if form := "an .sgm file" if re.match(SGM, beginning, re.IGNORECASE) else form_of(beginning).partition(";")[0]:
        say(f"{label} is {form}; its lines are taken as they stand")
    notice(beginning, label)


def notice_names(beginnings: Sequence[bytes], label: str, languages: Sequence[str]) -> bool:
    """Return whether the first line of each side names a column instead of being a sentence. If so, say it on stderr."""
    first = [beginning.partition(b"\n")[0].decode(errors="ignore") for beginning in beginnings]
    cells = [cell.strip().strip('"') for cell in first]
    codes = all(map(CODE.fullmatch, cells)) and (not unknown(cells) if len(cells) > 1 else cells[0] in languages)
    if found := codes or all(ROW.fullmatch(cell.lower()) for cell in cells):
        said = f"{label}: the first line, {' and '.join(map(repr, first))}, seems to name columns"
        say(f"{said}; remove it, or name the columns of a table by their languages")
    return found


def shifted(chunk: bytes) -> bool:
    """Whether most lines are in ISO 2022. A single sequence of it in text that is valid UTF-8 is text."""
    possible = chunk.isascii() and SHIFTED.search(chunk)
    return bool(possible) and 2 * sum(map(bool, map(SHIFTED.search, chunk.split(b"\n")))) > chunk.count(b"\n")


def foreign(place: str, sample: bytes) -> str:
    """Return the message for text that is not UTF-8, with a guess of its encoding."""
    guess = (
        ("iso-2022-kr" if b"\x0e" in sample else "iso-2022-jp")
        if SHIFTED.search(sample)
        else getattr(from_bytes(sample).best(), "encoding", "")
    )
    if guess in ("", "ascii", "utf_8"):  # with NUL
        return f"{place} is not UTF-8, and its encoding is not known; is it text?"
    name = codecs.lookup(guess).name.replace("utf-16-", "utf-16")  # as iconv calls it
    line = sample.decode(name, "replace").strip().split("\n")[0].strip()
    first = next((at for at, character in enumerate(line) if not character.isascii()), 0)
    shown = line[max(0, first - 20) :][:40]
    return (
        f"{place} is not UTF-8. As {name}, which is a guess, a line reads {shown!r}: if that is right, write `encoding: "
        f"{name}` beside it in params.yaml (two files: [utf-8, {name}]), give `evaluate` --encoding {name}, or convert it "
        f"by iconv -f {name} -t utf-8"
    )
