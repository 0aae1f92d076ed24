"""The block `download` of a corpus: the source of its text."""

import re
from dataclasses import dataclass, fields
from typing import Any

from pipeline.settings.addresses import Sum, file_name, is_url, require_address, tar_suffix
from transformer.config.reading import UserError, require, require_seed, unknown

SETS = ("train", "dev", "test", "test_filtered")
DIGITS = {"sha256": 64, "md5": 32}
SUMS = {"source_sha256", "target_sha256"}
FORMS = ({"source", "target"}, {"archive", "source", "target"}, {"parquet"})


@dataclass(frozen=True)
class GeneratorConfig:
    """The demonstration corpus: the seed, and the number of pairs in each set."""

    seed: int
    train: int
    dev: int
    test: int

    def __post_init__(self) -> None:
        require_seed(self.seed)
        for key in ("train", "dev", "test"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")


@dataclass(frozen=True)
class Archive:
    """A tar file, plain or compressed, and its published checksum.

    If no checksum was published, the checksum of the first download is recorded.
    """

    url: str  # or a path below text/
    sha256: str | None
    md5: str | None

    def __post_init__(self) -> None:
        tar_suffix(file_name(self.url) if is_url(self.url) else self.url)
        require_address(self.url)
        check_sums(self, "sha256", "md5")
        require(not (self.sha256 and self.md5), "md5", self.md5, "one checksum is expected, sha256 or md5")

    @property
    def sum(self) -> Sum | None:
        return pinned("sha256", self.sha256) or pinned("md5", self.md5)


@dataclass(frozen=True)
class Part:
    """A part of a set: two files, two members of an archive, parquet files, or pairs held out of train."""

    archive: str | None
    source: str | None  # a URL, a path below text/, or a member of the archive; .gz, .xz and .sgm are decoded
    target: str | None
    source_sha256: str | None  # of the decompressed file
    target_sha256: str | None
    parquet: tuple[str, ...] | None  # URLs or paths; `a-*-of-00003.parquet` stands for three files
    first: int | None  # use only this many pairs, from the start
    hold_out: int | None  # take this many pairs out of train

    def __post_init__(self) -> None:
        given = {field.name for field in fields(self) if getattr(self, field.name) is not None}
        form = given - {"first"}
        if given != {"hold_out"} and form not in FORMS and form - SUMS != {"source", "target"}:
            raise UserError(
                f"{min(given, default='source')}: the keys {', '.join(sorted(given)) or 'none'} are no part of a corpus; "
                "expected are source and target (with source_sha256, target_sha256), or archive, source and target, or "
                "parquet, each with or without first; or hold_out alone"
            )
        for address in [self.source, self.target] * (self.archive is None) + self.parquet_files:
            if address is not None:
                require_address(address)
        check_sums(self, *SUMS)
        for key in ("first", "hold_out"):
            value = getattr(self, key)
            require(value is None or value > 0, key, value, "a number above 0 is expected")
        require(self.parquet != (), "parquet", [], "at least one URL or path is expected")

    @property
    def sides(self) -> tuple[str, str]:
        """Return the source and the target of a part that consists of two files or two members of an archive."""
        assert self.source is not None and self.target is not None
        return self.source, self.target

    @property
    def parquet_files(self) -> list[str]:
        """All parquet files, in order.

        The Hugging Face hub splits a large table, and each file name states the number of files.
        """
        return [file for address in self.parquet or () for file in pieces(address)]


@dataclass(frozen=True)
class DownloadConfig:
    """The source of a corpus: `generate`, or a list of parts for each set."""

    generate: GeneratorConfig | None
    archives: dict[str, Archive] | None
    train: tuple[Part, ...] | None
    dev: tuple[Part, ...] | None
    test: tuple[Part, ...] | None
    test_filtered: tuple[Part, ...] | None

    def __post_init__(self) -> None:
        if self.generate is not None:
            others = [field.name for field in fields(self)[1:] if getattr(self, field.name) is not None]
            require(not others, "generate", others, "generate makes every set and excludes these")
            return
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
        require(part.hold_out is None or alone, name, part.hold_out, "hold_out is for dev and test, as their only part")


def pieces(address: str) -> list[str]:
    """Return the files that an address with `*-of-NNNNN` stands for; any other address is one file."""
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
