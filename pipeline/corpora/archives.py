"""Reads untrusted compressed files, and named members of untrusted archives, as streams of limited size.

No file is written under a name from an archive, so these names can do no harm. An archive with a device, a pipe, an
absolute path or a path with `..` is still refused, because no published corpus has any of these.
"""

import contextlib
import difflib
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from pipeline.settings.download import tar_suffix
from pipeline.workflow.progress import Progress
from transformer.config.reading import UserError

CHUNK = 1 << 20
HARMLESS = 1 << 24  # bytes; up to this size nothing is refused as a decompression bomb
LARGEST_RATIO = 100  # decompressed size divided by compressed size; 3 to 20 for text
LARGEST = 1 << 36  # bytes; 64 GiB, ten times the longest side of WMT14
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError)


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


OPENERS: dict[str, Callable[[IO[bytes]], Readable]] = {".gz": gzip.open, ".xz": lzma.open}


class Unpacked:
    """The decompressed bytes of the stream `packed`. `suffix` names the compression.

    Raises UserError if the stream is damaged or if its decompressed size is not plausible.
    """

    def __init__(self, packed: IO[bytes], suffix: str, label: str):
        self.packed, self.label, self.size = packed, label, 0
        self.stream: Readable = OPENERS[suffix](packed) if suffix in OPENERS else packed

    def read(self, size: int = CHUNK) -> bytes:
        try:
            data = self.stream.read(size)
        except DAMAGE as error:
            raise UserError(f"{self.label} is damaged or truncated: {error}") from None
        self.size += len(data)
        refuse_bomb(self.size, self.packed.tell(), self.label)
        return data

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")


def refuse_bomb(unpacked: int, packed: int, label: str) -> None:
    if unpacked > min(LARGEST, max(HARMLESS, LARGEST_RATIO * packed)):
        raise UserError(
            f"{label} is refused: {packed:,} bytes unpack to {unpacked:,}; at most {LARGEST_RATIO} times as many and "
            f"{LARGEST:,} bytes are accepted"
        )


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a plain, .gz or .xz file as a stream of its decompressed bytes, with a progress bar."""
    with reading(path) as packed:
        yield Unpacked(packed, path.suffix, str(path))


def members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    """Yield each member of `names`, in the archive's order, as a stream that is valid until the next yield.

    A compressed member (.gz, .xz) is decompressed. The archive is read to its end, so that its own checksums are
    verified. Raises UserError if the archive is damaged, holds anything unsafe or lacks one of `names`.
    """
    seen: list[str] = []
    wanted = set(names)
    with reading(archive) as packed:
        stream = Unpacked(packed, tar_suffix(archive.name), str(archive))
        try:
            # tarfile only reads the stream, but typeshed requires all methods of a file.
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                for member in tar:
                    name = safe_name(member, archive)
                    if name in names and name in seen:  # tar -x would take the last one, which may have replaced the first
                        raise UserError(f"{archive} is refused: it holds {name} twice")
                    seen.append(name)
                    # tarfile skips a member in small reads. With a false, huge size in the header, it would not end.
                    refuse_bomb(tar.offset, archive.stat().st_size, f"{archive}: {name}")
                    if name in wanted:
                        wanted.remove(name)
                        yield name, member_stream(tar, member, f"{archive}: {name}")
            for _ in stream:
                pass
        except UserError:
            raise
        except (tarfile.TarError, ValueError) as error:  # tarfile does not check the numbers and paths of headers
            raise UserError(f"{archive} is damaged, truncated or not a tar file: {error}") from None
    for name in sorted(wanted):
        near = difflib.get_close_matches(name, seen, n=3, cutoff=0.3) or seen[:3]
        raise UserError(f"{archive}: it has no member {name}; similar names are {', '.join(near) or 'none: it is empty'}")


def safe_name(member: tarfile.TarInfo, archive: Path) -> str:
    """Return the member's name without a leading `./`. Raises UserError for an unsafe path, a device or a pipe.

    No file is written under a member's name, so tarfile's filters, which Python before 3.11.4 lacks, are not needed.
    """
    for path in (member.name, member.linkname):
        if "\0" in path:
            raise ValueError(f"the path {path!r} contains NUL")
        if path.startswith("/") or ".." in path.split("/"):
            raise UserError(f"{archive} is refused: it holds the unsafe path {path!r}")
    if member.ischr() or member.isblk() or member.isfifo():
        raise UserError(f"{archive} is refused: it holds {member.name!r}, a device or a pipe")
    return member.name.removeprefix("./")


def member_stream(tar: tarfile.TarFile, member: tarfile.TarInfo, label: str) -> Unpacked:
    if not member.isreg() or member.issparse():
        raise UserError(f"{label} is refused: it is not a regular file")
    content = tar.extractfile(member)
    assert content is not None  # extractfile returns a stream for every regular file
    return Unpacked(content, os.path.splitext(member.name)[1], label)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for reading, with a progress bar of the bytes read."""
    with (
        open(path, "rb") as file,
        Progress.wrapattr(file, "read", total=path.stat().st_size, unit="B", unit_scale=True, desc=path.name) as followed,
    ):
        yield followed  # type: ignore[misc]  # tqdm passes on all methods of `file`; types-tqdm declares only `read`
