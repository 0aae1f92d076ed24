"""The lines of long files, a block at a time. They end at "\\n" only: any other line separator is part of one."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from transformer.config.reading import UserError

BLOCK = 1 << 20  # bytes of a file that are in memory at once


def blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """Whole lines with their ends, BLOCK bytes or a little more of them at a time; the last may lack its end."""
    with open(path, "rb", buffering=BLOCK) as file:
        while lines := file.readlines(BLOCK):
            yield lines
            bar.update(sum(map(len, lines)))


def clean_blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """`blocks` of text that normalise wrote. UserError at a line that is not UTF-8."""
    before = 0
    for lines in blocks(path, bar):
        block = b"".join(lines)
        try:
            block.decode()
        except UnicodeDecodeError as error:
            line = before + block.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}: line {line} is not UTF-8; run normalise again") from None
        before += len(lines)
        yield lines


def progress(paths: Iterable[Path], task: str) -> tqdm:
    """A bar as long as the files, in bytes."""
    return tqdm(total=sum(path.stat().st_size for path in paths), unit="B", unit_scale=True, desc=task)
