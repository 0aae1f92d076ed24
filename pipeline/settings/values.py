"""The blocks `values` and `reverse_values`: values of prefixes, trained on samples of a model. They train no run.

A value of `values` predicts a score against the reference, and one of `reverse_values` the probability of the source.
They are two blocks because the second needs a second model, on which its stage depends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.decodings import named, part
from pipeline.settings.params import entry
from transformer.config.decoders import Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, keys, read, unknown
from transformer.config.value import ValueConfig

FOLDER = "values"  # models/values/NAME is a model folder with a value, of either block
BLOCKS = ("values", "reverse_values")
OF_SOURCE = "source_probability"


@dataclass(frozen=True)
class ValueRun:
    """A value: the model folder below models/, the corpus of the translated sentences, the settings, the sampling.

    `reverse` is the model folder of the reverse direction, which gives the probability of the source.
    """

    model: str
    corpus: str
    settings: ValueConfig
    samples: Choice
    reverse: str | None = None


def value_run(params: Mapping[str, Any], name: str) -> ValueRun:
    """Return the value `name` of params.yaml: `base.value`, changed by the entry."""
    block = next((block for block in BLOCKS if name in params[block]), FOLDER)
    where, values = f"params.yaml: {block}.{name}", entry(params, block, name)
    names = {"model": "RUN/average", "corpus": "the corpus of the run"}
    if block == "reverse_values":
        names["reverse"] = "RUN/average of a run of the reverse direction"
    own = {key: value for key, value in values.items() if key not in names}
    model, corpus, *reverse = named(values, names, where)
    if reverse:
        if "score" in own:
            raise UserError(f"{where}.score is not a setting of `reverse_values`, whose score is {OF_SOURCE}")
        own["score"] = OF_SOURCE
    settings, samples = value_settings(params, own, where)
    if settings.score == OF_SOURCE and not reverse:
        raise UserError(
            f"{where}.score: {OF_SOURCE} needs a model of the reverse direction: a line of `reverse_values`"
        )
    return ValueRun(model, corpus, settings, samples, *reverse)


def value_settings(params: Mapping[str, Any], own: Mapping[str, Any], where: str) -> tuple[ValueConfig, Choice]:
    """Return the settings and the sampling: `base.value`, changed by `own`."""
    merged, valid = {**entry(params, "base", "value"), **own}, [*keys(ValueConfig), "samples"]
    for key in merged:
        if key not in valid:
            raise UserError(unknown(key, valid, where))
    if "samples" not in merged:
        raise UserError(f"{where}.samples is missing; {{decoder: NAME, number: N}} is expected")
    config = read(DecodingConfig, entry(params, "base", "decoding"), "params.yaml: base.decoding")
    samples = part(params, merged.pop("samples"), f"{where}.samples", config)
    return read(ValueConfig, merged, where), samples


def corpora_of_values(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each model with a value that a decoding can name."""
    return {f"{FOLDER}/{name}": value_run(params, name).corpus for block in BLOCKS for name in params[block]}
