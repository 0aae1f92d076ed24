"""The trained model that a command names: a run of params.yaml, or a model folder."""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from pipeline.running.hardware import device_type
from pipeline.running.quota import cores
from pipeline.settings.machine import machine
from pipeline.settings.params import load, section
from pipeline.settings.selection import run_settings
from transformer.checkpoint import SETTINGS, WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, convert
from transformer.store import step_files
from transformer.translator import PAPER, Translator

STEP: dict[str, Any] = {"type": int, "metavar": "N", "help": "of a run: its checkpoint at this step, not the average"}
NAMED = "a run of params.yaml, or a model folder such as models/RUN/average"


def is_folder(name: str) -> bool:
    return all((Path(name) / file).is_file() for file in (WEIGHTS, SETTINGS))  # an export for Marian has no SETTINGS


def folder_of(name: str) -> Path:
    """Return the model folder. Raises UserError if there is no such run or folder, and for a run without a model."""
    if is_folder(name):
        return Path(name)
    runs, folder = convert(dict[str, Any], load().get("runs"), "params.yaml: runs"), Path("models", name, "average")
    if name not in runs:
        trained = f"; its model is {folder}" if is_folder(str(folder)) else ""  # by another study
        raise UserError(f"{name!r} is not a run of params.yaml ({', '.join(runs)}) and not a model folder{trained}")
    if not is_folder(str(folder)):
        raise UserError(
            f"{folder} is missing: {name} has no model yet; `make reproduce` trains it, `dvc pull {folder}` fetches it"
        )
    return folder


def label_of(name: str) -> str:
    """Return a short name of the model: that of the run or the folder. For `models/RUN/average` it is RUN."""
    folder = Path(name).resolve()
    return folder.parent.name if folder.name == "average" else folder.name


def run_of(folder: Path) -> str | None:
    """Return the run of this project whose average is in `folder`, or None."""
    run = label_of(str(folder))
    return run if folder.resolve() == Path("models", run, "average").resolve() else None


def decoding_of(name: str) -> DecodingConfig:
    if is_folder(name):
        return PAPER
    params = load()
    run_settings(params, name)  # raises UserError for an invalid entry
    return section(params, "models", params["runs"][name]["model"], "decoding", DecodingConfig)


def weights_of(folder: Path, step: int | None) -> Path:
    """Return the weights of a model folder, or of the checkpoint beside it at a step. Raises UserError without this one."""
    if step is None:
        return folder / WEIGHTS
    checkpoints = folder.parent / "checkpoints"
    if not checkpoints.is_dir():
        raise UserError(f"--step takes a checkpoint of a run, and {folder} has none beside it, in {checkpoints}")
    kept = dict(step_files(checkpoints))
    if step not in kept:
        held = ", ".join(map(str, kept)) or "none"
        raise UserError(f"{checkpoints} has no checkpoint of step {step}; there is {held} (training.keep sets how many)")
    return kept[step]


def translator_of(name: str, step: int | None = None) -> Translator:
    """Return the translator of a run on its device with its decoding settings, or of a folder with the paper's.

    With a `step`, its model is that checkpoint in place of the average.
    """
    folder = folder_of(name)
    torch.set_num_threads(min(torch.get_num_threads(), cores()))  # torch does not read the quota of a container
    settings = {} if is_folder(name) else {"device": device_type(machine(load())), **vars(decoding_of(name))}
    translator = Translator.load(folder, **settings)
    if step is None:
        return translator
    model, description = load_model(weights_of(folder, step), translator.device)
    return dataclasses.replace(translator, model=model, description=description)
