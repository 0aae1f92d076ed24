"""The data of benchmarks.gpu in one folder of at most 40 MB, made on the workstation.

    python -m benchmarks.gpu.prepare TRAIN_SOURCE TRAIN_TARGET TEST_SOURCE TEST_TARGET [--out work/gpu/data]
                                     [--pairs 250000] [--pieces 37000]

The texts are plain, .gz or .xz: Europarl, and newstest2014. `data/CORPUS/normalised` has train.LANGUAGE, and
`data/sets/CORPUS-test` has the test set. Writes the first pairs as train, the next 2,000 as dev and the test set in the
format of binarise, the settings of tiny, base and big in params.yaml, and the dev loss of a bigram model of the target.
"""

import argparse
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from benchmarks.corpus import Pair, opened
from benchmarks.gpu.bench import SETTINGS
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import commit
from transformer.binarised import SIDES, BinarisedSet, id_type, open_binarised, write_description, write_side
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, read, require
from transformer.config.training import TrainingConfig
from transformer.config.vocabulary import EOS, VocabularyConfig
from transformer.files import atomic_folder, write_json
from transformer.vocabulary import Vocabulary, WordTable, learn

MODELS = ("tiny", "base", "big")
SECTIONS = {"model": ModelConfig, "training": TrainingConfig, "decoding": DecodingConfig}
DEV = 2000  # pairs
MOST = 40_000_000  # bytes
BLOCK = 20_000  # lines that are encoded at a time
DISCOUNT = 0.75  # of the counts of the bigram model


def read_pairs(paths: list[Path]) -> Iterator[Pair]:
    """The pairs of two aligned texts, without those that have an empty side."""
    return (pair for pair in opened(paths) if all(side.split() for side in pair))


def write_set(name: str, pairs: list[Pair], words: WordTable, folder: Path) -> dict[str, int]:
    counts = {"pairs": len(pairs)}
    for number, side in enumerate(SIDES):
        starts = range(0, len(pairs), BLOCK)
        blocks = ("".join(f"{pair[number]}\n" for pair in pairs[start : start + BLOCK]) for start in starts)
        encoded = (words.encode(block.encode()) for block in blocks)
        _, counts[f"{side}_tokens"] = write_side(folder, f"{name}.{side}", encoded, id_type(words.vocabulary.size))
    return counts


def bigram_loss(train: BinarisedSet, dev: BinarisedSet, vocabulary: int) -> float:
    """The mean loss in nats of the dev set's target pieces and EOS, each given the piece before it.

    The probability of a bigram is its discounted relative frequency. The remaining probability follows the counts of
    single pieces, with one added to each count (absolute discounting).
    """
    before, after = bigrams(train)
    keys, counts = np.unique(before * vocabulary + after, return_counts=True)
    piece = (np.bincount(after, minlength=vocabulary) + 1) / (len(after) + vocabulary)
    total = np.bincount(before, minlength=vocabulary)
    kinds = np.bincount(keys // vocabulary, minlength=vocabulary)  # the different pieces that follow
    before, after = bigrams(dev)
    wanted = before * vocabulary + after
    place = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    count = np.where(keys[place] == wanted, counts[place] - DISCOUNT, 0)
    rest = np.where(total[before] > 0, DISCOUNT * kinds[before], 1)
    return float(-np.log((count + rest * piece[after]) / np.maximum(total[before], 1)).mean())


def bigrams(pairs: BinarisedSet) -> tuple[np.ndarray, np.ndarray]:
    """All target pieces, with EOS for the start of a sentence, and the piece or EOS that follows each."""
    ends = pairs.target_offsets[1:]
    ids = np.insert(pairs.target_ids.astype(np.int64), ends, EOS)
    return np.concatenate([[EOS], ids[:-1]]), ids


def main(arguments: argparse.Namespace) -> None:
    require(arguments.pairs > 0, "--pairs", arguments.pairs, "a number above 0 is expected")
    params = load()
    models = {name: {key: vars(section(params, "models", name, key, SECTIONS[key])) for key in SECTIONS} for name in MODELS}
    taken = list(islice(read_pairs(arguments.train), arguments.pairs + DEV))
    sets = {"train": taken[:-DEV], "dev": taken[-DEV:], "test": list(read_pairs(arguments.test))}
    if not sets["test"]:
        raise UserError(f"{arguments.test[0]}: no pairs; a test set is expected")
    if not sets["train"]:
        raise UserError(f"{arguments.train[0]}: {len(taken):,} pairs; more than {DEV:,}, the dev set, are expected")
    settings = {**params["base"]["vocabulary"], "pieces": arguments.pieces}
    model = learn([f"{line}\n".encode() for line in chain(*sets["train"])], read(VocabularyConfig, settings, "--pieces"))
    with atomic_folder(arguments.out) as folder:
        (folder / "vocabulary.model").write_bytes(model)
        vocabulary = Vocabulary(folder / "vocabulary.model")
        words = WordTable(vocabulary, settings["threads"])
        counts = {name: write_set(name, pairs, words, folder) for name, pairs in sets.items()}
        write_description(folder, vocabulary.size, vocabulary.sha256, ("source", "target"), counts)
        train, dev = (open_binarised(folder, name) for name in ("train", "dev"))
        loss = bigram_loss(train, dev, vocabulary.size)
        write_json(folder / SETTINGS, {"commit": commit(), "bigram_loss": loss, "models": models})
        size = sum(path.stat().st_size for path in folder.iterdir())
        if size > MOST:
            raise UserError(f"--pairs {arguments.pairs}: the data has {size:,} bytes, more than {MOST:,}; lower --pairs")
    print(f"{arguments.out}: {counts['train']['pairs']:,} pairs, {size:,} bytes, dev loss of a bigram model {loss:.3f}")


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu.prepare", description=__doc__.split("\n\n")[0])
    parser.add_argument("train", type=Path, nargs=2)
    parser.add_argument("test", type=Path, nargs=2)
    parser.add_argument("--out", type=Path, default=Path("work/gpu/data"))
    parser.add_argument("--pairs", type=int, default=250_000)
    parser.add_argument("--pieces", type=int, default=37_000)
    return parser


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
