"""Reads blocks of lines from a file, a pipe or a terminal. Only "\\n" ends a line."""

import os
import select
from collections.abc import Iterator

from transformer.config.reading import UserError

CHUNK = 1 << 16  # bytes of one read
LONGEST = 1 << 20  # bytes of a line; without a limit, a file without line breaks would fill the memory
PAUSE = 0.1  # seconds without input that end a block; shorter pauses do not split a test set that fits into a block


def blocks(descriptor: int, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines, without their line feeds. A list is shorter if the input pauses.

    Raises UserError, after the preceding lines, if a read leaves more than LONGEST bytes without a line feed.
    """
    lines: list[bytes] = []
    rest, read, ended = b"", 0, False
    while lines or not ended:
        if lines and (ended or len(lines) >= most or len(rest) > LONGEST or paused(descriptor)):
            block, lines = lines[:most], lines[most:]
            read += len(block)
            yield block
        elif len(rest) > LONGEST:
            raise UserError(f"line {read + 1} has no line break in {LONGEST:,} bytes; break it into sentences")
        else:
            data = os.read(descriptor, CHUNK)
            *whole, rest = (rest + data).split(b"\n")
            ended = not data
            lines += [*whole, rest] if ended and rest else whole


def paused(descriptor: int) -> bool:
    return not select.select([descriptor], [], [], PAUSE)[0]
