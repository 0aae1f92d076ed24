"""Binarised sets: the ids of all lines of a side in one array, and the offsets of the lines, memory-mapped from disk.

For each set and side a folder holds `NAME.SIDE.ids.npy` (uint16, or uint32 for more than 65,536 pieces) and
`NAME.SIDE.offsets.npy` (int64). The ids of line i, without BOS and EOS, are `ids[offsets[i] : offsets[i + 1]]`.
`binarised.json` states the vocabulary, the number of lines and ids, and the sha256 of each file. If trainings on the data
begin with the weights of a model, these are in `initial.safetensors`.
"""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer.config.reading import UserError
from transformer.files import read_json, sha256, write_json

SIDES = ("source", "target")
DESCRIPTION = "binarised.json"
INITIAL = "initial.safetensors"


@dataclass(frozen=True)
class BinarisedSet:
    """The sentence pairs of one set. The arrays are memory-mapped: indexing reads from the files.

    A set in several segmentations has all pairs in the first one, then all pairs in the second one, and so on.
    """

    source: tuple[np.ndarray, np.ndarray]  # ids and offsets
    target: tuple[np.ndarray, np.ndarray]
    segmentations: int = 1

    def __len__(self) -> int:
        return len(self.source[1]) - 1

    def lengths(self, side: str) -> np.ndarray:
        """The number of ids in each line of "source" or "target", [P] int64."""
        return np.diff(getattr(self, side)[1])

    def sentences(self, side: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the lines `numbers` of a side, one line after the other, and the number of ids in each line."""
        ids, offsets = getattr(self, side)
        starts, lengths = offsets[numbers], offsets[numbers + 1] - offsets[numbers]
        begins = np.cumsum(lengths) - lengths  # in the result
        return ids[np.repeat(starts - begins, lengths) + np.arange(lengths.sum())], lengths

    def pair(self, number: int) -> tuple[np.ndarray, ...]:
        return tuple(self.sentences(side, np.array([number]))[0] for side in SIDES)


def open_binarised(folder: Path, name: str, vocabulary_sha256: str = "") -> BinarisedSet:
    """The set `name`, such as "train" or "dev", in `folder`. Raises UserError if the folder has no such set.

    `vocabulary_sha256`, if given, is the sha256 of the vocabulary with which the data must have been encoded. Raises
    UserError if a file is missing, or is not the one that binarise wrote, which takes a pass over the file.
    """
    folder = Path(folder)
    description = describe(folder)
    if name not in description["sets"]:
        raise UserError(f"{folder}: there is no set {name!r}; there are {', '.join(description['sets'])}")
    if vocabulary_sha256 and description["vocabulary_sha256"] != vocabulary_sha256:
        raise UserError(
            f"{folder} was binarised with the vocabulary {description['vocabulary_sha256'][:12]}; "
            f"run binarise with the vocabulary {vocabulary_sha256[:12]}"
        )
    ids, offsets = (
        [mapped(folder / f"{name}.{side}.{part}.npy", description["sha256"]) for side in SIDES]
        for part in ("ids", "offsets")
    )
    source, target = zip(ids, offsets)
    return BinarisedSet(source, target, segmentations_of(description["sets"][name]))


def describe(folder: Path) -> dict[str, Any]:
    """The content of binarised.json: vocabulary_size, vocabulary_sha256, languages, sets, sha256 and sum.

    If the folder has the weights of a model, `initial` has its name and settings. Raises UserError if the file is missing
    or damaged.
    """
    path = Path(folder) / DESCRIPTION
    try:
        description = read_json(path)
        sums = description["sha256"]
        for name, counts in description["sets"].items():
            if not all(isinstance(counts[key], int) for key in ("pairs", "source_tokens", "target_tokens")):
                raise ValueError(f"the counts of {name} are not numbers")
            several = segmentations_of(counts)
            if not isinstance(several, int) or several < 1 or counts["pairs"] % several:
                raise ValueError(f"the pairs of {name} are not {several} times as many as its lines")
        if description["sum"] != sum_of(sums) or not isinstance(description["vocabulary_size"], int):
            raise ValueError("its checksums do not agree")
        str(description["vocabulary_sha256"])
    except FileNotFoundError:
        raise UserError(f"{path} is missing; it is made by binarise") from None
    except UserError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}); run binarise again") from None
    return description


def segmentations_of(counts: dict[str, int]) -> int:
    """The number of segmentations of a set with these counts. Sets without BPE-dropout have one and lack the key."""
    return counts.get("segmentations", 1)


def mapped(path: Path, sums: dict[str, str]) -> np.ndarray:
    """The array in `path`, memory-mapped. Raises UserError as `require_whole` does."""
    require_whole(path, sums)
    return np.load(path, mmap_mode="r").view(np.ndarray)  # slicing np.memmap itself is slow


def require_whole(path: Path, sums: dict[str, str]) -> None:
    """Raise UserError if the file is missing or its sha256 is not the one in `sums`."""
    try:
        whole = sha256(path) == sums.get(path.name)
    except FileNotFoundError:
        raise UserError(f"{path} is missing; run binarise again") from None
    if not whole:
        raise UserError(f"{path} is not the file that binarise wrote (its sha256 differs); run binarise again")


def id_type(vocabulary_size: int) -> np.dtype:
    return np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)


def write_side(
    folder: Path, stem: str, encoded: Iterable[tuple[np.ndarray, np.ndarray]], dtype: np.dtype
) -> tuple[int, int]:
    """Write `stem`.ids.npy and `stem`.offsets.npy, block by block, from blocks of ids and line lengths.

    Returns the number of lines and the number of ids.
    """
    lines, total = 0, 0
    with (
        open(folder / f"{stem}.ids.npy", "wb", buffering=1 << 20) as ids,
        open(folder / f"{stem}.offsets.npy", "wb", buffering=1 << 20) as offsets,
    ):
        write_header(ids, dtype, 0)
        write_header(offsets, np.dtype(np.int64), 0)
        offsets.write(np.zeros(1, np.int64).data)
        for block, lengths in encoded:
            ids.write(block.astype(dtype, copy=False).data)
            offsets.write((total + np.cumsum(lengths, dtype=np.int64)).data)
            lines, total = lines + len(lengths), total + len(block)
        for file, of, length in ((ids, dtype, total), (offsets, np.dtype(np.int64), lines + 1)):
            file.seek(0)
            write_header(file, of, length)  # as long as before: numpy pads headers, so that any length fits
    return lines, total


def write_header(file: BinaryIO, dtype: np.dtype, length: int) -> None:
    description = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, description)


def write_description(
    folder: Path,
    vocabulary_size: int,
    vocabulary_sha256: str,
    languages: tuple[str, str],
    sets: dict[str, dict],
    initial: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write binarised.json, with the sha256 of each array in `folder`; returns its content.

    `initial`, if given, has the path of the first `weights`, which are copied to the folder, the name of their `model` and
    its `settings`.
    """
    if initial:
        shutil.copyfile(initial["weights"], folder / INITIAL)
    sums = {path.name: sha256(path) for path in sorted([*folder.glob("*.npy"), *folder.glob(INITIAL)])}
    description = {
        "vocabulary_size": vocabulary_size,
        "vocabulary_sha256": vocabulary_sha256,
        "languages": list(languages),
        "sets": sets,
        "sha256": sums,
        "sum": sum_of(sums),
    }
    if initial:
        description["initial"] = {key: initial[key] for key in ("model", "settings")}
    write_json(folder / DESCRIPTION, description)
    return description


def sum_of(sums: dict[str, str]) -> str:
    """One sha256 for all files, as `sha256sum *.npy *.safetensors | sha256sum` computes it."""
    return hashlib.sha256("".join(f"{sums[file]}  {file}\n" for file in sorted(sums)).encode()).hexdigest()
