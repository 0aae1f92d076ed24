"""The blocks `values` and `reverse_values`: each line trains a value on samples of a model. No line trains a run.

A value predicts the final score of a translation from a prefix of it. A value of `values` predicts a score against the
reference. A value of `reverse_values` predicts the probability of the source. The stage of such a value also depends on
a second model, so these values have their own block.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.decodings import named, part
from pipeline.settings.params import entry
from transformer.config.decoders import Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, keys, read, require_keys
from transformer.config.value import ValueConfig

FOLDER = "values"  # models/values/NAME is the model folder with the value NAME of either block
BLOCKS = ("values", "reverse_values")
OF_SOURCE = "source_probability"


@dataclass(frozen=True)
class ValueRun:
    """A line of `values` or `reverse_values`.

    `model` is a model folder below models/. This model translates sentences of `corpus` with the decoder `samples`.
    `reverse` is a model folder of the reverse direction. Its model computes the probability of the source. `reverse` is
    None for a line of `values`.
    """

    model: str
    corpus: str
    settings: ValueConfig
    samples: Choice
    reverse: str | None = None


def value_run(params: Mapping[str, Any], name: str) -> ValueRun:
    """Return the value `name` of params.yaml. Its settings are those of `base.value`, changed by the line."""
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
        raise UserError(f"{where}.score: {OF_SOURCE} needs a model of the reverse direction: a line of `reverse_values`")
    return ValueRun(model, corpus, settings, samples, *reverse)


def value_settings(params: Mapping[str, Any], own: Mapping[str, Any], where: str) -> tuple[ValueConfig, Choice]:
    """Return the settings and the decoder of the samples: those of `base.value`, changed by `own`."""
    merged = {**entry(params, "base", "value"), **own}
    require_keys(merged, [*keys(ValueConfig), "samples"], where)
    if "samples" not in merged:
        raise UserError(f"{where}.samples is missing; {{decoder: NAME, number: N}} is expected")
    config = read(DecodingConfig, entry(params, "base", "decoding"), "params.yaml: base.decoding")
    samples = part(params, merged.pop("samples"), f"{where}.samples", config)
    return read(ValueConfig, merged, where), samples


def corpora_of_values(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each value, by its model folder (`values/NAME`)."""
    return {f"{FOLDER}/{name}": value_run(params, name).corpus for block in BLOCKS for name in params[block]}
