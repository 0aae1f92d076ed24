"""The CPU threads and the GPUs that a stage uses.

A process numbers its visible GPUs from 0 and by default computes on GPU 0, so two stages at the same time would share
this GPU. A stage that needs GPUs therefore claims free GPUs and hides all others from itself by CUDA_VISIBLE_DEVICES.
A claim is a lock on a file, which ends with the process.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from ruamel.yaml import YAML

from pipeline.settings.back_translations import decoder
from pipeline.settings.decodings import decoding_run
from pipeline.settings.machine import machine
from pipeline.settings.params import section, text_corpus
from pipeline.settings.searches import search, trial_settings
from pipeline.settings.selection import run_settings
from pipeline.settings.values import value_run
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.workflow.progress import warn
from transformer.config.decoding import DecodingConfig

HELD: list[Any] = []  # the locks of this process, which end with it
STAGES = Path("dvc.yaml")
VISIBLE = "CUDA_VISIBLE_DEVICES"
ALL_PROCESSES = "${machine.processes}"  # in dvc.yaml: one GPU for each process


def threads_of(params: Mapping[str, Any], stage: str, declared: int) -> int:
    """Return the threads of one process of a stage such as `train@demo-tiny`.

    They are the setting `threads` of a vocabulary, a training, a decoding or the trials of a search (of these, the
    largest). For a stage without this setting, they are those that dvc.yaml declares.
    """
    kind, _, name = stage.partition("@")
    match kind:
        case "binarise" | "augment":
            return section(params, "corpora", text_corpus(params, name), "vocabulary", VocabularyConfig).threads
        case "back_translate":
            return decoder(params, name).config.threads
        case "train":
            return run_settings(params, name)[2].threads
        case "tune":
            found = search(params, name)
            trials = (trial_settings(params, name, found, settings) for settings in found.samples())
            return max(training.threads for _, training in trials)
        case "decode":
            return section(params, "models", params["runs"][name]["model"], "decoding", DecodingConfig).threads
        case "train_value" | "train_reverse_value":
            return value_run(params, name).samples.config.threads
        case "decode_set":
            return decoding_run(params, name).choice.config.threads
        case "reverse_score":
            return params["base"]["decoding"]["threads"]
    return declared


def visible() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them. Does not start CUDA."""
    named = os.environ.get(VISIBLE)
    if named is None:
        return [str(number) for number, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]
    entries = (entry.strip() for entry in named.split(","))
    # CUDA, too, ignores an invalid entry and all entries after it.
    return list(takewhile(lambda entry: re.fullmatch(r"\d+|(GPU|MIG)-\S+", entry), entries))


def usable(params: Mapping[str, Any]) -> list[str]:
    """Return the visible GPUs, or an empty list if machine.device is `cpu`."""
    return [] if machine(params).device == "cpu" else visible()


def claim_for(stage: str, params: Mapping[str, Any]) -> None:
    """Claim the GPUs that dvc.yaml states for a stage. A worker of a training inherits the GPUs of its parent."""
    if usable(params) and "LOCAL_RANK" not in os.environ:
        claim(needed(stage, params))


def definitions() -> dict[str, Any]:
    """Return the stages of dvc.yaml by name, or {} if there is no dvc.yaml."""
    return YAML(typ="safe").load(STAGES.read_text(encoding="utf-8"))["stages"] if STAGES.exists() else {}


def needed(stage: str, params: Mapping[str, Any]) -> int:
    """Return the number of GPUs that dvc.yaml states for a stage, or 0 if dvc.yaml has no such stage."""
    stages = definitions()
    if stage not in stages:
        return 0
    gpus = stages[stage].get("do", stages[stage])["meta"]["snakemake"]["gpu"]
    return machine(params).processes if gpus == ALL_PROCESSES else gpus


def claim(number: int) -> None:
    """Restrict this process and its children to `number` of the visible GPUs. 0 restricts nothing.

    Takes free GPUs first. If too few are free, it also takes GPUs that another stage uses.
    """
    gpus = visible()
    free: list[str] = []
    for gpu in gpus:
        if len(free) < number and locked(gpu):
            free.append(gpu)
    shared = [gpu for gpu in gpus if gpu not in free][: max(0, number - len(free))]
    if shared:
        warn(f"GPU {', '.join(shared)}: shared with another stage, because no other GPU is free")
    if number:
        os.environ[VISIBLE] = ",".join(gpu for gpu in gpus if gpu in (*free, *shared))


def locked(gpu: str) -> bool:
    """Lock a GPU until this process ends. Returns whether it was free."""
    folder = Path(tempfile.gettempdir()) / f"gpus-of-{os.getuid()}"  # not at import, which would fail on a full disk
    folder.mkdir(parents=True, exist_ok=True)
    try:
        HELD.append(FileLock(folder / gpu.replace("/", "-"), blocking=False).acquire())
    except Timeout:
        return False
    return True
