"""Mix the binarised pairs of a corpus with synthetic pairs into the data of a run.

    python -m pipeline.augment NAME --data data/CORPUS/binarised --vocabulary data/CORPUS/vocabulary.model \\
        --synthetic data/NAME/synthetic --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test --out data/NAME \\
        --sets data/sets --reports scores/corpora/NAME

Reads params.yaml (back_translations.NAME: tagged, ratio) and what the stages before made. Writes what the stages of a
run with `corpus: NAME` read: `binarised`, `vocabulary.model`, the sets NAME-dev and NAME-test, and the report
binarise.json; and augment.json, with the number of pairs of each kind. Vocabulary, dev and test are those of the corpus.

The training pairs are the real pairs, then the synthetic pairs. The real pairs are repeated until there are at most
`ratio` synthetic pairs per real pair: each occurs equally often or once more, evenly spread. If `tagged`, each synthetic
source starts with the unknown piece (Caswell et al. 2019), which no text contains that is encoded with byte fallback.
"""

import argparse
import itertools
import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pipeline.binarise import encoded, report_of
from pipeline.corpora.lines import progress
from pipeline.corpora.sets import find_sets
from pipeline.settings.back_translations import back_translation
from pipeline.settings.params import languages, load, section
from pipeline.workflow import stage
from transformer.binarised import SIDES, BinarisedSet, id_type, open_binarised, write_description, write_side
from transformer.config.vocabulary import UNK, VocabularyConfig
from transformer.files import atomic, atomic_folder, write_json
from transformer.vocabulary import Vocabulary, WordTable

Blocks = Iterable[tuple[np.ndarray, np.ndarray]]  # the ids of some lines, and the number of ids of each line
BLOCK = 1 << 16  # pairs in memory at a time


def repeated(real: int, synthetic: int, ratio: float) -> int:
    """Return the number of real pairs in the mixture, of `real` different ones."""
    return max(real, math.ceil(synthetic / ratio))


def of_set(pairs: BinarisedSet, side: str, lines: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `lines` lines of one side of a set: its own lines in their order, some repeated if there are too few."""
    ids, offsets = getattr(pairs, f"{side}_ids"), getattr(pairs, f"{side}_offsets")
    for start in range(0, lines, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, lines)) * len(pairs) // lines
        lengths = offsets[numbers + 1] - offsets[numbers]
        starts = np.cumsum(lengths) - lengths  # of the lines in the block
        yield ids[np.arange(lengths.sum()) + np.repeat(offsets[numbers] - starts, lengths)], lengths


def tagged(blocks: Blocks) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the blocks with the unknown piece before each line."""
    for ids, lengths in blocks:
        yield np.insert(ids, np.cumsum(lengths) - lengths, UNK), lengths + 1


def write_set(out: Path, name: str, sides: Iterable[Blocks], dtype: np.dtype) -> dict[str, int]:
    """Write both sides of a set. Returns its counts."""
    written = [write_side(out, f"{name}.{side}", blocks, dtype) for side, blocks in zip(SIDES, sides)]
    (pairs, source), (_, target) = written
    return {"pairs": pairs, "source_tokens": source, "target_tokens": target}


def mix(
    sets: dict[str, BinarisedSet], synthetic: list[Path], lines: int, tag: bool, words: WordTable, out: Path
) -> dict[str, dict[str, int]]:
    """Write train, with `lines` real pairs before the synthetic ones, and dev. Returns the counts of both."""
    dtype = id_type(words.vocabulary.size)
    with progress(synthetic) as bar:
        source, target = (encoded(path, words, bar) for path in synthetic)
        added = (tagged(source) if tag else source, target)
        train = (itertools.chain(of_set(sets["train"], side, lines), more) for side, more in zip(SIDES, added))
        dev = (of_set(sets["dev"], side, len(sets["dev"])) for side in SIDES)
        return {"train": write_set(out, "train", train, dtype), "dev": write_set(out, "dev", dev, dtype)}


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    chosen, codes = back_translation(params, name), languages(params, name)
    config = section(params, "corpora", chosen.corpus, "vocabulary", VocabularyConfig)
    vocabulary = Vocabulary(arguments.vocabulary)
    sets = {
        part: open_binarised(arguments.data, part, vocabulary_sha256=vocabulary.sha256) for part in ("train", "dev")
    }
    synthetic = find_sets(arguments.synthetic, codes, ("train",))["train"]
    with open(synthetic[0], "rb") as file:
        made = sum(1 for _ in file)
    lines = repeated(len(sets["train"]), made, chosen.ratio)
    with atomic_folder(arguments.out / "binarised") as out:
        counts = mix(sets, synthetic, lines, chosen.tagged, WordTable(vocabulary, config.threads), out)
        description = write_description(out, vocabulary.size, vocabulary.sha256, codes, counts)
    with atomic(arguments.out / "vocabulary.model") as file:
        file.write(arguments.vocabulary.read_bytes())
    for part in ("dev", "test"):
        with atomic_folder(arguments.sets / f"{name}-{part}") as folder:
            shutil.copytree(getattr(arguments, part), folder, dirs_exist_ok=True)
    write_json(arguments.reports / "binarise.json", {**report_of(description), "data_sum": description["sum"]})
    kinds = {"different_real": len(sets["train"]), "real": lines, "synthetic": made}
    write_json(arguments.reports / "augment.json", {"corpus": chosen.corpus, "run": chosen.run, "pairs": kinds})
    print(
        f"{arguments.out}: {lines:,} real pairs, of {len(sets['train']):,} different ones, and {made:,} synthetic pairs"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="augment", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a back-translation of params.yaml")
    for option in ("--data", "--vocabulary", "--synthetic", "--dev", "--test", "--out", "--sets", "--reports"):
        parser.add_argument(option, type=Path, required=True)
    stage.run(main, parser)
