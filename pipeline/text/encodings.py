"""Reads text in any encoding as UTF-8."""

import codecs
import itertools
from collections.abc import Iterable, Iterator

from pipeline.running.progress import say
from pipeline.text.archives import Unpacked
from pipeline.text.plain import MARKS, foreign, shifted
from transformer.config.reading import UserError

SAMPLE = 1 << 14  # bytes of lines that are not UTF-8, by which an encoding is guessed


def utf8(stream: Unpacked, stated: str | None = None) -> Iterator[bytes]:
    """Yield the text in UTF-8, without a byte order mark.

    Raises UserError, at the end at the latest, for text in another encoding than `stated` or, without it, UTF-8, and for
    lines that end in CR. If most lines with other characters than ASCII are valid, the rest is damaged. It is passed on
    and named on stderr, for `normalise` to refuse or replace.
    """
    mark = next((mark for mark in MARKS if stream.head.startswith(mark)), b"")
    encoding = MARKS.get(mark) or codecs.lookup(stated or "utf-8").name.removesuffix("-sig")  # the mark counts more
    if encoding == "utf-8":
        stream.read(len(mark))
        return checked(stream, stream.label, encoding)
    beginning = stream.head.decode(errors="ignore").encode()  # without half of a character at the end
    if stream.head.startswith(beginning) and not mark and len(beginning.decode("ascii", "ignore")) + 9 < len(beginning):
        raise UserError(
            f"{stream.label} is UTF-8, not {encoding}; if the other side is {encoding}, write `encoding: [utf-8, "
            f"{encoding}]`, or convert that side by iconv"
        )
    return checked((text.encode() for text in codecs.iterdecode(stream, encoding)), stream.label, encoding)


def checked(chunks: Iterable[bytes], label: str, encoding: str) -> Iterator[bytes]:
    # A byte that is not UTF-8 becomes half of a surrogate pair.
    decoder, lines, returns, first, sample = codecs.getincrementaldecoder("utf-8")("surrogateescape"), 0, 0, "", b""
    valid, other, wrong = False, 0, 0  # of the lines with other characters than ASCII: any, and numbers
    try:
        # One chunk ahead, so that a text of one chunk is judged before its `first` lines are taken.
        for chunk, more in itertools.pairwise(itertools.chain(chunks, [b"", b""])):
            returns += chunk.count(b"\r") - chunk.count(b"\r\n")
            if chunk.count(0) > 1 + len(chunk) // 20 or shifted(chunk):
                raise UserError(foreign(f"{label}: line {lines + 1:,} or later", chunk[:SAMPLE]))
            decoded = decoder.decode(chunk, not more)
            try:
                decoded.encode()
                valid |= not decoded.isascii()
            except UnicodeEncodeError as error:
                place = lines + decoded.count("\n", 0, error.start) + 1
                first = first or f"{label}: line {place:,} (byte 0x{ord(decoded[error.start]) - 0xDC00:02x})"
                of_others = [line.encode(errors="surrogateescape") for line in decoded.split("\n") if not line.isascii()]
                of_wrong = [line for line in of_others if line.decode(errors="ignore").encode() != line]
                other, wrong = other + len(of_others), wrong + len(of_wrong)
                sample = b"\n".join([sample, *of_wrong])[:SAMPLE]
            if (len(sample) == SAMPLE or not more) and first and 2 * wrong > other and not valid:
                raise UserError(foreign(first, sample))
            lines += chunk.count(b"\n")
            yield chunk
    except UnicodeError as error:  # also half of a surrogate pair, which UTF-7 can hold
        raise UserError(f"{label}: at line {lines + 1:,} or later, it is not {encoding}: {error}") from None
    if returns > max(1, lines):
        raise UserError(f"{label}: its lines end in CR, as on an old Mac; LF is expected: tr '\\r' '\\n' < {label} > FILE")
    if first:
        say(f"{first} and {wrong - 1:,} more are damaged UTF-8; mend them, or see invalid_utf8 in params.yaml")
