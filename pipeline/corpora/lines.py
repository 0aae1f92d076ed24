"""The lines of long files, a block at a time. They end at "\\n" only: any other line separator is part of one."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

BLOCK = 1 << 20  # bytes of a file that are in memory at once


def blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """Whole lines with their ends, BLOCK bytes or a little more of them at a time; the last may lack its end."""
    with open(path, "rb", buffering=BLOCK) as file:
        while lines := file.readlines(BLOCK):
            yield lines
            bar.update(sum(map(len, lines)))


def progress(paths: Iterable[Path], task: str) -> tqdm:
    """A bar as long as the files, in bytes."""
    return tqdm(total=sum(path.stat().st_size for path in paths), unit="B", unit_scale=True, desc=task)
