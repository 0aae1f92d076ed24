"""A parallel corpus of any size, out of one that is not as long."""

import gzip
import lzma
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from random import Random

OPENERS = {".gz": gzip.open, ".xz": lzma.open}
# So often a pair brings a new word on each side. By Heaps' law, with the exponents of Europarl's first 800,000 pairs
# (0.55 for English, 0.6 for French), it would be 0.07 and 0.10 times a pair from there to 8 million.
NEW_WORDS = 0.1
Pair = tuple[str, str]


def write_corpus(paths: list[Path], pairs: int, folder: Path) -> None:
    """`pairs` training pairs; dev and test are needed, but nothing is to be measured on them."""
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
    """The corpus, and then the corpus retold again and again."""
    for turn in count():
        files = [OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="\n") for path in paths]
        pairs = (tuple(line.removesuffix("\n") for line in pair) for pair in zip(*files))
        yield from retold(pairs, turn) if turn else pairs
        for file in files:
            file.close()


def retold(pairs: Iterable[Pair], turn: int) -> Iterator[Pair]:
    """Other pairs of the same words: each side begins `turn` words later and ends with those left out.

    To some pairs a word is added on each side that was nowhere before, the first half of its longest word with the
    second half of another pair's, so that the vocabulary goes on growing as that of new text would.
    """
    random, ends = Random(turn), ("", "")
    for pair in pairs:
        sides = [rotated(side.split(" "), turn) for side in pair]
        if random.random() < NEW_WORDS:
            longest = [max(words, key=len) for words in sides]
            for words, word, end in zip(sides, longest, ends):
                words.append(word[: len(word) // 2] + end)
            ends = tuple(word[len(word) // 2 :] for word in longest)
        yield tuple(" ".join(words) for words in sides)


def rotated(words: list[str], places: int) -> list[str]:
    return words[places % len(words) :] + words[: places % len(words)]
