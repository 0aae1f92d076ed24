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
from pathlib import Path

from tqdm import tqdm

from pipeline.corpora.cleaning import cleaner
from pipeline.corpora.lines import blocks, progress
from pipeline.corpora.sets import find_sets, require_aligned
from pipeline.settings import params
from pipeline.settings.normalise import NormaliseConfig
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import atomic_folder, write_json

COUNTS = ("changed", "empty", "invalid")  # what is counted of each side's lines


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


def paired_blocks(paths: list[Path], bar: tqdm) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Lines of both files, the same number of them, a block at a time; UserError where one file ends first."""
    first, second = paths
    sources, read = blocks(first, bar), 0
    with open(second, "rb") as targets:
        for lines in sources:
            others = list(itertools.islice(targets, len(lines)))
            bar.update(sum(map(len, others)))
            if len(others) < len(lines):
                longer = read + len(lines) + sum(map(len, sources))
                require_aligned(first, longer, second, read + len(others))
            read += len(lines)
            yield lines, others
        require_aligned(first, read, second, read + sum(1 for _ in targets))


def normalise_set(
    paths: list[Path], out: Path, name: str, languages: tuple[str, str], config: NormaliseConfig, bar: tqdm
) -> dict:
    """Clean the set of this name into `out`; what the report says of it."""
    sides = [Side(path, language, config) for path, language in zip(paths, languages)]
    select = Filter(config) if name == "train" else None
    kept = 0
    with ExitStack() as stack:
        outputs = [stack.enter_context(open(out / path.name, "wb")) for path in paths]
        for raw_lines in paired_blocks(paths, bar):
            both = [side.lines(lines) for side, lines in zip(sides, raw_lines)]
            both = select(*both) if select else both
            kept += len(both[0])
            for output, lines in zip(outputs, both):
                output.write("\n".join([*lines, ""]).encode())
    if not kept:
        raise UserError(f"{paths[0]} and {paths[1]}: no pair in them, or none that is kept")
    counts = {key: {la: getattr(side, key) for la, side in zip(languages, sides)} for key in COUNTS}
    return {"read": sides[0].read, "kept": kept, **({"dropped": dict(select.dropped)} if select else {}), **counts}


def main(arguments: argparse.Namespace) -> None:
    settings = params.load()
    languages = params.languages(settings, arguments.corpus)
    config = params.section(settings, "corpora", arguments.corpus, "normalise", NormaliseConfig)
    sets = find_sets(arguments.raw, languages)
    bar = progress(itertools.chain(*sets.values()), f"normalise {arguments.corpus}")
    with bar, atomic_folder(arguments.out) as out:
        report = {name: normalise_set(sets[name], out, name, languages, config, bar) for name in sets}
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
