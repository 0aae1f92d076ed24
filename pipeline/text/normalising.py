"""Normalises a set: cleans its lines, and filters the pairs of a training set.

Without de-duplication, memory does not grow with the corpus.
"""

import hashlib
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from tqdm import tqdm

from pipeline.running.progress import say
from pipeline.settings.normalise import NormaliseConfig
from pipeline.text.evaluation import DESCRIPTION, EvaluationSet
from pipeline.text.sets import blocks
from transformer.cleaning import cleaner
from transformer.config.reading import UserError
from transformer.files import write_json

COUNTS = ("changed", "empty", "invalid")  # the kinds of lines that are counted on each side


class Side:
    """Decodes and cleans the lines of one file of a set, and counts the changed, empty and invalid lines."""

    def __init__(self, path: Path, language: str, config: NormaliseConfig) -> None:
        self.path, self.replace = path, config.invalid_utf8 == "replace"
        options = {"entities": config.entities, "nfc": config.nfc, "punctuation": config.punctuation}
        self.clean = cleaner(**options, language=language)
        self.read = self.changed = self.invalid = self.empty = 0

    def lines(self, raw: list[bytes]) -> list[str]:
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
            place = f"{self.path}: line {self.read + line + 1}, byte {byte} (0x{data[error.start]:02x})"
            remedy = "mend it in the file that download names, or set normalise.invalid_utf8 to replace (by U+FFFD)"
            if not self.replace:
                raise UserError(f"{place} is not UTF-8; {remedy}") from None
        text = data.decode(errors="replace")
        kept = zip(data[:-1].split(b"\n"), text[:-1].split("\n"), strict=True)
        self.invalid += sum(line != decoded.encode() for line, decoded in kept)
        return text


def sentences(folders: Iterable[Path]) -> tuple[set[str], set[str]]:
    """The sentences of evaluation sets on each side, without empty lines."""
    sides = [EvaluationSet.open(folder).lines("normalised") for folder in folders]
    sources, targets = ({line for side in some for line in side if line} for some in zip(*sides))
    return sources, targets


class Filter:
    """Selects the training pairs to keep, and counts the dropped pairs by reason.

    `evaluated` are the sentences of dev and test on each side. Pairs that have one of them are counted as well.
    """

    def __init__(self, config: NormaliseConfig, evaluated: tuple[Set[str], Set[str]] = (frozenset(), frozenset())) -> None:
        self.max_words, self.max_ratio = config.max_words, config.max_ratio
        self.evaluated, self.decontaminate, self.in_evaluation = evaluated, config.decontaminate, 0
        self.dropped = Counter({"empty": 0, "max_words": 0, "max_ratio": 0, "deduplicate": 0})
        self.deduplicate, self.seen = config.deduplicate, set[bytes]()

    def __call__(self, sources: list[str], targets: list[str]) -> tuple[list[str], list[str]]:
        if self.max_words or self.max_ratio or "" in sources or "" in targets:
            reasons = [self.reason(*pair) for pair in zip(sources, targets, strict=True)]
            self.dropped.update(filter(None, reasons))
            sources, targets = selected(sources, targets, [not reason for reason in reasons])
        if not (self.evaluated[0].isdisjoint(sources) and self.evaluated[1].isdisjoint(targets)):
            other = [s not in self.evaluated[0] and t not in self.evaluated[1] for s, t in zip(sources, targets)]
            self.in_evaluation += other.count(False)
            if self.decontaminate:
                self.dropped["decontaminate"] += other.count(False)
                sources, targets = selected(sources, targets, other)
        if self.deduplicate:
            new = list(map(self.is_new, sources, targets))
            self.dropped["deduplicate"] += new.count(False)
            sources, targets = selected(sources, targets, new)
        return sources, targets

    def tell(self, corpus: str) -> None:
        """Say on stderr how many pairs have a sentence of dev or test, if there are any."""
        if self.in_evaluation:
            done = "were dropped" if self.decontaminate else "are kept; normalise: {decontaminate: true} drops them"
            say(f"{corpus}: {self.in_evaluation:,} training pairs with a sentence of dev or test {done}")

    def is_new(self, source: str, target: str) -> bool:
        """Return whether this pair did not occur before. Each takes about 90 bytes of memory.

        Two different pairs with the same digest would count as equal. Among 40 million pairs, the probability that this
        happens at all is 4 in 100,000.
        """
        before = len(self.seen)
        self.seen.add(hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest())
        return len(self.seen) > before

    def reason(self, source: str, target: str) -> str | None:
        if not source or not target:
            return "empty"
        shorter, longer = sorted((source.count(" ") + 1, target.count(" ") + 1))
        if self.max_words and longer > self.max_words:
            return "max_words"
        return "max_ratio" if self.max_ratio and longer > self.max_ratio * shorter else None


def selected(sources: list[str], targets: list[str], keep) -> tuple[list[str], list[str]]:
    return list(itertools.compress(sources, keep)), list(itertools.compress(targets, keep))


def aligned_blocks(paths: list[Path], bar: tqdm) -> Iterator[list[list[bytes]]]:
    """Yield the next lines of each file, equally many. Raises UserError if one file ends before another."""
    first, *others = paths
    with ExitStack() as stack:
        files = {path: stack.enter_context(open(path, "rb")) for path in others}
        for lines in blocks(first, bar):
            block = [lines]
            for path, file in files.items():
                block.append(list(itertools.islice(file, len(lines))))
                bar.update(sum(map(len, block[-1])))
                if len(block[-1]) < len(lines):
                    raise UserError(f"{path} has fewer lines than {first}; they must match line by line")
            yield block
        for path, file in files.items():
            if file.readline():
                raise UserError(f"{first} has fewer lines than {path}; they must match line by line")


def normalise_set(
    paths: list[Path],
    out: list[Path],
    languages: Sequence[str],
    config: NormaliseConfig,
    bar: tqdm,
    select: Filter | None = None,
) -> dict:
    """Write the cleaned lines of the files of a set, one or two, to the files `out`. Returns the counts for the report.

    Only training pairs are dropped, by `select`, which takes a line of monolingual text as a pair with itself. In other
    sets, each line must keep the line number of its reference.
    """
    sides = [Side(path, language, config) for path, language in zip(paths, languages)]
    kept = 0
    with ExitStack() as stack:
        outputs = [stack.enter_context(open(path, "wb")) for path in out]
        for raw_lines in aligned_blocks(paths, bar):
            texts = [side.lines(lines) for side, lines in zip(sides, raw_lines)]
            chosen = select(texts[0], texts[-1]) if select else texts
            kept += len(chosen[0])
            for output, lines in zip(outputs, chosen):
                output.write("\n".join([*lines, ""]).encode())
    if not kept:
        where = " and ".join(map(str, paths))
        raise UserError(f"{where}: no line is left; the text is empty, or `normalise` drops all of it")
    counts = {key: {la: getattr(side, key) for la, side in zip(languages, sides)} for key in COUNTS}
    dropped = {"dropped": dict(select.dropped), "in_evaluation": select.in_evaluation} if select else {}
    return {"read": sides[0].read, "kept": kept, **dropped, **counts}


def write_set(
    folder: Path,
    corpus: str,
    languages: tuple[str, str],
    raw: list[Path],
    config: NormaliseConfig,
    bar: tqdm,
    filtered: Sequence[Path] = (),
) -> dict:
    """Write an evaluation set into `folder`: the raw, normalised and, if given, filtered files, and set.json.

    All are UTF-8, as scoring needs them long after. Returns the counts of the normalisation.
    """
    for form, paths in (("raw", raw), ("filtered", filtered)):
        for path, language in zip(paths, languages):
            text = Side(path, language, config).decode(path.read_bytes())
            (folder / f"{form}.{language}").write_bytes(text.encode())
    counts = normalise_set(raw, [folder / f"normalised.{code}" for code in languages], languages, config, bar)
    write_json(folder / DESCRIPTION, {"corpus": corpus, "languages": list(languages), "pairs": counts["kept"]})
    return counts
