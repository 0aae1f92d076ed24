"""Mix the binarised pairs of a corpus with synthetic pairs into the data of a run.

    python -m pipeline.extras.back_translation.augment NAME --data data/CORPUS/binarised \\
        --vocabulary data/CORPUS/vocabulary.model --text data/CORPUS/text.json --synthetic data/NAME/synthetic \\
        --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test --out data/NAME --sets data/sets \\
        --report scores/corpora/NAME/binarise.json

Reads params.yaml (back_translations.NAME; languages and vocabulary of its corpus) and the outputs of the preceding
stages. Writes the files that the stages of a run with `corpus: NAME` read: `binarised`, `vocabulary.model`,
`text.json`, the sets NAME-dev and NAME-test, and the report binarise.json. `vocabulary.model`, `text.json` and the sets
are copies of the files of the corpus.

The training pairs are the real pairs, then the synthetic pairs. The real pairs are repeated until there are at most
`ratio` synthetic pairs per real pair. The numbers of copies of any two real pairs differ by at most 1. If `tagged`,
each synthetic source starts with the unknown piece (Caswell et al. 2019). Text that is encoded with byte fallback never
contains this piece. With `vocabulary.bpe_dropout`, each segmentation of the training text has all these pairs.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from pipeline.binarise import Blocks, complete, encoded, report_of, write_set
from pipeline.extras.back_translation.settings import back_translation
from pipeline.running import stage
from pipeline.settings.params import languages, load, section
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.binarised import SIDES, BinarisedSet, id_type, open_binarised, write_description
from pipeline.text.sets import count_lines, files_of, progress
from pipeline.text.words import WordTable
from transformer.config.vocabulary import UNK
from transformer.files import atomic_folder, write_json
from transformer.vocabulary import Vocabulary

BLOCK = 1 << 16  # pairs in memory at a time


def repeated(real: int, synthetic: int, ratio: float) -> int:
    """Return the number of real pairs in the mixture, repetitions included. `real` is the number of different pairs."""
    return max(real, math.ceil(synthetic / ratio))


def of_set(pairs: BinarisedSet, side: str, lines: int, segmentation: int = 0) -> Blocks:
    """Yield `lines` lines of one side of a set, in order. If the set has fewer, copies of a line follow it directly."""
    different = len(pairs) // pairs.segmentations
    for start in range(0, lines, BLOCK):
        places = np.arange(start, min(start + BLOCK, lines)) * different // lines
        yield pairs.sentences(side, segmentation * different + places)


def tagged(blocks: Blocks) -> Blocks:
    for ids, lengths in blocks:
        yield np.insert(ids, np.cumsum(lengths) - lengths, UNK), lengths + 1


def mix(
    sets: dict[str, BinarisedSet],
    paths: list[Path],
    words: WordTable,
    config: VocabularyConfig,
    tag: bool,
    lines: int,
    out: Path,
) -> dict[str, dict[str, int]]:
    """Write train and dev. Returns the counts of both. Each segmentation of train has `lines` real lines, then `paths`."""
    real, dev, dtype = sets["train"], sets["dev"], id_type(words.vocabulary.size)

    def mixed(side: str, path: Path) -> Blocks:
        for segmentation in range(real.segmentations):
            yield from of_set(real, side, lines, segmentation)
            blocks = encoded(path, words, bar, config, segmentation)
            yield from tagged(blocks) if tag and side == "source" else blocks

    with progress(paths * real.segmentations) as bar:
        counts = write_set(out, "train", map(mixed, SIDES, paths), dtype)
    if real.segmentations > 1:
        counts["segmentations"] = real.segmentations
    return {"train": counts, "dev": write_set(out, "dev", (of_set(dev, side, len(dev)) for side in SIDES), dtype)}


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    corpus, tag, ratio = back_translation(params, name, "corpus", "tagged", "ratio")
    codes, config = languages(params, name), section(params, "corpora", corpus, "vocabulary", VocabularyConfig)
    vocabulary = Vocabulary(arguments.vocabulary)
    sets = {part: open_binarised(arguments.data, part, vocabulary_sha256=vocabulary.sha256) for part in ("train", "dev")}
    paths = files_of(arguments.synthetic, "train", codes)
    different, made = len(sets["train"]) // sets["train"].segmentations, count_lines(paths[0])
    lines = repeated(different, made, ratio)
    with atomic_folder(arguments.out / "binarised") as out:
        counts = mix(sets, paths, WordTable(vocabulary, config.threads), config, tag, lines, out)
        description = write_description(out, vocabulary.size, vocabulary.sha256, codes, counts)
    complete(name, arguments.vocabulary, arguments.text, arguments)
    write_json(arguments.report, report_of(description, config))
    print(f"{arguments.out}: {lines:,} real pairs ({different:,} different ones) and {made:,} synthetic pairs")


if __name__ == "__main__":
    options = "data vocabulary text synthetic dev test out sets report"
    stage.script(main, "augment", __doc__, options, name="a back-translation of params.yaml")
