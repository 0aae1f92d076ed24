"""Stage 1: a corpus as plain text, from files, from archives on the web, or made here.

    python -m pipeline.download CORPUS --out data/CORPUS/raw

Reads params.yaml (corpora.CORPUS.languages and .download, machine.mirror), the files and archives named there, and
what was downloaded before (work/downloads). Writes {train,dev,test[,test_filtered]}.LANGUAGE into the folder --out:
UTF-8 as the source has it, one segment a line, line n of one language the translation of line n of the other.
Records sums that were never published in checksums.json.
"""

import argparse
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipeline import stage
from pipeline.corpora.archives import tar_suffix
from pipeline.corpora.collecting import collect, make
from pipeline.corpora.fetching import Fetcher, Sum, file_name, is_url
from pipeline.corpora.transfer import PATIENT, say
from pipeline.demonstration.grammar import GeneratorConfig
from pipeline.machine import machine
from pipeline.params import entry, languages, load
from transformer.config.reading import UserError, read, require, shown, unknown
from transformer.files import atomic_folder

SETS = ("train", "dev", "test", "test_filtered")
DIGITS = {"sha256": 64, "md5": 32}
SUMS = {"source_sha256", "target_sha256"}
FORMS = ({"source", "target"}, {"archive", "source", "target"}, {"parquet"}, {"hold_out"})


@dataclass(frozen=True)
class Archive:
    """A tar file, plain or packed, and its published sum; without one the first download is recorded."""

    url: str  # or a path
    sha256: str | None
    md5: str | None

    def __post_init__(self) -> None:
        tar_suffix(file_name(self.url) if is_url(self.url) else self.url)
        check_sums(self, "sha256", "md5")
        require(not (self.sha256 and self.md5), "md5", self.md5, "one sum is enough, sha256 or md5")

    @property
    def sum(self) -> Sum | None:
        return pinned("sha256", self.sha256) or pinned("md5", self.md5)


@dataclass(frozen=True)
class Part:
    """Parallel text: two files, two members of an archive, parquet files, or so many pairs held out of train."""

    archive: str | None
    source: str | None  # a path or URL, or a member of the archive; .gz, .xz and .sgm are unpacked
    target: str | None
    source_sha256: str | None
    target_sha256: str | None
    parquet: tuple[str, ...] | None  # paths or URLs; `a-*-of-00003.parquet` stands for its three files
    hold_out: int | None

    def __post_init__(self) -> None:
        given = {field.name for field in fields(self) if getattr(self, field.name) is not None}
        if given not in FORMS and given - SUMS != {"source", "target"}:
            raise UserError(
                f"source: {', '.join(sorted(given)) or 'nothing'} together are no part of a corpus; valid are source "
                "and target (with source_sha256, target_sha256), archive with source and target, parquet, hold_out"
            )
        for address in [self.source, self.target] * (self.archive is None) + self.parquet_files:
            if address is not None:
                is_url(address)  # refuses what is neither URL nor path
        check_sums(self, *SUMS)
        require(self.hold_out is None or self.hold_out > 0, "hold_out", self.hold_out, "a number above 0 is expected")
        require(self.parquet != (), "parquet", [], "at least one path or URL is expected")

    @property
    def parquet_files(self) -> list[str]:
        """Every file, in order: the hub splits large tables and says in each name into how many."""
        return [file for address in self.parquet or () for file in pieces(address)]


@dataclass(frozen=True)
class DownloadConfig:
    """Where a corpus comes from: `generate`, or a list of parts for each set."""

    generate: GeneratorConfig | None
    archives: dict[str, Archive] | None
    train: tuple[Part, ...] | None
    dev: tuple[Part, ...] | None
    test: tuple[Part, ...] | None
    test_filtered: tuple[Part, ...] | None

    def __post_init__(self) -> None:
        if self.generate is not None:
            others = [field.name for field in fields(self)[1:] if getattr(self, field.name) is not None]
            require(not others, "generate", others, "these do not go with it: it makes every set")
            return
        for name in SETS:
            parts = getattr(self, name)
            require(parts is not None or name == "test_filtered", name, parts, "where the set comes from is expected")
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
    """The files that an address with `*-of-NNNNN` stands for; any other is one file."""
    count = re.search(r"\*-of-(\d{5})\b", address)
    return [address.replace("*", f"{number:05}", 1) for number in range(int(count[1]))] if count else [address]


def check_sums(config: Any, *names: str) -> None:
    for name in names:
        value, digits = getattr(config, name), DIGITS[name.rpartition("_")[2]]
        valid = value is None or re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", value)
        require(bool(valid), name, value, f"{digits} hexadecimal digits are expected")


def pinned(kind: str, value: str | None) -> Sum | None:
    return None if value is None else Sum(kind, value.lower(), "params.yaml")


def require_name(name: Any, where: str) -> None:
    """Refuse what could lead out of a folder, mean something to a shell or split a key of params.yaml."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UserError(
            f"{where}: {shown(name)} is no name; letters, digits, - and _ are valid, a letter or digit first"
        )


def work(config: DownloadConfig, codes: tuple[str, str], fetcher: Fetcher, out: Path) -> None:
    """Fill the folder `out`, all of it or nothing."""
    with atomic_folder(out) as folder:
        if config.generate is not None:
            pairs = make(config.generate, codes, folder)
        else:
            sets = {name: getattr(config, name) for name in SETS if getattr(config, name)}
            pairs = collect(sets, config.archives or {}, codes, fetcher, folder)
        for name, count in pairs.items():
            if count == 0:
                raise UserError(f"{name} holds no pair; a corpus without one is of no use")
    for name, count in pairs.items():
        say(f"{out / name}.{{{','.join(codes)}}}: {count:,} pairs")


def main(arguments: argparse.Namespace) -> None:
    require_name(arguments.corpus, "corpus")
    params = load()
    download = entry(params, "corpora", arguments.corpus).get("download")
    config = read(DownloadConfig, download, f"params.yaml: corpora.{arguments.corpus}.download")
    codes = languages(params, arguments.corpus)
    for code in codes:
        require_name(code, f"params.yaml: corpora.{arguments.corpus}.languages")
    fetcher = Fetcher(Path("work/downloads"), Path("checksums.json"), machine(params).mirror, PATIENT)
    work(config, codes, fetcher, arguments.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="download", description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", help="a corpus of params.yaml")
    parser.add_argument("--out", type=Path, required=True)
    stage.run(main, parser)
