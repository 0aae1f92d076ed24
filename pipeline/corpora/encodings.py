"""Recodes text to UTF-8, and tells text in another encoding from UTF-8 with damaged characters."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain

from pipeline.corpora.archives import Unpacked
from pipeline.corpora.transfer import say
from transformer.config.reading import UserError

MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
MARKS |= {codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_BE: "utf-16"}
SHIFTED = b"\x1b$"  # ISO 2022 writes Chinese, Japanese and Korean in 7 bits, after this sequence
SAMPLE = 1 << 14  # bytes by which an encoding is guessed
ENOUGH = 1000  # lines that are not UTF-8, of which a file needs no more to be refused


def marked(head: bytes, stated: str | None) -> tuple[str, bytes]:
    """Return the encoding of a text that begins with `head`, and its byte order mark, which counts more than `stated`."""
    mark = next((mark for mark in MARKS if head.startswith(mark)), b"")
    return MARKS.get(mark) or codecs.lookup(stated or "utf-8").name, mark


def head(stream: Unpacked, stated: str | None) -> bytes:
    """Return the beginning of the text in UTF-8. What is not valid is left out."""
    text = stream.head.decode(marked(stream.head, stated)[0], "ignore")
    return text.removeprefix("\ufeff").encode(errors="ignore")


def utf8(stream: Unpacked, stated: str | None = None, damaged: bool = True) -> Iterator[bytes]:
    """Yield the text in UTF-8, without a byte order mark.

    Raises UserError, at the end at the latest, for text in another encoding than `stated` or, without it, UTF-8, and for
    lines that end in CR. If most lines with other characters than ASCII are valid, the rest is damaged. It is passed on
    and named on stderr, for `normalise` to refuse or replace, unless `damaged` is False.
    """
    encoding, mark = marked(stream.head, stated)
    if encoding != "utf-8" and not mark and is_utf8(stream.head):
        raise UserError(f"{stream.label} is UTF-8, not {encoding}; encoding: [utf-8, {encoding}] names that of each side")
    chunks = without(stream, len(mark)) if encoding == "utf-8" else recoded(stream, encoding)
    return checked(chunks, stream.label, damaged)


def is_utf8(beginning: bytes) -> bool:
    """Return whether several characters, and all of them, are of UTF-8 and not of ASCII."""
    try:
        return len(codecs.getincrementaldecoder("utf-8")().decode(beginning).encode("ascii", "ignore")) + 9 < len(beginning)
    except UnicodeDecodeError:
        return False


def without(chunks: Iterable[bytes], skip: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[skip:]
        skip = max(0, skip - len(chunk))


def recoded(stream: Unpacked, encoding: str) -> Iterator[bytes]:
    decoder, lines = codecs.getincrementaldecoder(encoding)(), 1
    try:
        for chunk in stream:
            text = decoder.decode(chunk)
            lines += text.count("\n")
            yield text.encode()
        yield decoder.decode(b"", True).encode()
    except UnicodeError as error:  # also half of a surrogate pair, which UTF-7 can hold
        raise UserError(f"{stream.label}: at line {lines:,} or later, it is not {encoding}: {error}") from None


def checked(chunks: Iterable[bytes], label: str, damaged: bool) -> Iterator[bytes]:
    decoder, lines, returns, first, sample = codecs.getincrementaldecoder("utf-8")(), 0, 0, "", b""
    valid, other, wrong = False, 0, 0  # of the lines with other characters than ASCII: any, and numbers
    for chunk in chain(filter(None, chunks), [b""]):
        returns += chunk.count(b"\r") - chunk.count(b"\r\n")
        try:
            decoder.decode(chunk, not chunk)
            valid |= not chunk.isascii()
            if SHIFTED in chunk or chunk.count(0) > len(chunk) // 20:
                raise UserError(foreign(f"{label}: line {lines + 1:,} or later", chunk[:SAMPLE]))
        except UnicodeDecodeError as error:
            place = lines + error.object.count(b"\n", 0, error.start) + 1
            first = first or f"{label}: line {place:,} (byte 0x{error.object[error.start]:02x})"
            decoder.reset()
            for line in filter(lambda line: not line.isascii(), error.object.split(b"\n")):
                other += 1
                if line.decode(errors="ignore").encode() != line:
                    wrong += 1
                    sample = sample + line + b"\n" if len(sample) < SAMPLE else sample
        if (wrong >= ENOUGH or not chunk) and first and ((2 * wrong > other and not valid) or not damaged):
            raise UserError(foreign(first, sample))
        lines += chunk.count(b"\n")
        if chunk:
            yield chunk
    if returns > max(1, lines):
        raise UserError(f"{label}: its lines end in CR, as on an old Mac; LF is expected: tr '\\r' '\\n' < {label} > FILE")
    if first:
        say(f"{first} and {wrong - 1:,} more are damaged UTF-8; mend them, or see invalid_utf8 in params.yaml")


def foreign(place: str, sample: bytes) -> str:
    """Return the message for text that is not UTF-8, with a guess of its encoding."""
    from charset_normalizer import from_bytes

    if sample.count(0) > len(sample) // 20:
        guess: str | None = "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"
    elif SHIFTED in sample:
        guess = "iso2022_jp"
    else:
        best = from_bytes(sample).best()
        guess = best.encoding if best else None
    if guess is None:
        return f"{place} is not UTF-8, and its encoding is not known; is it text?"
    shown = sample.decode(guess, "replace").split("\n")[0].strip()[:40]
    return (
        f"{place} is not UTF-8. As {guess}, which is a guess, a line reads {shown!r}: if that is right, write `encoding: "
        f"{guess}` beside it in params.yaml (two files: [utf-8, {guess}]), or convert it by iconv -f {guess} -t utf-8"
    )
