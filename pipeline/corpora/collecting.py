"""The sets of a corpus out of their parts: appended in the order given, the two sides always of one length."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pipeline.corpora.archives import members, unpacked
from pipeline.corpora.demonstration.grammar import generate
from pipeline.corpora.fetching import Fetcher
from pipeline.corpora.holding_out import hold_out
from pipeline.corpora.segments import parquet_pairs, text
from pipeline.corpora.sets import require_aligned
from pipeline.corpora.transfer import say
from pipeline.settings.addresses import Sum
from pipeline.settings.download import GeneratorConfig
from transformer.config.reading import UserError

if TYPE_CHECKING:
    from pipeline.settings.download import Archive, Part

Languages = tuple[str, str]
Files = tuple[IO[bytes], IO[bytes]]


def collect(
    sets: Mapping[str, tuple["Part", ...]],
    archives: Mapping[str, "Archive"],
    languages: Languages,
    fetcher: Fetcher,
    folder: Path,
) -> dict[str, int]:
    """Write every set's parts into `folder`; how many pairs each set has.

    Raises UserError for a file that cannot be had, a damaged one, and sides of different length.
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
        say(f"held out of train, evenly spread: {held}; {more:,} more pairs with one of their sources left train")
        pairs |= held | {"train": left}
    return pairs


def append(
    part: "Part", archives: Mapping[str, "Archive"], languages: Languages, fetcher: Fetcher, files: Files
) -> int:
    """One part at the end of the set's two files; how many pairs it has."""
    if part.parquet:
        return sum(append_parquet(fetcher.fetch(address, None), languages, files) for address in part.parquet_files)
    names = (part.source, part.target)
    if part.archive is None:
        lines = append_files(names, (part.source_sha256, part.target_sha256), fetcher, files)
    else:
        archive = archives[part.archive]
        lines = append_members(fetcher.fetch(archive.url, archive.sum), names, files)
    place = "" if part.archive is None else f"{archives[part.archive].url}: "
    require_aligned(f"{place}{names[0]}", lines[0], names[1], lines[1])
    return lines[0]


def append_files(names: tuple[str, str], sums: tuple, fetcher: Fetcher, files: Files) -> list[int]:
    lines = []
    for name, value, file in zip(names, sums, files):
        path = fetcher.fetch(name, None if value is None else Sum("sha256", value.lower(), "params.yaml"))
        say(f"reading {path}")
        with unpacked(path) as stream:
            lines.append(append_lines(text(stream, path.name), file))
    return lines


def append_members(archive: Path, names: tuple[str, str], files: Files) -> tuple[int, int]:
    say(f"reading {names[0]} and {names[1]} out of {archive}")
    into = dict(zip(names, files))
    lines = {name: append_lines(text(stream, name), into[name]) for name, stream in members(archive, names)}
    return lines[names[0]], lines[names[1]]


def append_parquet(path: Path, languages: Languages, files: Files) -> int:
    say(f"reading {path}")
    pairs = 0
    for pair in parquet_pairs(path, languages):
        for side, file in zip(pair, files):
            file.write(side)
        pairs += 1
    return pairs


def append_lines(chunks: Iterable[bytes], file: IO[bytes]) -> int:
    """The bytes as they are, and a last line feed where it is missing, or two parts' lines would join."""
    lines, last = 0, b"\n"
    for chunk in chunks:
        file.write(chunk)
        lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    if last != b"\n":
        file.write(b"\n")
        lines += 1
    return lines


def make(config: GeneratorConfig, languages: Languages, folder: Path) -> dict[str, int]:
    """The corpus of the project's own grammar; how many pairs each set has."""
    if languages != ("en", "de"):
        raise UserError(f"generate makes English and German; languages is {list(languages)}, [en, de] is expected")
    pairs: dict[str, int] = {}
    with ExitStack() as stack:
        files: dict[str, list[IO[str]]] = {}
        for name, *sides in generate(config):
            if name not in files:
                paths = [folder / f"{name}.{language}" for language in languages]
                files[name] = [stack.enter_context(open(p, "w", encoding="utf-8", newline="\n")) for p in paths]
            for file, side in zip(files[name], sides, strict=True):
                file.write(side + "\n")
            pairs[name] = pairs.get(name, 0) + 1
    return pairs
