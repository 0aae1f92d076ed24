"""A folder in which `python -m pipeline.train run` trains a small model on random pairs."""

from pathlib import Path

import numpy as np
from ruamel.yaml import YAML

from pipeline.settings.params import load
from tests.imports import ROOT
from tests.pairs import Pairs
from transformer.binarised import id_type, write_description, write_side
from transformer.files import sha256

RUN = {"corpus": "demo", "model": "tiny", "N": 1, "d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16}
RUN |= {"batch_tokens": 200, "micro_batch_tokens": 60, "max_length": 30, "threads": 1}
RUN |= {"steps": 100_000, "checkpoint_every": 100}  # more steps than any test takes
VOCABULARY = 90
ARGUMENTS = "run --data data --vocabulary vocabulary.model --out models --scores scores --times times/training.json"
COMMAND = ["pipeline.train", *ARGUMENTS.split()]


def write_data(folder: Path) -> None:
    """Write folder/data and folder/vocabulary.model."""
    (folder / "data").mkdir()
    counts: dict[str, dict] = {}
    for name, pairs in {"train": Pairs(60, 25), "dev": Pairs(12, 25, seed=9)}.items():
        counts[name] = {"pairs": len(pairs)}
        for side, lines in zip(("source", "target"), pairs.sides):
            encoded = [(np.concatenate(lines), np.array([len(ids) for ids in lines]))]
            _, tokens = write_side(folder / "data", f"{name}.{side}", encoded, id_type(VOCABULARY))
            counts[name][f"{side}_tokens"] = tokens
    (folder / "vocabulary.model").write_bytes(b"only its digest is compared")
    write_description(folder / "data", VOCABULARY, sha256(folder / "vocabulary.model"), ["en", "de"], counts)


def write_params(folder: Path, machine: dict | None = None, **settings) -> None:
    """Write params.yaml with the run `run`: RUN, changed by `settings`."""
    write_yaml(folder, {"run": RUN | settings}, machine={"save_every_minutes": 0.001, **(machine or {})})


def write_yaml(folder: Path, runs: dict, machine: dict | None = None, **base: dict) -> None:
    """Write the project's params.yaml with these runs of the corpus `demo`, and changes of `machine` and `base`."""
    params = load(ROOT / "params.yaml") | {"runs": runs, "corpora_in_use": ["demo"]}
    params["machine"] |= machine or {}
    for section, changes in base.items():
        params["base"][section] |= changes
    with open(folder / "params.yaml", "w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)
