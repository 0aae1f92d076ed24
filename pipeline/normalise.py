"""Clean a corpus, and filter its training pairs.

    python -m pipeline.normalise CORPUS --raw data/CORPUS/raw --out data/CORPUS/normalised --report REPORT.json

Reads every set of the folder `raw` ({train,dev,test,...}.{en,de}, one segment a line, lines ended by "\\n" only) and
writes the same sets, cleaned as pipeline/corpora/cleaning.py says. Training pairs may be dropped: always where a side is empty,
and by the limits in params.yaml (base.normalise and the corpus's own). Pairs of other sets never are, so that line
numbers stay those of the references. The report counts what was read, kept, changed and dropped, and why.

Memory does not grow with the corpus; de-duplication, where it is on, takes 16 bytes a pair.
"""

import argparse
import itertools
import operator
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from tqdm import tqdm

from pipeline import params, stage
from pipeline.corpora.cleaning import cleaner
from transformer.config.reading import UserError, require
from transformer.files import atomic_folder, write_json

REQUIRED = ("train", "dev", "test")
BLOCK = 1 << 20  # bytes of one side that are cleaned at once
COUNTS = ("changed", "empty", "invalid")  # what is counted of each side's lines


@dataclass(frozen=True)
class NormaliseConfig:
    nfc: bool
    punctuation: bool
    entities: bool
    invalid_utf8: Literal["refuse", "replace"]
    max_words: int
    max_ratio: float
    deduplicate: bool

    def __post_init__(self) -> None:
        require(self.max_words >= 0, "max_words", self.max_words, "0 (no limit) or a number of words is expected")
        possible = self.max_ratio == 0 or self.max_ratio >= 1
        require(possible, "max_ratio", self.max_ratio, "0 (no limit) or a number from 1 is expected")


class Side:
    """One file of a set on its way: bytes in, clean lines out, and the count of lines that this changed."""

    def __init__(self, path: Path, language: str, config: NormaliseConfig) -> None:
        self.path, self.replace = path, config.invalid_utf8 == "replace"
        options = {"entities": config.entities, "nfc": config.nfc, "punctuation": config.punctuation}
        self.clean = cleaner(**options, language=language)
        self.read = self.changed = self.invalid = self.empty = 0

    def lines(self, raw: list[bytes]) -> list[str]:
        """The clean lines that follow those given before."""
        if not raw:
            return []
        text = self.decode(b"".join(raw).removesuffix(b"\n") + b"\n")
        clean = self.clean(text)
        lines = clean[:-1].split("\n")
        if clean != text:
            self.changed += sum(map(operator.ne, lines, text[:-1].split("\n")))
        self.read += len(lines)
        self.empty += lines.count("")
        return lines

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line, byte = before.count(b"\n"), error.start - before.rfind(b"\n")
            if not self.replace:
                raise UserError(
                    f"{self.path}: line {self.read + line + 1}, byte {byte} (0x{data[error.start]:02x}) is not UTF-8; "
                    "normalise.invalid_utf8: replace puts U+FFFD in its place"
                ) from None
        text = data.decode(errors="replace")
        kept = zip(data[:-1].split(b"\n"), text[:-1].split("\n"), strict=True)
        self.invalid += sum(line != decoded.encode() for line, decoded in kept)
        return text


class Filter:
    """Which training pairs are kept, and how many were dropped for which reason."""

    def __init__(self, config: NormaliseConfig) -> None:
        self.max_words, self.max_ratio = config.max_words, config.max_ratio
        self.dropped = Counter({"empty": 0, "max_words": 0, "max_ratio": 0, "deduplicate": 0})
        self.seen = None
        if config.deduplicate:
            from pipeline.corpora.duplicates import Seen  # numpy

            self.seen = Seen()

    def __call__(self, sources: list[str], targets: list[str]) -> tuple[list[str], list[str]]:
        if self.max_words or self.max_ratio or "" in sources or "" in targets:
            reasons = [self.reason(*pair) for pair in zip(sources, targets, strict=True)]
            self.dropped.update(filter(None, reasons))
            sources, targets = selected(sources, targets, [not reason for reason in reasons])
        if self.seen is not None:
            new = self.seen.new(sources, targets)
            self.dropped["deduplicate"] += len(new) - int(new.sum())
            sources, targets = selected(sources, targets, new)
        return sources, targets

    def reason(self, source: str, target: str) -> str | None:
        """Why this pair is dropped, if it is."""
        if not source or not target:
            return "empty"
        shorter, longer = sorted((source.count(" ") + 1, target.count(" ") + 1))
        if self.max_words and longer > self.max_words:
            return "max_words"
        return "max_ratio" if self.max_ratio and longer > self.max_ratio * shorter else None


def selected(sources: list[str], targets: list[str], keep) -> tuple[list[str], list[str]]:
    return list(itertools.compress(sources, keep)), list(itertools.compress(targets, keep))


def blocks(files: list[BinaryIO], paths: list[Path]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Lines of both files, the same numbers of them, a block at a time; UserError where one file ends first."""
    source, target = files
    read = 0
    while lines := source.readlines(BLOCK):
        others = list(itertools.islice(target, len(lines)))
        read += len(others)
        if len(others) < len(lines):
            differ(paths, read - len(others) + len(lines) + sum(1 for _ in source), read)
        yield lines, others
    if more := sum(1 for _ in target):
        differ(paths, read, read + more)


def differ(paths: list[Path], *counts: int) -> None:
    sides = " and ".join(f"{path} has {count:,} lines" for path, count in zip(paths, counts))
    raise UserError(f"{sides}: the sides of a set must be aligned line by line")


def find_sets(raw: Path, languages: list[str]) -> list[str]:
    """The names of the sets in `raw`, train first; UserError where a set or a side is missing."""
    files = [path.name for path in raw.glob("*") if not path.name.startswith(".")] if raw.is_dir() else []
    ends = {f".{language}" for language in languages}
    found = {file.removesuffix(end) for file, end in itertools.product(files, ends) if file.endswith(end)}
    names = [*REQUIRED, *sorted(found - set(REQUIRED))]
    for name, language in itertools.product(names, languages):
        if f"{name}.{language}" not in files:
            raise UserError(
                f"{raw / name}.{language} is missing; every set needs a file of {' and of '.join(languages)}"
            )
    return names


def normalise_set(raw: Path, out: Path, name: str, languages: list[str], config: NormaliseConfig, bar: tqdm) -> dict:
    """Clean one set of `raw` into `out`; what the report says of it."""
    sides = [Side(raw / f"{name}.{language}", language, config) for language in languages]
    select = Filter(config) if name == "train" else None
    kept = 0
    with ExitStack() as stack:
        files = [stack.enter_context(open(side.path, "rb", buffering=BLOCK)) for side in sides]
        outputs = [stack.enter_context(open(out / side.path.name, "wb", buffering=BLOCK)) for side in sides]
        for raw_lines in blocks(files, [side.path for side in sides]):
            both = [side.lines(lines) for side, lines in zip(sides, raw_lines)]
            both = select(*both) if select else both
            kept += len(both[0])
            for output, lines in zip(outputs, both):
                output.write("\n".join([*lines, ""]).encode())
            bar.update(sum(map(len, itertools.chain(*raw_lines))))
    if not kept:
        raise UserError(f"{sides[0].path} and {sides[1].path}: no pair in them, or none that is kept")
    counts = {key: {la: getattr(side, key) for la, side in zip(languages, sides)} for key in COUNTS}
    return {"read": sides[0].read, "kept": kept, **({"dropped": dict(select.dropped)} if select else {}), **counts}


def main(arguments: argparse.Namespace) -> None:
    settings = params.load()
    languages = params.languages(settings, arguments.corpus)
    config = params.section(settings, "corpora", arguments.corpus, "normalise", NormaliseConfig)
    names = find_sets(arguments.raw, languages)
    size = sum((arguments.raw / f"{name}.{language}").stat().st_size for name in names for language in languages)
    bar = tqdm(total=size, unit="B", unit_scale=True, desc=f"normalise {arguments.corpus}")
    with bar, atomic_folder(arguments.out) as out:
        report = {name: normalise_set(arguments.raw, out, name, languages, config, bar) for name in names}
    write_json(arguments.report, {"languages": languages, "sets": report})
    print(
        f"{arguments.out}: " + ", ".join(f"{name} {s['kept']:,} of {s['read']:,} pairs" for name, s in report.items())
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="normalise", description=__doc__.split("\n")[0])
    parser.add_argument("corpus", help="a name under `corpora` in params.yaml")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the corpus as it was downloaded")
    parser.add_argument("--out", type=Path, required=True, help="folder for the clean sets")
    parser.add_argument("--report", type=Path, required=True, help="JSON file for the counts")
    stage.run(main, parser)
