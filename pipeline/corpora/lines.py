"""Reads the lines of long files, one block at a time. Only "\\n" ends a line; other line separators are text."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from pipeline.workflow.progress import Progress
from transformer.config.reading import UserError

BLOCK = 1 << 20  # bytes of a file in memory at a time


def blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """Yield lists of whole lines with their line feeds, about BLOCK bytes each. The last line may lack a line feed."""
    with open(path, "rb", buffering=BLOCK) as file:
        while lines := file.readlines(BLOCK):
            yield lines
            bar.update(sum(map(len, lines)))


def clean_blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """Yield the `blocks` of a file that normalise wrote. Raises UserError at a line that is not UTF-8."""
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


def progress(paths: Iterable[Path]) -> tqdm:
    """Return a progress bar over the bytes of all files."""
    return Progress(total=sum(path.stat().st_size for path in paths), unit="B", unit_scale=True)
