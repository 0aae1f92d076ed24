"""Convert text to arrays of ids, which training memory-maps.

    python -m pipeline.binarise CORPUS --text data/CORPUS/normalised --vocabulary data/CORPUS/vocabulary.model \\
        --out data/CORPUS/binarised --report REPORT.json

Reads train and dev in the folder of normalised text, and the vocabulary. Writes the arrays (pipeline/text/binarised.py)
and a report with the counts and a checksum of all data. An empty line has no ids, but is kept, so that line numbers agree.
With `vocabulary.bpe_dropout`, the training set is written in `segmentations` sampled segmentations.
"""

import argparse
import re
import shutil
from collections.abc import Iterable, Iterator
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pipeline.running import stage
from pipeline.running.progress import warn
from pipeline.settings import params
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.binarised import SIDES, id_type, segmentations_of, write_description, write_side
from pipeline.text.sets import blocks, files_of, progress
from pipeline.text.words import WordTable
from transformer.config.reading import UserError
from transformer.files import atomic_folder, write_file, write_json
from transformer.vocabulary import Vocabulary

SAME = [0, 2, 1]  # the last version of SentencePiece that gives the same samples in each process; it learns slower
Blocks = Iterator[tuple[np.ndarray, np.ndarray]]  # the ids of some lines, and the number of ids of each line


def encoded(path: Path, words: WordTable, bar: tqdm, dropout: VocabularyConfig | None = None, number: int = 0) -> Blocks:
    """Yield the blocks of a file. If `dropout` has BPE-dropout, it is the segmentation with this `number`."""
    for place, lines in enumerate(blocks(path, bar)):
        if dropout and dropout.bpe_dropout:
            (seed,) = np.random.SeedSequence([dropout.seed, number, place]).generate_state(1).tolist()
            ids = words.vocabulary.sample([line.removesuffix(b"\n") for line in lines], dropout.bpe_dropout, seed)
            yield np.fromiter(chain.from_iterable(ids), np.int32), np.fromiter(map(len, ids), np.int64, len(ids))
        else:
            block = b"".join(lines)
            yield words.encode(block if block.endswith(b"\n") else block + b"\n")


def training(path: Path, words: WordTable, bar: tqdm, config: VocabularyConfig) -> Blocks:
    """Yield the blocks of a file of the training set, one segmentation after another."""
    for number in range(config.segmentations):
        yield from encoded(path, words, bar, config, number)


def write_set(out: Path, name: str, sides: Iterable[Blocks], dtype: np.dtype) -> dict[str, int]:
    """Write both sides of a set. Returns its counts. Raises UserError unless the sides have the same number of lines."""
    written = [write_side(out, f"{name}.{side}", blocks, dtype) for side, blocks in zip(SIDES, sides)]
    (pairs, source), (others, target) = written
    if pairs != others:
        raise UserError(f"{name} has {pairs:,} lines on the source side and {others:,} on the target side; they must match")
    return {"pairs": pairs, "source_tokens": source, "target_tokens": target}


def main(arguments: argparse.Namespace) -> None:
    settings = params.load()
    languages = params.languages(settings, arguments.corpus)
    config = params.section(settings, "corpora", arguments.corpus, "vocabulary", VocabularyConfig)
    binarised(arguments.text, Vocabulary(arguments.vocabulary), languages, config, arguments.out, arguments.report)


def binarised(
    text: Path,
    vocabulary: Vocabulary,
    languages: tuple[str, str],
    config: VocabularyConfig,
    place: Path,
    report: Path,
    initial: dict[str, Any] | None = None,
) -> None:
    """Write train and dev of the folder `text` into the folder `place`, and a report. `write_description` has `initial`."""
    words = WordTable(vocabulary, config.threads)
    train, dev = (files_of(text, name, languages) for name in ("train", "dev"))
    dtype = id_type(vocabulary.size)
    if config.bpe_dropout and [*map(int, re.findall(r"\d+", metadata.version("sentencepiece")))] > SAME:
        warn("this SentencePiece samples other pieces at each start; sentencepiece==0.2.1 samples the same each time")
    with progress(train * config.segmentations + dev) as bar, atomic_folder(place) as out:
        counts = {"train": write_set(out, "train", (training(path, words, bar, config) for path in train), dtype)}
        if config.bpe_dropout:
            counts["train"]["segmentations"] = config.segmentations  # `pairs` counts all of them
        counts["dev"] = write_set(out, "dev", (encoded(path, words, bar) for path in dev), dtype)
        description = write_description(out, vocabulary.size, vocabulary.sha256, languages, counts, initial)
    write_json(report, report_of(description, config))
    print(f"{place}: " + ", ".join(f"{name} {pairs_in(count)}" for name, count in counts.items()))


def complete(name: str, vocabulary: Path, text: Path, arguments: argparse.Namespace) -> None:
    """Copy what the corpus `name` has besides its arrays: vocabulary and text.json to --out, dev and test to --sets."""
    for source, to in ((vocabulary, "vocabulary.model"), (text, "text.json")):
        write_file(arguments.out / to, source.read_bytes())
    for part in ("dev", "test"):
        with atomic_folder(arguments.sets / f"{name}-{part}") as folder:
            shutil.copytree(getattr(arguments, part), folder, dirs_exist_ok=True)


def pairs_in(counts: dict[str, int]) -> str:
    several = segmentations_of(counts)
    return f"{counts['pairs'] // several:,} pairs" + (f" in {several} segmentations" if several > 1 else "")


def report_of(description: dict, config: VocabularyConfig) -> dict:
    kept = {key: description[key] for key in ("vocabulary_size", "vocabulary_sha256", "languages", "sets")}
    return kept | {"bpe_dropout": config.bpe_dropout, "data_sum": description["sum"]}


if __name__ == "__main__":
    stage.script(main, "binarise", __doc__, "text vocabulary out report", corpus="a name under `corpora` in params.yaml")
