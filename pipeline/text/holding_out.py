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
    chosen, held = choose(folder, languages, pairs, order(sizes))
    if len(held) < wanted:
        raise UserError(f"train has only {len(held)} different sources to hold out; hold_out asks for {wanted}")
    kept = 0
    with ExitStack() as stack:
        files = {
            name: [stack.enter_context(open(folder / f"{name}.{language}", "wb")) for language in languages]
            for name in (*sizes, "rest")
        }
        for place, pair in enumerate(pairs_of(folder, languages)):
            if place in chosen or key(pair[0]) not in held:
                for file, side in zip(files[chosen.get(place, "rest")], pair):
                    file.write(side)
                kept += place not in chosen
    for language in languages:
        os.replace(folder / f"rest.{language}", folder / f"train.{language}")
    return kept


def choose(folder: Path, languages: tuple[str, str], pairs: int, turns: list[str]) -> tuple[dict[int, str], set[str]]:
    """Return the set of each pair to move, by its place in train, and the keys of the sources of these pairs.

    The pairs are evenly spread. If repeated sources or empty sides leave too few, more are taken from the start of train.
    """
    chosen: dict[int, str] = {}
    held: set[str] = set()
    for spread in (True, False):
        for place, (source, target) in enumerate(pairs_of(folder, languages)):
            if len(held) == len(turns):
                return chosen, held
            due = not spread or place >= len(held) * pairs // len(turns)
            if due and (cleaned := key(source)) not in held and cleaned.strip() and key(target).strip():
                chosen[place] = turns[len(held)]
                held.add(cleaned)
    return chosen, held


def order(sizes: dict[str, int]) -> list[str]:
    """Return, for each held-out pair in order, the name of its set. Every set is evenly spread."""
    turns = [((i + 0.5) / size, name) for name, size in sizes.items() for i in range(size)]
    return [name for _, name in sorted(turns)]


def key(line: bytes) -> str:
    """Return what `line` has in common with all lines that normalise to the same line. It may not be valid UTF-8."""
    return CLEAN(line.decode("utf-8", "replace").rstrip("\n") + "\n")


def pairs_of(folder: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    source, target = (folder / f"train.{language}" for language in languages)
    with open(source, "rb") as sources, open(target, "rb") as targets:
        yield from zip(sources, targets, strict=True)
