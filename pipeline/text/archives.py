"""Reads untrusted compressed files, and named members of untrusted archives, as streams of limited size.

The first bytes of a file tell how it is compressed; its name does not matter. No file is written under a name from an
archive, so these names can do no harm. An archive with a device, a pipe, an absolute path or a path with `..` is still
refused, because no published corpus has any of these.
"""

import bz2
import contextlib
import difflib
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.running.progress import Progress
from transformer.config.reading import UserError

CHUNK = 1 << 20
HEAD = 1 << 13  # bytes at the start of a file by which its form is recognised
HARMLESS = 1 << 24  # bytes; up to this size nothing is refused as a decompression bomb
LARGEST_RATIO = 100  # decompressed size divided by compressed size; 3 to 20 for text
LARGEST = 1 << 36  # bytes; 64 GiB, ten times the longest side of WMT14
# RuntimeError: an encrypted zip file. ValueError: tarfile and zipfile do not check all numbers and paths of headers.
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, ValueError)
PACKED: dict[bytes, Callable[[Any], Any]] = {  # the first bytes, as a regular expression
    rb"\x1f\x8b": gzip.open,
    rb"\xfd7zXZ\0|\x5d\0\0": lambda packed: io.BufferedReader(Streams(packed, lzma.LZMADecompressor)),
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": lambda packed: io.BufferedReader(Streams(packed, bz2.BZ2Decompressor)),
}


class Streams(io.RawIOBase):
    """The content of one or several compressed streams, with zeros as padding after each.

    lzma.open and bz2.open end in silence at such zeros, and at a stream whose first bytes are damaged.
    """

    def __init__(self, packed: Any, decompressor: Callable[[], Any]) -> None:
        self.packed, self.decompressor, self.current = packed, decompressor, decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            given = b""
            if self.current.eof:
                given = self.current.unused_data.lstrip(b"\0")
                while not given and (more := self.packed.read(CHUNK)):
                    given = more.lstrip(b"\0")
                if not given:
                    break
                self.current = self.decompressor()
            elif self.current.needs_input and not (given := self.packed.read(CHUNK)):
                raise EOFError("its end is missing")
            data = self.current.decompress(given, len(buffer))
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def undamaged(label: object) -> Iterator[None]:
    """Turn the errors of the libraries that decompress into UserError."""
    try:
        yield
    except UserError:
        raise
    except DAMAGE as error:
        raise UserError(f"{label} is damaged or truncated: {error}") from None


class Unpacked:
    """The decompressed bytes of the buffered stream `packed`. `head` holds the first of them, which are read as well.

    Raises UserError if the stream is damaged, if its decompressed size is not plausible, or if the name at the end of
    `label` promises a compression that the first bytes do not have.
    """

    documents: tuple[bytes, ...] = ()  # of an .sgm file that was read: each name, then that of each segment, or b""

    def __init__(self, packed: Any, label: str) -> None:
        self.packed, self.label, self.size = packed, label, 0
        with undamaged(label):
            start = packed.peek(HEAD)
            opener = next((opener for bytes_, opener in PACKED.items() if re.match(bytes_, start)), None)
            if opener is None and label.endswith((".gz", ".tgz", ".xz", ".txz", ".lzma", ".bz2")):
                raise UserError(f"{label} is damaged or truncated: it begins with {start[:12]!r}")
            self.stream = opener(packed) if opener else packed
            self.head = self.stream.peek(HEAD)[:HEAD]

    def read(self, size: int = CHUNK) -> bytes:
        with undamaged(self.label):
            data = self.stream.read(size)
        self.size += len(data)
        refuse_bomb(self.size, self.packed.tell(), self.label)
        return data

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")


def refuse_bomb(unpacked: int, packed: int, label: str) -> None:
    if unpacked > min(LARGEST, max(HARMLESS, LARGEST_RATIO * packed)):
        raise UserError(f"{label} is refused: {packed:,} bytes unpack to {unpacked:,}, which no text does")


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a plain or compressed file as a stream of its decompressed bytes, with a progress bar of the bytes read."""
    bar: Any = {"total": path.stat().st_size, "unit": "B", "unit_scale": True, "desc": path.name}
    with open(path, "rb") as file, Progress.wrapattr(file, "read", **bar) as followed:
        yield Unpacked(followed, str(path))


def members(archive: Path, names: Sequence[str]) -> Iterator[tuple[str, Unpacked]]:
    """Yield each of `names` with that member of a zip or tar file, in the archive's order, as a stream of its content.

    A stream is valid until the next yield. A compressed member is decompressed. A name that begins with a dot stands for
    the only member that ends in it, apart from the attributes that macOS adds as `._NAME` (RFC 1740). Raises UserError if
    the archive is damaged, holds anything unsafe, lacks one of `names` or holds one twice: tar -x would take the last of
    these, which may have replaced the first.
    """
    seen, found = [], dict.fromkeys(names, "")
    for path, link, opened in entries(archive):
        for each in (path, link):
            if each.startswith("/") or ".." in re.split(r"[/\\]", each) or "\0" in each:
                raise UserError(f"{archive} is refused: it holds the unsafe path {each!r}")
        member = path.removeprefix("./")
        seen.append(member)
        of_text = "/._" not in f"/{member}"
        for name in names:
            if member == name or (of_text and name.startswith(".") and member.endswith(name)):
                if found[name]:
                    raise UserError(f"{archive} is refused: it holds {found[name]} and {member}; one {name} is expected")
                if opened is None:
                    raise UserError(f"{archive}: {member} is refused: it is not a regular file")
                found[name] = member
                with undamaged(archive):
                    content = opened()
                yield name, Unpacked(content, f"{archive}: {member}")
    for name in (name for name in names if not found[name]):
        near = difflib.get_close_matches(name, seen, n=3, cutoff=0.3) or seen[:3]
        raise UserError(f"{archive}: it has no member {name}; similar names are {', '.join(near) or 'none: it is empty'}")


def entries(archive: Path) -> Iterator[tuple[str, str, Callable[[], Any] | None]]:
    """Yield the path of each member, the path to which it links, and what opens it, or None unless it is a regular file."""
    with undamaged(archive), unpacked(archive) as stream:
        if stream.head.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(archive) as packed:
                for info in packed.infolist():  # zipfile reads no more than the stated size
                    refuse_bomb(info.file_size, info.compress_size, f"{archive}: {info.filename}")
                    yield info.filename, "", None if info.is_dir() else partial(packed.open, info)
            return
        # tarfile only reads the stream, but typeshed requires all methods of a file.
        with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK) as tar:  # type: ignore[call-overload]
            for member in tar:
                if member.ischr() or member.isblk() or member.isfifo():
                    raise UserError(f"{archive} is refused: it holds {member.name!r}, a device or a pipe")
                # tarfile skips a member in small reads. With a false, huge size in the header, it would not end.
                refuse_bomb(tar.offset, archive.stat().st_size, f"{archive}: {member.name}")
                regular = member.isreg() and not member.issparse()
                yield member.name, member.linkname, partial(tar.extractfile, member) if regular else None
        all(stream)  # reads to the end, so that its own checksums are verified
