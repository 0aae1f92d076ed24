"""Joins the parts of each set of a corpus, in the given order. Both sides of a set have the same number of lines."""

import itertools
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from operator import eq
from pathlib import Path
from typing import IO, Any

from pipeline.running.progress import say
from pipeline.settings.download import Archive, Part, one_file, pinned
from pipeline.text.archives import CHUNK, Unpacked, members, undamaged, unpacked
from pipeline.text.evaluation import require_aligned
from pipeline.text.fetching import Fetcher
from pipeline.text.forms import named, pairs, text
from pipeline.text.holding_out import hold_out
from pipeline.text.letters import swapped
from pipeline.text.plain import FIRST, notice, notice_names, require_form
from pipeline.text.sets import lines_of
from pipeline.text.tables import chosen_pairs
from transformer.config.reading import UserError

Languages = tuple[str, str]
Files = Sequence[IO[bytes]]
Sides = Iterator[tuple[str, Unpacked]]  # each side of a part: how the part names it, and its stream


def collect(
    sets: Mapping[str, tuple[Part, ...]],
    archives: Mapping[str, Archive],
    languages: Languages,
    fetcher: Fetcher,
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """Write all sets into `folder`, two files each. Returns the counts of each set for the report.

    `read` and `kept` are numbers of pairs, `dropped` those left out by reason. `swapped`, `segmented` and `named` are the
    numbers of the parts, from 1, whose sides look swapped, are in pieces already, or begin with names of columns.
    `variants` is the number of rows with several texts for a language. Left out are `below`, the number of those with too
    low a score, and `incomplete`, that of those without a text for one.

    Raises UserError if a file cannot be obtained or is damaged, or if two sides have different numbers of lines.
    """
    counts: dict[str, dict[str, Any]] = {}
    held = {name: parts[0].hold_out for name, parts in sets.items() if parts[0].hold_out}
    for name in (name for name in sets if name not in held):
        with ExitStack() as stack:
            files = [stack.enter_context(open(folder / f"{name}.{code}", "wb")) for code in languages]
            parts = [append(part, archives, languages, fetcher, files) for part in sets[name]]
        read, noted = sum(pairs for pairs, _ in parts), sum((noted for _, noted in parts), Counter[str]())
        of_parts = {kind: [at for at, (_, own) in enumerate(parts, 1) if own[kind]] for kind in ("segmented", "named")}
        of_rows = {kind: noted[kind] for kind in ("variants", "below", "incomplete")}
        suspects = [at for at, (_, own) in enumerate(parts, 1) if own["swapped"]]
        counts[name] = {"read": read, "kept": read, "swapped": suspects}
        counts[name] |= {kind: found for kind, found in {**of_parts, **of_rows}.items() if found}
    if held:
        train = counts["train"]
        train["kept"] = hold_out(folder, languages, train["read"], held)
        more = train["read"] - train["kept"] - sum(held.values())
        sizes = " and ".join(f"{size:,} pairs for {name}" for name, size in held.items())
        say(f"{sizes} are held out of train, evenly spread; {more:,} more pairs with their sources are removed from train")
        counts |= {name: {"read": size, "kept": size} for name, size in held.items()}
        train["dropped"] = {"same_source": more}
    return counts


def append(
    part: Part, archives: Mapping[str, Archive], languages: Languages, fetcher: Fetcher, files: Files
) -> tuple[int, Counter[str]]:
    """Append one part to the two files of the set. Returns its number of pairs, and what was noted of it."""
    starts, noted = [file.tell() for file in files], Counter[str]()
    if part.form and part.form != "zip":
        count, labels = append_pairs(part, languages, fetcher, files, noted), [", ".join(part.files)] * 2
    else:
        keys = (f".{languages[0]}", f".{languages[1]}") if part.form else part.sides
        count, labels = append_sides(part, opened(part, keys, archives, fetcher), keys, files)
    if part.first and count < part.first:
        raise UserError(f"{labels[0]} has {count:,} lines; first: {part.first} asks for more")
    if part.lines and count != part.lines:
        raise UserError(f"{labels[0]} has {count:,} lines; {part.lines:,} are expected (lines, in params.yaml)")
    if part.every:
        for file, start in zip(files, starts):
            thin(file, start, part.every)
        count = -(-count // part.every)
    noted.update(of_two_languages([written(file, start) for file, start in zip(files, starts)], labels, languages))
    return count, noted


def thin(file: IO[bytes], start: int, every: int) -> None:
    """Keep the first of every so many lines of what was written into the file from `start` on."""
    file.flush()
    with open(file.name, "rb") as copy:  # which is always ahead of what is written
        copy.seek(start)
        file.seek(start)
        file.writelines(itertools.islice(copy, 0, None, every))
        file.truncate()


def append_pairs(part: Part, languages: Languages, fetcher: Fetcher, files: Files, noted: Counter[str]) -> int:
    """Append pairs of the files of the part, which hold both sides. Returns the number of appended pairs."""
    say(f"reading {', '.join(part.files)}")
    paths = (fetcher.fetch(file, None) for file in part.files)
    of_files = (
        chosen_pairs(path, part, noted) if part.columns else pairs(part.form, path, languages, part.encodings[0], noted)
        for path in paths
    )
    count = 0
    for pair in itertools.islice(itertools.chain.from_iterable(of_files), part.first):
        for side, file in zip(pair, files):
            file.write(side)
        count += 1
    return count


def opened(part: Part, keys: Languages, archives: Mapping[str, Archive], fetcher: Fetcher) -> list[Sides]:
    """Return the streams of both sides, for each file of the part. `keys` names the two sides in an archive."""
    if part.form:
        return [by_language(fetcher.fetch(address, None), keys) for address in part.files]
    if part.archive is not None:
        archive = archives[part.archive]
        return [members(fetcher.fetch(archive.url[0], archive.sum, *archive.url[1:]), keys)]
    return [two_files(part, fetcher)]


def by_language(archive: Path, keys: Languages) -> Sides:
    """Yield the members of a zip file whose names end in the code of a side, or in another code of its language."""
    require_form(archive, "zip")
    with undamaged(archive), zipfile.ZipFile(archive) as packed:
        ends = [name.rpartition(".")[2] for name in packed.namelist()]
    codes = keys[0][1:], keys[1][1:]
    if not (sides := named(ends, codes)):
        known = ", ".join(dict.fromkeys(ends))[:99]
        raise UserError(f"{archive}: it has no members in {' and '.join(codes)}; the names of its members end in {known}")
    held = [f".{ends[first]}" for first, *_ in sides]
    for name, stream in members(archive, held):
        yield keys[held.index(name)], stream


def two_files(part: Part, fetcher: Fetcher) -> Sides:
    for name, value in zip(part.sides, (part.source_sha256, part.target_sha256)):
        with unpacked(fetcher.fetch(name, pinned("sha256", value, unpacked=True))) as stream:
            yield name, stream


def append_sides(part: Part, opened: list[Sides], keys: Languages, files: Files) -> tuple[int, list[str]]:
    """Append the sides, one after the other. Returns the number of pairs and what the sides are called in messages."""
    count, labels = 0, ["", ""]
    for number, sides in enumerate(opened, 1):
        lines, documents = [0, 0], list[tuple[bytes, ...]]()
        for key, stream in sides:
            say(f"reading {stream.label}")
            side, left = keys.index(key), part.first and part.first - count
            labels[side] = stream.label
            lines[side] = append_lines(text(stream, part.encodings[side]), files[side], stream.label, 0, left)
            documents.append(stream.documents)
            if left and lines[side] < left and number == len(opened):
                raise UserError(f"{stream.label} has {lines[side]:,} lines; first: {part.first} asks for more")
        require_aligned(labels[0], lines[0], labels[1], lines[1], *([] if part.first else documents))
        count += lines[0]
    return count, labels


def written(file: IO[bytes], start: int) -> Iterator[bytes]:
    """Yield what was written into the file from `start` on, and an empty chunk, by which a shorter text differs."""
    file.flush()
    with open(file.name, "rb") as copy:
        copy.seek(start)
        yield from iter(partial(copy.read, CHUNK), b"")
    yield b""


def of_two_languages(sides: Sequence[Iterator[bytes]], labels: Sequence[str], languages: Languages) -> set[str]:
    """Raise UserError if both sides are the same text. Warn of pieces, of names of columns, and of swapped sides.

    Returns what was warned of, by the names of the counts of `collect`.
    """
    first = [next(side) for side in sides]
    if first[0] == first[1] > b"" and all(map(eq, *sides)):
        raise UserError(f"{' and '.join(labels)} hold the same text, so a model would copy; {one_file(labels[0])}")
    found = {"segmented" for chunk, label in dict(zip(first, labels)).items() if notice(chunk, label)}
    if notice_names(first, " and ".join(dict.fromkeys(labels)), languages):
        found.add("named")
    if swapped([chunk[:FIRST].decode(errors="ignore") for chunk in first], languages):
        found.add("swapped")
        said = f"the source ({labels[0]}) looks like {languages[1]} and the target ({labels[1]}) like {languages[0]}"
        say(f"{said}, but the languages are [{', '.join(languages)}]; swap the sides or the languages")
    return found


def append_lines(chunks: Iterable[bytes], file: IO[bytes], label: str, skip: int = 0, first: int | None = None) -> int:
    """Append all lines after the first `skip`, or `first` of these, unchanged. Returns the number of appended lines.

    A missing final line feed is added. Without it, the first line of the next part would continue the last line.
    """
    if skip or first is not None:
        chosen = itertools.islice(lines_of(chunks, label), skip, None if first is None else skip + first)
        chunks = (line + b"\n" for line in chosen)
    lines, last = 0, b"\n"
    for chunk in chunks:
        file.write(chunk)
        lines, last = lines + chunk.count(b"\n"), chunk[-1:] or last
    if last != b"\n":
        file.write(b"\n")
        lines += 1
    return lines
