"""The CPU threads that a stage uses, which are the CPUs that it requests from Snakemake."""

from collections.abc import Mapping
from typing import Any

from pipeline.settings.decodings import decoding_run
from pipeline.settings.params import section
from pipeline.settings.searches import combinations_of, search, trial_settings
from pipeline.settings.selection import run_settings
from transformer.config.decoding import DecodingConfig


def threads_of(params: Mapping[str, Any], stage: str, declared: int) -> int:
    """Return the threads of one process of a stage such as `train@demo-tiny`.

    They are the setting `threads` of a training, a decoding or the trials of a search (of these, the largest). For any
    other stage, they are those that dvc.yaml declares.
    """
    kind, _, name = stage.partition("@")
    if kind == "train":
        return run_settings(params, name)[2].threads
    if kind == "tune":
        found = search(params, name)
        trials = (trial_settings(params, name, found, settings) for settings in combinations_of(found.space))
        return max(training.threads for _, training in trials)
    if kind == "decode":
        return section(params, "models", params["runs"][name]["model"], "decoding", DecodingConfig).threads
    if kind == "decode_set":
        return decoding_run(params, name).choice.config.threads
    return declared
