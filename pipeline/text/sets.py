"""The sets of a corpus: one file per language, in which line n is the translation of line n of the other file.

Files are read a block at a time, as they may be long. Only "\\n" ends a line; other line separators are text.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from pipeline.running.progress import Progress
from transformer.config.reading import UserError

BLOCK = 1 << 20  # bytes of a file in memory at a time
LONGEST = 1 << 24  # bytes of a line, an .sgm file or another unit that is read at once; a test set has a million


def files_of(folder: Path, name: str, languages: tuple[str, str]) -> list[Path]:
    return [folder / f"{name}.{language}" for language in languages]


def count_lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def blocks(path: Path, bar: tqdm) -> Iterator[list[bytes]]:
    """Yield lists of whole lines with their line feeds, about BLOCK bytes each. The last line may lack a line feed."""
    with open(path, "rb", buffering=BLOCK) as file:
        while lines := file.readlines(BLOCK):
            yield lines
            bar.update(sum(map(len, lines)))


def lines_of(chunks: Iterable[bytes], label: object) -> Iterator[bytes]:
    """Yield the lines in `chunks`, without their line feeds. Refuses a line that is too long."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        refuse_long(len(rest), label)
    if rest:
        yield rest


def refuse_long(size: int, label: object) -> None:
    """Raise UserError if what is read at once, such as a line or an .sgm file, has more than LONGEST bytes."""
    if size > LONGEST:
        raise UserError(f"{label} is refused: it has a line or a unit of more than {LONGEST:,} bytes")


def progress(paths: Iterable[Path]) -> tqdm:
    return Progress(total=sum(path.stat().st_size for path in paths), unit="B", unit_scale=True)
