"""Reading out of packed files that strangers made: only what is named, only as a stream, never more than is plausible.

Nothing is ever written by a name that an archive gives, so no name in it can lead anywhere. All the same an archive
with a path, a link or a device that would lead out of it is refused: it is not the file that it claims to be.
"""

import contextlib
import difflib
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from pipeline.settings.addresses import tar_suffix
from transformer.config.reading import UserError

CHUNK = 1 << 20
HARMLESS = 1 << 24  # bytes; less than this is never called a bomb
LARGEST_RATIO = 100  # text packs 3 to 20 times smaller
LARGEST = 1 << 36  # bytes; 64 GiB, ten times the longest side of WMT14
OPENERS = {".gz": gzip.open, ".xz": lzma.open}
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError)


class Unpacked:
    """The bytes that the stream `packed` holds, unpacked by `suffix`, refused when damaged or out of proportion."""

    def __init__(self, packed: IO[bytes], suffix: str, label: str):
        self.packed, self.label, self.size = packed, label, 0
        self.stream = OPENERS[suffix](packed) if suffix in OPENERS else packed

    def read(self, size: int = CHUNK) -> bytes:
        try:
            data = self.stream.read(size)
        except DAMAGE as error:
            raise UserError(f"{self.label} is damaged or cut short: {error}") from None
        self.size += len(data)
        refuse_bomb(self.size, self.packed.tell(), self.label)
        return data

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")


def refuse_bomb(unpacked: int, packed: int, label: str) -> None:
    if unpacked > min(LARGEST, max(HARMLESS, LARGEST_RATIO * packed)):
        raise UserError(
            f"{label} is refused: {packed:,} bytes have become {unpacked:,}; text grows at most {LARGEST_RATIO} times "
            f"and to {LARGEST:,} bytes"
        )


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """A plain, .gz or .xz file as a stream, with a progress bar."""
    with reading(path) as packed:
        yield Unpacked(packed, path.suffix, str(path))


def members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    """Each member of `names`, in the archive's order, as a stream that is good until the next is asked for.

    A member that is itself packed (.gz, .xz) comes unpacked. The archive is read to its end, so that its own check
    sums are tested. Raises UserError if it is damaged, if it holds anything unsafe or if a name is not in it.
    """
    seen: list[str] = []
    wanted = set(names)
    with reading(archive) as packed:
        stream = Unpacked(packed, tar_suffix(archive.name), str(archive))
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    name = safe_name(member, archive)
                    seen.append(name)
                    # A size that cannot be would be skipped in small steps past the end, for years
                    refuse_bomb(tar.offset, archive.stat().st_size, f"{archive}: {name}")
                    if name in wanted:
                        wanted.remove(name)
                        yield name, member_stream(tar, member, f"{archive}: {name}")
            for _ in stream:
                pass
        except UserError:
            raise
        except (tarfile.TarError, ValueError) as error:  # tarfile reads numbers and paths of headers unchecked
            raise UserError(f"{archive} is damaged, cut short or no tar file: {error}") from None
    for name in sorted(wanted):
        near = difflib.get_close_matches(name, seen, n=3, cutoff=0.3) or seen[:3]
        raise UserError(f"{archive}: {name} is not in it; near names are {', '.join(near) or 'none: it is empty'}")


def safe_name(member: tarfile.TarInfo, archive: Path) -> str:
    """The member's name without a leading `./`. Raises UserError for what has no business in a corpus' archive.

    Nothing is written by a member's name, so tarfile's filters, which Python before 3.11.4 lacks, are not needed.
    """
    for path in (member.name, member.linkname):
        if "\0" in path:
            raise ValueError(f"NUL stands in the path {path!r}")
        if path.startswith("/") or ".." in path.split("/"):
            raise UserError(f"{archive} is refused, it holds the unsafe path {path!r}")
    if member.ischr() or member.isblk() or member.isfifo():
        raise UserError(f"{archive} is refused, it holds {member.name!r}, a device or a pipe")
    return member.name.removeprefix("./")


def member_stream(tar: tarfile.TarFile, member: tarfile.TarInfo, label: str) -> Unpacked:
    if not member.isreg() or member.issparse():
        raise UserError(f"{label} is refused: it is no plain file")
    return Unpacked(tar.extractfile(member), os.path.splitext(member.name)[1], label)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """`path` open for reading, a progress bar following the bytes."""
    from tqdm import tqdm

    with (
        open(path, "rb") as file,
        tqdm.wrapattr(
            file, "read", total=path.stat().st_size, unit="B", unit_scale=True, desc=path.name, disable=None
        ) as followed,
    ):
        yield followed
