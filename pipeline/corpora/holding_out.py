"""Holds dev and test out of train, for a corpus without its own dev or test set."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from transformer.cleaning import cleaner
from transformer.config.reading import UserError

Pair = tuple[bytes, bytes]
CLEAN = cleaner(entities=True, nfc=True, punctuation=False, language="")


def hold_out(folder: Path, languages: tuple[str, str], pairs: int, sizes: dict[str, int]) -> int:
    """Move pairs from train into new sets of these `sizes`. `pairs` is the number of pairs in train.

    The moved pairs are evenly spread over train. None has an empty side, and all their sources are different. Every pair
    with one of these sources is removed from train, so that no source is in two of these sets. Sources that the stage
    normalise makes equal count as equal, except those that need its setting `punctuation`, which is ten times as slow.
    Returns the number of pairs left in train. Raises UserError if `sizes` ask for more than half of train, or if train has
    too few different sources.
    """
    wanted = sum(sizes.values())
    if 2 * wanted > pairs:
        raise UserError(f"{wanted} pairs cannot be held out of the {pairs} pairs of train; at most half of them can")
    held = take(folder, languages, pairs, sizes)
    return remove(folder, languages, held)


def take(folder: Path, languages: tuple[str, str], pairs: int, sizes: dict[str, int]) -> set[str]:
    """Write the new sets. Returns the keys of their sources."""
    turns, held = order(sizes), set()
    with ExitStack() as stack:
        files = {
            name: [stack.enter_context(open(folder / f"{name}.{language}", "wb")) for language in languages]
            for name in sizes
        }
        for name, pair in zip(turns, chosen(folder, languages, pairs, len(turns))):
            for file, side in zip(files[name], pair):
                file.write(side)
            held.add(key(pair[0]))
    if len(held) < len(turns):
        raise UserError(f"train has only {len(held)} different sources to hold out; hold_out asks for {len(turns)}")
    return held


def chosen(folder: Path, languages: tuple[str, str], pairs: int, wanted: int) -> Iterator[Pair]:
    """Yield up to `wanted` pairs without an empty side and with different sources.

    The pairs are evenly spread. If repeated sources or empty sides leave too few, more are taken from the start of train.
    """
    sources: set[str] = set()
    for spread in (True, False):
        for i, (source, target) in enumerate(pairs_of(folder, languages)):
            if len(sources) == wanted:
                return
            due = not spread or i >= len(sources) * pairs // wanted
            if due and (cleaned := key(source)) not in sources and cleaned.strip() and key(target).strip():
                sources.add(cleaned)
                yield source, target


def order(sizes: dict[str, int]) -> list[str]:
    """Return, for each held-out pair in order, the name of its set. Every set is evenly spread."""
    turns = [((i + 0.5) / size, name) for name, size in sizes.items() for i in range(size)]
    return [name for _, name in sorted(turns)]


def remove(folder: Path, languages: tuple[str, str], held: set[str]) -> int:
    """Rewrite train without the pairs whose source has a key in `held`. Returns the number of pairs left."""
    kept = 0
    rest = [folder / f"train.{language}.rest" for language in languages]
    with open(rest[0], "wb") as source_file, open(rest[1], "wb") as target_file:
        for source, target in pairs_of(folder, languages):
            if key(source) not in held:
                source_file.write(source)
                target_file.write(target)
                kept += 1
    for path in rest:
        os.replace(path, path.with_suffix(""))
    return kept


def key(line: bytes) -> str:
    """Return what `line` has in common with all lines that normalise to the same line. It may not be valid UTF-8."""
    return CLEAN(line.decode("utf-8", "replace").rstrip("\n") + "\n")


def pairs_of(folder: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    with (
        open(folder / f"train.{languages[0]}", "rb") as sources,
        open(folder / f"train.{languages[1]}", "rb") as targets,
    ):
        yield from zip(sources, targets, strict=True)
