"""Reads untrusted compressed files, and named members of untrusted archives, as streams of limited size.

The first bytes of a file tell how it is compressed; its name does not matter. No file is written under a name from an
archive, so these names can do no harm. An archive with a device, a pipe, an absolute path or a path with `..` is still
refused, because no published corpus has any of these.
"""

import bz2
import contextlib
import difflib
import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

from pipeline.workflow.progress import Progress
from transformer.config.reading import UserError

CHUNK = 1 << 20
HEAD = 1 << 13  # bytes at the start of a file by which its form is recognised
HARMLESS = 1 << 24  # bytes; up to this size nothing is refused as a decompression bomb
LARGEST_RATIO = 100  # decompressed size divided by compressed size; 3 to 20 for text
LARGEST = 1 << 36  # bytes; 64 GiB, ten times the longest side of WMT14
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
ZIP = b"PK\x03\x04"
PACKED: dict[bytes, Callable[[Any], Any]] = {  # the first bytes, as a regular expression
    rb"\x1f\x8b": gzip.open,
    rb"\xfd7zXZ\0": lzma.open,
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,
}
PACKED_NAMES = (".gz", ".tgz", ".xz", ".txz", ".bz2")


class Unpacked:
    """The decompressed bytes of the buffered stream `packed`. `head` holds the first of them, which are read as well.

    Raises UserError if the stream is damaged, if its decompressed size is not plausible, or if the name at the end of
    `label` promises a compression that the first bytes do not have.
    """

    def __init__(self, packed: Any, label: str) -> None:
        self.packed, self.label, self.size = packed, label, 0
        start = packed.peek(HEAD)
        opener = next((opener for bytes_, opener in PACKED.items() if re.match(bytes_, start)), None)
        if opener is None and label.endswith(PACKED_NAMES):
            raise UserError(f"{label} is damaged or truncated: it begins with {start[:12]!r}")
        self.stream = opener(packed) if opener else packed
        self.head = self.undamaged(self.stream.peek)[:HEAD]

    def read(self, size: int = CHUNK) -> bytes:
        data = self.undamaged(self.stream.read, size)
        self.size += len(data)
        refuse_bomb(self.size, self.packed.tell(), self.label)
        return data

    def undamaged(self, read: Callable[[int], bytes], size: int = HEAD) -> bytes:
        try:
            return read(size)
        except DAMAGE as error:
            raise UserError(f"{self.label} is damaged or truncated: {error}") from None

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
    """Open a plain or compressed file as a stream of its decompressed bytes, with a progress bar."""
    with reading(path) as packed:
        yield Unpacked(packed, str(path))


def members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    """Yield each member of `names` of a zip or tar file, in the archive's order, as a stream valid until the next yield.

    A compressed member is decompressed. A tar file is read to its end, so that its own checksums are verified. Raises
    UserError if the archive is damaged, holds anything unsafe or lacks one of `names`.
    """
    yield from zip_members(archive, names) if is_zip(archive) else tar_members(archive, names)


def is_zip(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(ZIP)) == ZIP


def tar_members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    seen: list[str] = []
    with reading(archive) as packed:
        stream = Unpacked(packed, str(archive))
        try:
            # tarfile only reads the stream, but typeshed requires all methods of a file.
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                for member in tar:
                    name = safe_name(member.name, archive, seen if member.name.removeprefix("./") in names else [])
                    safe_name(member.linkname, archive, [])
                    if member.ischr() or member.isblk() or member.isfifo():
                        raise UserError(f"{archive} is refused: it holds {name!r}, a device or a pipe")
                    seen.append(name)
                    # tarfile skips a member in small reads. With a false, huge size in the header, it would not end.
                    refuse_bomb(tar.offset, archive.stat().st_size, f"{archive}: {name}")
                    if name in names:
                        yield name, member_stream(tar, member, f"{archive}: {name}")
            for _ in stream:
                pass
        except UserError:
            raise
        except (tarfile.TarError, ValueError) as error:  # tarfile does not check the numbers and paths of headers
            raise UserError(f"{archive} is damaged, truncated or not a tar file: {error}") from None
    require_members(archive, names, seen)


def zip_members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    with zip_file(archive) as (file, held):
        require_members(archive, names, list(held))
        for name in names:
            label, info = f"{archive}: {name}", held[name]
            refuse_bomb(info.file_size, info.compress_size, label)  # zipfile reads no more than the stated size
            with file.open(info) as stream:
                yield name, Unpacked(stream, label)


@contextlib.contextmanager
def zip_file(archive: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open a zip file. Yields it and its members by name. Raises UserError if it is damaged or holds anything unsafe."""
    try:
        with zipfile.ZipFile(archive) as file:
            held: dict[str, zipfile.ZipInfo] = {}
            for info in file.infolist():
                held[safe_name(info.filename, archive, held)] = info
            yield file, held
    except UserError:
        raise
    except (zipfile.BadZipFile, RuntimeError, ValueError, EOFError) as error:  # RuntimeError: encrypted
        raise UserError(f"{archive} is damaged, truncated, encrypted or not a zip file: {error}") from None


def language_members(archive: Path, languages: tuple[str, str]) -> tuple[str, str]:
    """Return the two members of a zip file of OPUS that end in `.LANGUAGE`. Raises UserError unless there is one each."""
    with zip_file(archive) as (_, names):
        first, second = ([name for name in names if name.endswith(f".{language}")] for language in languages)
        if len(first) != 1 or len(second) != 1:
            raise UserError(
                f"{archive}: one member that ends in .{languages[0]} and one in .{languages[1]} are expected; it has "
                f"{', '.join(list(names)[:9]) or 'none'}; {{archive: ..., source: ..., target: ...}} names members"
            )
    return first[0], second[0]


def safe_name(path: str, archive: Path, seen: Container[str]) -> str:
    """Return a member's path without a leading `./`. Raises UserError for an unsafe path, and for one in `seen`.

    tar -x would take the last of two members with one name, which may have replaced the first.
    """
    if "\0" in path:
        raise ValueError(f"the path {path!r} contains NUL")
    if path.startswith("/") or ".." in re.split(r"[/\\]", path):
        raise UserError(f"{archive} is refused: it holds the unsafe path {path!r}")
    name = path.removeprefix("./")
    if name in seen:
        raise UserError(f"{archive} is refused: it holds {name} twice")
    return name


def require_members(archive: Path, names: Sequence[str], seen: Sequence[str]) -> None:
    for name in sorted(set(names) - set(seen)):
        near = difflib.get_close_matches(name, seen, n=3, cutoff=0.3) or seen[:3]
        raise UserError(f"{archive}: it has no member {name}; similar names are {', '.join(near) or 'none: it is empty'}")


def member_stream(tar: tarfile.TarFile, member: tarfile.TarInfo, label: str) -> Unpacked:
    if not member.isreg() or member.issparse():
        raise UserError(f"{label} is refused: it is not a regular file")
    content = tar.extractfile(member)
    assert content is not None  # extractfile returns a stream for every regular file
    return Unpacked(content, label)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """Open `path` for reading, with a progress bar of the bytes read."""
    with (
        open(path, "rb") as file,
        Progress.wrapattr(file, "read", total=path.stat().st_size, unit="B", unit_scale=True, desc=path.name) as followed,
    ):
        yield followed  # type: ignore[misc]  # tqdm passes on all methods of `file`; types-tqdm declares only `read`
