"""Decides whether a stage computes in portable arithmetic, before it imports torch and numpy.

The setting follows from params.yaml and from the entry that the command line names.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.config.arithmetic import VARIABLES
from transformer.config.reading import UserError

# The stages with a setting `arithmetic`: the block of the entry, and the part of `base` with the setting. `average` may
# translate dev, in the arithmetic of the training.
STAGES = {
    "train": ("runs", "training"),
    "average": ("runs", "training"),
    "tune": ("searches", "training"),
    "decode": ("runs", "decoding"),
    "decode_set": ("decodings", "decoding"),
    "back_translate": ("back_translations", "decoding"),
    "train_value": ("values", "decoding"),
    "train_reverse_value": ("reverse_values", "decoding"),
    "reverse_score": ("reverse_scores", "decoding"),
}


def prepare(module: str, arguments: Sequence[str]) -> None:
    """Set the environment of `python -m MODULE ENTRY ...` if it is a stage in portable arithmetic."""
    stage = module.rpartition(".")[2]  # the stage of an extra is in the folder of the extra
    if stage not in STAGES or not arguments:
        return
    from pipeline.settings.params import load  # no other module needs params.yaml at its start

    # The stage reports what is wrong with params.yaml or with the name.
    with contextlib.suppress(OSError, UserError, LookupError, TypeError, AttributeError):
        if portable(load(), stage, arguments[0]):
            os.environ.update(VARIABLES)
            os.environ.pop("OPENBLAS_L2_SIZE", None)  # would change the order of sums


def portable(params: Mapping[str, Any], stage: str, name: str) -> bool:
    """Whether the stage computes in portable arithmetic for the entry `name` of its block."""
    block, part = STAGES[stage]
    entry = params[block][name]
    model = params["models"][entry["model"]][part] if block in ("runs", "searches") else {}
    own = entry if part == "training" or block == "decodings" else entry.get("decoding", {})
    return {**params["base"][part], **model, **own}.get("arithmetic") == "portable"
