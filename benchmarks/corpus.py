"""Writes a parallel corpus of any size from a smaller one."""

import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import IO

from transformer.config.reading import UserError

OPENERS: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open}
# The share of pairs that add a new word on each side. Heaps' law, with the exponents of the first 800,000 pairs of
# Europarl (0.55 for English, 0.6 for French), gives 0.07 and 0.10 new words per pair from there to 8 million pairs.
NEW_WORDS = 0.1
Pair = tuple[str, str]


def write_corpus(paths: list[Path], pairs: int, folder: Path) -> None:
    """Write `pairs` training pairs, and small dev and test sets, which the stages require."""
    folder.mkdir(parents=True)
    for name, size in (("train", pairs), ("dev", 10), ("test", 10)):
        with (
            open(folder / f"{name}.xx", "w", encoding="utf-8", newline="\n") as source,
            open(folder / f"{name}.yy", "w", encoding="utf-8", newline="\n") as target,
        ):
            for source_line, target_line in islice(extended(paths), size):
                source.write(f"{source_line}\n")
                target.write(f"{target_line}\n")


def extended(paths: list[Path]) -> Iterator[Pair]:
    """Yields the corpus, and then endless variations of it."""
    if next(opened(paths), None) is None:
        raise UserError(f"{' and '.join(map(str, paths))}: no pair of lines; two aligned texts are expected")
    for turn in count():
        yield from retold(opened(paths), turn) if turn else opened(paths)


def opened(paths: list[Path]) -> Iterator[Pair]:
    """Yields the pairs of two aligned texts, plain, .gz or .xz."""
    with ExitStack() as stack:
        openers = [OPENERS.get(path.suffix, open) for path in paths]
        reading = {"encoding": "utf-8", "newline": "\n"}
        files = [stack.enter_context(opener(path, "rt", **reading)) for opener, path in zip(openers, paths)]
        yield from ((source.removesuffix("\n"), target.removesuffix("\n")) for source, target in zip(*files))


def retold(pairs: Iterable[Pair], turn: int) -> Iterator[Pair]:
    """Yields a variation of each pair: the words of each side are rotated by `turn` places.

    Some pairs get a new word on each side: the first half of its longest word, joined to the second half of the longest
    word of the last such pair. The vocabulary therefore continues to grow, as it does in new text.
    """
    random, ends = Random(turn), ["", ""]
    for pair in pairs:
        sides = [rotated(side.split(" "), turn) for side in pair]
        if random.random() < NEW_WORDS:
            longest = [max(words, key=len) for words in sides]
            for words, word, end in zip(sides, longest, ends):
                words.append(word[: len(word) // 2] + end)
            ends = [word[len(word) // 2 :] for word in longest]
        source, target = (" ".join(words) for words in sides)
        yield source, target


def rotated(words: list[str], places: int) -> list[str]:
    return words[places % len(words) :] + words[: places % len(words)]
