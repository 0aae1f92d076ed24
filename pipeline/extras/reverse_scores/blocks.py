"""The block `reverse_scores` of params.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.settings.models import corpus_of_set, require_reverse
from pipeline.settings.registry import AVERAGE, Block
from transformer.config.reading import UserError


@dataclass(frozen=True)
class ReverseScore:
    """An entry of `reverse_scores`: a run of the reverse direction (RUN/average) scores the decodings of a set."""

    model: str
    set: str


def check_reverse_score(params: Mapping, name: str, where: str) -> None:
    """Check a line of `reverse_scores`. Its set must occur in no other line.

    Its run must translate from the target language to the source language of the set.
    """
    model, chosen = (params["reverse_scores"][name][key] for key in ("model", "set"))
    for other, values in params["reverse_scores"].items():
        if other != name and values["set"] == chosen:
            raise UserError(f"{where}.set: {chosen} is also the set of {other}; one line for each set is expected")
    require_reverse(params, model, corpus_of_set(params, chosen), f"{where}.model")


NAMES = {"model": AVERAGE, "set": "the set of a decoding"}
BLOCKS = {"reverse_scores": Block(ReverseScore, NAMES, folder="reverse_scores", check=check_reverse_score)}
