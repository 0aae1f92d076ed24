"""The blocks `values` and `reverse_values` of params.yaml, and the section `value` of its block `base`."""

from collections.abc import Mapping
from functools import partial

from pipeline.extras.values.settings import BaseValue, ReverseValue, Value, value_run
from pipeline.settings.decodings import unguided
from pipeline.settings.models import corpus_of, require_reverse
from pipeline.settings.params import text_corpus
from pipeline.settings.registry import AVERAGE, CORPUS, Block
from transformer.config.reading import UserError, shown


def check_value(params: Mapping, name: str, where: str) -> None:
    """Check a value. Its corpus must be the corpus of the run in `model`.

    If this run is trained on a back-translation, the corpus must be the corpus that the back-translation extends.
    """
    value = value_run(params, name)
    unguided(value.samples, f"{where}.samples")
    expected = text_corpus(params, corpus_of(params, value.model))
    if value.corpus != expected:
        raise UserError(f"{where}.corpus: {shown(value.corpus)} is not the corpus of the run; {expected!r} is expected")
    if value.reverse:
        require_reverse(params, value.reverse, value.corpus, f"{where}.reverse")


NAMES = {"model": AVERAGE, "corpus": CORPUS}
MADE = partial(Block, beside="runs", folder="values", models=True, value=True, check=check_value)
BASE = {"value": BaseValue}
BLOCKS = {"values": MADE(Value, NAMES), "reverse_values": MADE(ReverseValue, {**NAMES, "reverse": AVERAGE})}
