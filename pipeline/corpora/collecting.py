"""Joins the parts of each set of a corpus, in the given order. Both sides of a set have the same number of lines."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from pipeline.corpora.archives import CHUNK, language_members, members, unpacked
from pipeline.corpora.fetching import Fetcher
from pipeline.corpora.forms import PAIRS, text
from pipeline.corpora.holding_out import hold_out
from pipeline.corpora.sets import require_aligned
from pipeline.corpora.transfer import say
from pipeline.settings.download import Archive, Part, one_file, pinned
from transformer.config.reading import UserError

Languages = tuple[str, str]
Files = tuple[IO[bytes], IO[bytes]]


def collect(
    sets: Mapping[str, tuple[Part, ...]],
    archives: Mapping[str, Archive],
    languages: Languages,
    fetcher: Fetcher,
    folder: Path,
) -> dict[str, int]:
    """Write all sets into `folder`, two files each. Returns the number of pairs in each set.

    Raises UserError if a file cannot be obtained or is damaged, or if two sides have different numbers of lines.
    """
    pairs = {}
    held = {name: parts[0].hold_out for name, parts in sets.items() if parts[0].hold_out}
    for name, parts in sets.items():
        if name not in held:
            with ExitStack() as stack:
                source, target = (stack.enter_context(open(folder / f"{name}.{code}", "wb")) for code in languages)
                pairs[name] = sum(append(part, archives, languages, fetcher, (source, target)) for part in parts)
    if held:
        left = hold_out(folder, languages, pairs["train"], held)
        more = pairs["train"] - left - sum(held.values())
        say(f"held out of train, evenly spread: {held}; {more:,} more pairs with the same sources are removed from it")
        pairs |= held | {"train": left}
    return pairs


def append(part: Part, archives: Mapping[str, Archive], languages: Languages, fetcher: Fetcher, files: Files) -> int:
    """Append one part to the two files of the set. Returns the number of pairs in the part."""
    starts = [file.tell() for file in files]
    if part.form == "zip":
        names, lines = append_zips(part, languages, fetcher, files)
    elif part.form:
        label, lines = ", ".join(part.files), [append_pairs(part, languages, fetcher, files)] * 2
        names = (label, label)
    elif part.archive is None:
        names, lines = part.sides, append_files(part, fetcher, files)
    else:
        archive = archives[part.archive]
        path, sides = fetcher.fetch(archive.url[0], archive.sum, *archive.url[1:]), part.sides
        names, lines = (f"{archive.url[0]}: {sides[0]}", sides[1]), append_members(part, path, sides, files)
    for name, count in zip(names, lines):
        if part.first is not None and count < part.first:
            raise UserError(f"{name} has {count:,} lines; first: {part.first} asks for more")
    require_aligned(names[0], lines[0], names[1], lines[1])
    require_different(names, files, starts)
    return lines[0]


def append_files(part: Part, fetcher: Fetcher, files: Files) -> list[int]:
    lines = []
    sums = (pinned("sha256", value, unpacked=True) for value in (part.source_sha256, part.target_sha256))
    for name, expected, encoding, file in zip(part.sides, sums, part.encodings, files):
        path = fetcher.fetch(name, expected)
        say(f"reading {path}")
        with unpacked(path) as stream:
            lines.append(append_lines(text(stream, encoding), file, part.first))
    return lines


def append_members(part: Part, archive: Path, names: tuple[str, str], files: Files) -> list[int]:
    say(f"reading {names[0]} and {names[1]} from {archive}")
    into = dict(zip(names, zip(part.encodings, files)))
    lines = {}
    for name, stream in members(archive, names):
        encoding, file = into[name]
        lines[name] = append_lines(text(stream, encoding), file, part.first)
    return [lines[name] for name in names]


def append_zips(part: Part, languages: Languages, fetcher: Fetcher, files: Files) -> tuple[tuple[str, str], list[int]]:
    """Append the two members of each zip file. Returns their names and their numbers of lines, together."""
    names, total = ("", ""), [0, 0]
    for address in part.files:
        path = fetcher.fetch(address, None)
        sides = language_members(path, languages)
        names, lines = (f"{address}: {sides[0]}", sides[1]), append_members(part, path, sides, files)
        require_aligned(names[0], lines[0], names[1], lines[1])
        total = [some + more for some, more in zip(total, lines)]
    return names, total


def append_pairs(part: Part, languages: Languages, fetcher: Fetcher, files: Files) -> int:
    pairs = 0
    for pair in itertools.islice(all_pairs(part, languages, fetcher), part.first):
        for side, file in zip(pair, files):
            file.write(side)
        pairs += 1
    return pairs


def all_pairs(part: Part, languages: Languages, fetcher: Fetcher) -> Iterator[tuple[bytes, bytes]]:
    for address in part.files:
        path = fetcher.fetch(address, None)
        say(f"reading {path}")
        yield from PAIRS[part.form](path, languages, part.encodings[0])


def require_different(names: tuple[str, str], files: Files, starts: list[int]) -> None:
    """Raise UserError if the two sides, appended to `files` from `starts` on, are equal."""
    sizes = {file.tell() - start for file, start in zip(files, starts)}
    if len(sizes) > 1 or sizes == {0}:
        return
    with ExitStack() as stack:
        sides = []
        for file, start in zip(files, starts):
            file.flush()
            sides.append(stack.enter_context(open(file.name, "rb")))
            sides[-1].seek(start)
        while chunk := sides[0].read(CHUNK):
            if sides[1].read(CHUNK) != chunk:
                return
    raise UserError(f"{names[0]} and {names[1]} hold the same text, so a model would learn to copy; {one_file(names[0])}")


def append_lines(chunks: Iterable[bytes], file: IO[bytes], first: int | None) -> int:
    """Append the bytes unchanged: all lines, or the first `first` lines. Returns the number of appended lines.

    A missing final line feed is added. Without it, the first line of the next part would continue the last line.
    """
    lines, last = 0, b"\n"
    for chunk in chunks if first is None else head(chunks, first):
        file.write(chunk)
        lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    if last != b"\n":
        file.write(b"\n")
        lines += 1
    return lines


def head(chunks: Iterable[bytes], lines: int) -> Iterator[bytes]:
    """Yield the first `lines` lines, in chunks. Later chunks are not read."""
    for chunk in chunks:
        found = chunk.count(b"\n")
        if found >= lines:
            yield b"\n".join([*chunk.split(b"\n", lines)[:lines], b""])
            return
        lines -= found
        yield chunk
