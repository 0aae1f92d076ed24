"""The block `download` of a corpus: where its text comes from. Checks addresses, checksums and names of archives."""

import re
import urllib.parse
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any

from transformer.config.reading import UserError, require, unknown

TEXT = "text"  # the folder of the user's own text; every download stage in dvc.yaml depends on it
DEMONSTRATION = f"{TEXT}/demo"  # the sentence pairs that come with the project
SETS = ("train", "dev", "test", "test_filtered")
DIGITS = {"sha256": 64, "md5": 32}
SUMS = {"source_sha256", "target_sha256"}
FILES = ("tsv", "jsonl", "tmx", "zip", "parquet")  # forms in which one file holds both sides
ENCODED = {"source", "tsv", "jsonl", "zip"}  # forms whose text may have another encoding than UTF-8
FORMS = ({"source", "target"}, {"archive", "source", "target"}, *({form} for form in FILES))


@dataclass(frozen=True)
class Sum:
    """The checksum that a file must have."""

    kind: str  # sha256 or md5
    value: str
    origin: str  # the file that states the checksum
    unpacked: bool = False  # the checksum is that of the decompressed content of a compressed file


@dataclass(frozen=True)
class Archive:
    """A tar file, plain or compressed, or a zip file, and its published checksum.

    If no checksum was published, the checksum of the first download is recorded.
    """

    url: tuple[str, ...]  # URLs of one file, tried in order; or a path below text/
    sha256: str | None
    md5: str | None

    def __post_init__(self) -> None:
        require(bool(self.url), "url", [], "at least one URL or a path is expected")
        for address in self.url:
            require_address(address)
            require(is_url(address) or len(self.url) == 1, "url", address, "several addresses are http(s) URLs")
        check_sums(self, "sha256", "md5")
        require(not (self.sha256 and self.md5), "md5", self.md5, "one checksum is expected, sha256 or md5")

    @property
    def sum(self) -> Sum | None:
        return pinned("sha256", self.sha256) or pinned("md5", self.md5)


@dataclass(frozen=True)
class Part:
    """A part of a set: two files, two members of an archive, files that hold both sides, or pairs held out of train."""

    archive: str | None
    source: str | None  # a URL, a path below text/, or a member of the archive; compressed files and .sgm are decoded
    target: str | None
    source_sha256: str | None  # of the decompressed file
    target_sha256: str | None
    tsv: tuple[str, ...] | None  # URLs or paths, here and below; `a-*-of-00003.parquet` stands for three files
    jsonl: tuple[str, ...] | None
    tmx: tuple[str, ...] | None
    zip: tuple[str, ...] | None  # each with one member for each language, as on OPUS
    parquet: tuple[str, ...] | None
    encoding: tuple[str, ...] | None  # if not UTF-8: of the text, or of the source and of the target
    first: int | None  # use only this many pairs, from the start
    hold_out: int | None  # take this many pairs out of train

    def __post_init__(self) -> None:
        given = {field.name for field in fields(self) if getattr(self, field.name) is not None}
        form = given - {"first", "encoding"}
        if given != {"hold_out"} and form not in FORMS and form - SUMS != {"source", "target"}:
            raise UserError(
                f"{min(given, default='source')}: the keys {', '.join(sorted(given)) or 'none'} do not define a part; "
                "expected are source and target (with source_sha256, target_sha256), or archive, source and target, or "
                f"one of {', '.join(FILES)}, each with or without first and encoding; or hold_out alone"
            )
        for address in [self.source, self.target] * (self.archive is None) + list(self.files):
            if address is not None:
                require_address(address)
        if self.source is not None and self.source == self.target:
            raise UserError(f"target: {self.source!r} is the source as well; {one_file(self.source, self.archive)}")
        check_sums(self, *SUMS)
        for key in ("first", "hold_out"):
            value = getattr(self, key)
            require(value is None or value > 0, key, value, "a number above 0 is expected")
        for key in FILES:
            require(getattr(self, key) != (), key, [], "at least one URL or path is expected")
        self.check_encoding(bool(given & ENCODED))

    def check_encoding(self, possible: bool) -> None:
        if self.encoding is None:
            return
        expected = "the name of an encoding, or two, of the source and of the target, is expected"
        require(possible, "encoding", self.encoding[0], "a .tmx or .parquet file states its own encoding")
        require(len(self.encoding) in ((1, 2) if self.source or self.zip else (1,)), "encoding", self.encoding, expected)
        for name in self.encoding:
            try:
                known = "a".encode(name).decode(name) == "a"
            except (LookupError, ValueError):  # no codec of text
                known = False
            require(known, "encoding", name, expected)

    @property
    def sides(self) -> tuple[str, str]:
        """Return the source and the target of a part that consists of two files or two members of an archive."""
        assert self.source is not None and self.target is not None
        return self.source, self.target

    @property
    def encodings(self) -> tuple[str | None, str | None]:
        """Return the encoding of the source and that of the target."""
        return (self.encoding[0], self.encoding[-1]) if self.encoding else (None, None)

    @property
    def form(self) -> str:
        """Return which of FILES the part consists of, or ""."""
        return next((form for form in FILES if getattr(self, form)), "")

    @property
    def files(self) -> list[str]:
        """All files that hold both sides, in order.

        The Hugging Face hub splits a large table, and each file name states the number of files.
        """
        return [file for address in getattr(self, self.form or "parquet") or () for file in shards(address)]


def one_file(name: str, archive: str | None = None) -> str:
    """Return what is expected instead of one file on both sides."""
    if archive is not None:
        return "another member is expected"
    form = next((form for form in FILES if name.endswith((f".{form}", f".{form}.gz"))), None)
    return f"a file that holds both sides is named by its form, as in {{{form or 'tsv'}: {name}}}" + (
        "" if form else f"; the forms are {', '.join(FILES)}"
    )


@dataclass(frozen=True)
class DownloadConfig:
    """The source of a corpus: a list of parts for each set."""

    archives: dict[str, Archive] | None
    train: tuple[Part, ...] | None
    dev: tuple[Part, ...] | None
    test: tuple[Part, ...] | None
    test_filtered: tuple[Part, ...] | None

    def __post_init__(self) -> None:
        for name in SETS:
            parts = getattr(self, name)
            require(parts is not None or name == "test_filtered", name, parts, "the source of the set is expected")
            require(parts != (), name, [], "at least one part is expected")
            for part in parts or ():
                self.check_part(name, part)

    def check_part(self, name: str, part: Part) -> None:
        archives = self.archives or {}
        if part.archive is not None and part.archive not in archives:
            raise UserError(unknown(part.archive, list(archives), "archives"))
        alone = name in ("dev", "test") and len(getattr(self, name)) == 1
        require(part.hold_out is None or alone, name, part.hold_out, "only dev and test can be held out, each as one part")


def shards(address: str) -> list[str]:
    """Return the shards that `*-of-NNNNN` in an address stands for; any other address is one file."""
    count = re.search(r"\*-of-(\d{5})\b", address)
    return [address.replace("*", f"{number:05}", 1) for number in range(int(count[1]))] if count else [address]


def check_sums(config: Any, *names: str) -> None:
    for name in names:
        value, digits = getattr(config, name), DIGITS[name.rpartition("_")[2]]
        valid = value is None or re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", value)
        require(bool(valid), name, value, f"{digits} hexadecimal digits are expected")


def pinned(kind: str, value: str | None, unpacked: bool = False) -> Sum | None:
    """Return the checksum that params.yaml states, or None."""
    return None if value is None else Sum(kind, value.lower(), "params.yaml", unpacked)


def require_address(address: str) -> None:
    """Refuse an address that is neither the http(s) URL of a file nor a path below text/.

    DVC notices a change of a file below text/. It would not notice a change elsewhere.
    """
    if is_url(address):
        return
    path = PurePosixPath(address)
    if path.is_absolute() or path.parts[:1] != (TEXT,) or len(path.parts) < 2 or ".." in path.parts:
        raise UserError(
            f"{address!r} is refused; put the file or a link to it into the folder {TEXT}/ and name it "
            f"{TEXT}/{path.name or 'my.en'}, or give an http(s) URL (DVC does not notice changes elsewhere)"
        )


def is_url(address: str) -> bool:
    """Return True for the URL of a file and False for a path.

    Raises UserError for an address that `on_the_web` refuses, and for a URL that does not end in a file name.
    """
    if not on_the_web(address):
        return False
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", file_name(address), re.ASCII):
        raise UserError(f"{address!r} is refused; a URL ends in a file name, as in .../dev.tgz")
    return True


def on_the_web(address: str) -> bool:
    """Return True for an http or https URL and False for a path.

    Raises UserError for another scheme (file:, ftp:, ...), and for a URL with an invalid host or port or a .. in its path.
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", address)
    if scheme is None:
        return False
    if scheme[1].lower() not in ("http", "https"):
        raise UserError(f"{address!r}: {scheme[1]}: is refused; an address is an http:// or https:// URL or a path")
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.hostname and parts.port != 0 and ".." not in parts.path.split("/")
    except ValueError:
        valid = False  # for example brackets without an IPv6 address, or a port that is not a number up to 65535
    if not valid:
        raise UserError(f"{address!r} is refused; a URL has a host and no .., as in https://host/dev.tgz")
    return True


def file_name(url: str) -> str:
    return urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]
