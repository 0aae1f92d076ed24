"""The data of benchmarks.gpu in one folder of at most 40 MB, made where the pipeline runs.

    python -m benchmarks.gpu.prepare CORPUS [--out work/gpu/data] [--pairs 250000]

CORPUS is a corpus of params.yaml that `snakemake binarise@CORPUS` has made, such as europarl-en-fr. Writes the first pairs
of train and dev in the format of binarise, and the settings of tiny, base and big in params.yaml.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.gpu.bench import SETTINGS
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import commit
from transformer.binarised import SIDES, describe, open_binarised, write_description
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, require
from transformer.config.training import TrainingConfig
from transformer.files import atomic_folder, write_json

MODELS = ("tiny", "base", "big")
SECTIONS = {"model": ModelConfig, "training": TrainingConfig}
DEV = 2000  # pairs, at most
MOST = 40_000_000  # bytes


def write_first(binarised: Path, name: str, pairs: int, folder: Path) -> dict[str, int]:
    """Write the first `pairs` pairs of a set. Returns its numbers of pairs and pieces."""
    whole, counts = open_binarised(binarised, name), dict[str, int]()
    for side in SIDES:
        ids, offsets = getattr(whole, f"{side}_ids"), getattr(whole, f"{side}_offsets")[: pairs + 1]
        np.save(folder / f"{name}.{side}.ids.npy", ids[: offsets[-1]])
        np.save(folder / f"{name}.{side}.offsets.npy", offsets)
        counts |= {"pairs": len(offsets) - 1, f"{side}_tokens": int(offsets[-1])}
    return counts


def main(arguments: argparse.Namespace) -> None:
    require(arguments.pairs > 0, "--pairs", arguments.pairs, "a number above 0 is expected")
    params, binarised = load(), Path("data", arguments.corpus, "binarised")
    if not binarised.is_dir():
        raise UserError(f"{binarised} is missing; `snakemake binarise@{arguments.corpus}` makes it")
    models = {name: {key: vars(section(params, "models", name, key, SECTIONS[key])) for key in SECTIONS} for name in MODELS}
    with atomic_folder(arguments.out) as folder:
        limits = {"train": arguments.pairs, "dev": DEV}
        counts = {name: write_first(binarised, name, limit, folder) for name, limit in limits.items()}
        of = describe(binarised)
        write_description(folder, of["vocabulary_size"], of["vocabulary_sha256"], ("source", "target"), counts)
        write_json(folder / SETTINGS, {"commit": commit(), "models": models})
        size = sum(path.stat().st_size for path in folder.iterdir())
        if size > MOST:
            raise UserError(f"--pairs {arguments.pairs}: the data has {size:,} bytes, more than {MOST:,}; lower --pairs")
    print(f"{arguments.out}: {counts['train']['pairs']:,} pairs, {size:,} bytes")


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu.prepare", description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--out", type=Path, default=Path("work/gpu/data"))
    parser.add_argument("--pairs", type=int, default=250_000)
    return parser


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
