"""Where text comes from, and the checksums of its files: the block `download` of a corpus, and the block `sets`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pipeline.settings.addresses import Address, FileAddress, is_url, shards
from pipeline.settings.params import entry
from transformer.config.reading import Count, Pattern, UserError, convert, hints, read, require, shown, unknown

SETS = ("train", "dev", "test", "test_filtered")
Sha256 = Annotated[str, Pattern("[0-9a-fA-F]{64}", "a text of 64 hexadecimal digits")]
Md5 = Annotated[str, Pattern("[0-9a-fA-F]{32}", "a text of 32 hexadecimal digits")]
SUMS = {"source_sha256", "target_sha256"}
FILES = ("tsv", "jsonl", "tmx", "zip", "parquet")  # forms in which one file holds both sides
ENCODED = {"source", "tsv", "jsonl", "zip"}  # forms whose text may have another encoding than UTF-8
FORMS = ({"source", "target"}, {"archive", "source", "target"}, *({form} for form in FILES))


def require_encoding(name: str) -> None:
    try:
        "a".encode(name)
    except (LookupError, ValueError):  # no codec of text
        expected = "the name of an encoding, or two, of the source and target, is expected"
        raise UserError(f"{name!r} is not possible; {expected}") from None


def require_column(column: Any) -> None:
    if type(column) is not str and (type(column) is not int or column < 1):
        raise UserError(f"{shown(column)} is not possible; the number of a column, from 1, or its name is expected")


Encoding = Annotated[str, require_encoding]
Column = Annotated[Any, require_column]


def require_entries(settings: Any, *names: str) -> None:
    for key in names:
        require(getattr(settings, key) != (), key, [], "at least one entry is expected")


@dataclass(frozen=True)
class Sum:
    """The checksum that a file must have."""

    kind: str  # sha256 or md5
    value: str
    origin: str  # the file that states the checksum
    unpacked: bool = False  # the checksum is that of the decompressed content of a compressed file


def pinned(kind: str, value: str | None, unpacked: bool = False) -> Sum | None:
    """Return the checksum that params.yaml states, or None."""
    return None if value is None else Sum(kind, value.lower(), "params.yaml", unpacked)


@dataclass(frozen=True)
class Archive:
    """A tar file, plain or compressed, or a zip file, and its published checksum.

    If no checksum was published, the checksum of the first download is recorded.
    """

    url: tuple[Address, ...]  # URLs of one file, tried in order; or a path below text/
    sha256: Sha256 | None
    md5: Md5 | None

    def __post_init__(self) -> None:
        require_entries(self, "url")
        for address in self.url:
            require(is_url(address) or len(self.url) == 1, "url", address, "several addresses are http(s) URLs")
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
    source_sha256: Sha256 | None  # of the decompressed file
    target_sha256: Sha256 | None
    tsv: tuple[FileAddress, ...] | None  # URLs or paths, here and below; `a-*-of-00003.parquet` stands for three files
    jsonl: tuple[FileAddress, ...] | None
    tmx: tuple[FileAddress, ...] | None
    zip: tuple[FileAddress, ...] | None  # each with one member for each language, as on OPUS
    parquet: tuple[FileAddress, ...] | None
    columns: tuple[Column, Column] | None  # of a .tsv: source and target, by number from 1, or by name in its first row
    score: Column | None  # the column of a .tsv that has a score
    least: float | None  # use only the rows with at least this score
    encoding: tuple[Encoding, ...] | None  # if not UTF-8: of the text, or of the source and of the target
    first: Count | None  # use only this many pairs, from the start
    lines: Count | None  # the known number of lines, for a file that is cut off or released anew; not with `first`
    every: Count | None  # use only the first of every so many pairs, evenly spread
    hold_out: Count | None  # take this many pairs out of train

    def __post_init__(self) -> None:
        given = {key for key in hints(Part) if getattr(self, key) is not None}
        form = given - {"first", "lines", "every", "encoding", "columns", "score", "least"}
        if given != {"hold_out"} and form not in FORMS and form - SUMS != {"source", "target"}:
            raise UserError(
                f"{min(given, default='source')}: the keys {', '.join(sorted(given)) or 'none'} do not define a part; "
                "expected are source and target (with source_sha256, target_sha256), or archive, source and target, or "
                f"one of {', '.join(FILES)}, each with or without first, lines, every and encoding; or hold_out alone"
            )
        for key in ("source", "target"):
            if self.archive is None and (address := getattr(self, key)):
                convert(Address, address, key)
        if self.source is not None and self.source == self.target:
            raise UserError(f"target: {self.source!r} is the source as well; {one_file(self.source)}")
        require_entries(self, *FILES)
        require(
            not (self.first and self.lines), "lines", self.lines, "it is not possible with first, which reads no further"
        )
        if chosen := given & {"columns", "score", "least"}:
            key = min(chosen)
            together = self.tsv and self.columns and (self.score is None) == (self.least is None)
            require(bool(together), key, getattr(self, key), "tsv with columns, and score with least, are expected")
            different = len({*(self.columns or ()), self.score} - {None}) == 2 + (self.score is not None)
            require(different, "columns", self.columns, "different columns are expected for source, target and score")
        if self.encoding is not None:
            require(bool(given & ENCODED), "encoding", self.encoding[0], "a .tmx or .parquet file states its own encoding")
            several = (1, 2) if self.source or self.zip else (1,)
            expected = f"{' or '.join(map(str, several))} is expected"
            require(len(self.encoding) in several, "encoding", self.encoding, expected)

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


def one_file(name: str) -> str:
    """Return what is expected instead of one file, or one member of an archive, on both sides."""
    form = next((form for form in FILES if name.endswith((f".{form}", f".{form}.gz"))), "tsv")
    return f"a file that holds both sides is named by its form ({', '.join(FILES)}), as in {{{form}: {name}}}"


@dataclass(frozen=True)
class SetConfig(Part):
    """An entry of `sets`: parallel text, normalised with the settings of its corpus. A set causes no training."""

    corpus: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hold_out is None, "hold_out", self.hold_out, "source and target are expected, as a set has no train")


@dataclass(frozen=True)
class DownloadConfig:
    """The source of a corpus: a list of parts for each set."""

    archives: dict[str, Archive] | None
    train: tuple[Part, ...] | None
    dev: tuple[Part, ...] | None
    test: tuple[Part, ...] | None
    test_filtered: tuple[Part, ...] | None

    def __post_init__(self) -> None:
        require_entries(self, *SETS)
        for name in SETS:
            parts = getattr(self, name)
            require(parts is not None or name == "test_filtered", name, parts, "the source of the set is expected")
            for part in parts or ():
                if part.archive is not None and part.archive not in (self.archives or {}):
                    raise UserError(unknown(part.archive, list(self.archives or {}), "archives"))
                alone = part.hold_out is None or (name in ("dev", "test") and len(parts) == 1)
                require(alone, name, part.hold_out, "only dev and test can be held out, each as one part")


def download_config(params: Mapping, corpus: str) -> DownloadConfig:
    return read(DownloadConfig, entry(params, "corpora", corpus)["download"], f"params.yaml: corpora.{corpus}.download")
