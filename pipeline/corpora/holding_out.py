"""dev and test taken out of train, for a corpus that has no sets of its own."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from transformer.config.reading import UserError

Pair = tuple[bytes, bytes]


def hold_out(folder: Path, languages: tuple[str, str], pairs: int, sizes: dict[str, int]) -> int:
    """Move pairs, evenly spread, from train's `pairs` in `folder` into new sets of these `sizes`.

    No source is taken twice and no empty one, and every pair of train with a source that was taken is removed from it,
    so nothing of dev or test stands in train and neither in the other. Returns how many pairs train has left.
    Raises UserError if train would not keep half of its pairs or has too few different ones.
    """
    wanted = sum(sizes.values())
    if 2 * wanted > pairs:
        raise UserError(f"{wanted} pairs are to be held out of {pairs} of train; at most half of them can be")
    held = take(folder, languages, pairs, sizes)
    return remove(folder, languages, held)


def take(folder: Path, languages: tuple[str, str], pairs: int, sizes: dict[str, int]) -> set[bytes]:
    """Write the new sets; the sources that went into them."""
    turns, held = order(sizes), set()
    with ExitStack() as stack:
        files = {
            name: [stack.enter_context(open(folder / f"{name}.{language}", "wb")) for language in languages]
            for name in sizes
        }
        for name, pair in zip(turns, chosen(folder, languages, pairs, len(turns))):
            for file, side in zip(files[name], pair):
                file.write(side)
            held.add(pair[0])
    if len(held) < len(turns):
        raise UserError(f"train has only {len(held)} different pairs to hold out, {len(turns)} are asked for")
    return held


def chosen(folder: Path, languages: tuple[str, str], pairs: int, wanted: int) -> Iterator[Pair]:
    """Up to `wanted` pairs without an empty side, every source once: evenly spread, or from the start where the end
    of train repeats itself."""
    sources = set()
    for spread in (True, False):
        for i, (source, target) in enumerate(pairs_of(folder, languages)):
            if len(sources) == wanted:
                return
            due = not spread or i >= len(sources) * pairs // wanted
            if due and source not in sources and source.strip() and target.strip():
                sources.add(source)
                yield source, target


def order(sizes: dict[str, int]) -> list[str]:
    """Whose turn it is at each pair held out: every set spread as evenly as its size allows."""
    turns = [((i + 0.5) / size, name) for name, size in sizes.items() for i in range(size)]
    return [name for _, name in sorted(turns)]


def remove(folder: Path, languages: tuple[str, str], held: set[bytes]) -> int:
    """Rewrite train without the pairs whose source is in `held`; how many are left."""
    kept = 0
    rest = [folder / f"train.{language}.rest" for language in languages]
    with open(rest[0], "wb") as source_file, open(rest[1], "wb") as target_file:
        for source, target in pairs_of(folder, languages):
            if source not in held:
                source_file.write(source)
                target_file.write(target)
                kept += 1
    for path in rest:
        os.replace(path, path.with_suffix(""))
    return kept


def pairs_of(folder: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    with (
        open(folder / f"train.{languages[0]}", "rb") as sources,
        open(folder / f"train.{languages[1]}", "rb") as targets,
    ):
        yield from zip(sources, targets, strict=True)
