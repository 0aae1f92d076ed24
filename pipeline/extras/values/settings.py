"""The blocks `values` and `reverse_values`: each line trains a value on samples of a model. No line trains a run.

A value predicts the final score of a translation from a prefix of it. A value of `values` predicts a score against the
reference. A value of `reverse_values` predicts the probability of the source. The stage of such a value also depends on
a second model, so these values have their own block.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.settings.decodings import Samples, samples_of
from pipeline.settings.params import entry
from transformer.config.decoders import Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import hints, read
from transformer.config.value import ValueConfig


@dataclass(frozen=True)
class BaseValue(ValueConfig):
    """`base.value`: the settings of all values, and the decoder of the samples."""

    score: Literal["bleu", "chrf"]
    samples: Samples


@dataclass(frozen=True)
class Value:
    """A line of `values`: a model folder below models/ (RUN/average) and the corpus of its run."""

    model: str
    corpus: str

    @staticmethod
    def further(_: Mapping) -> dict[str, Any]:
        return hints(BaseValue)


@dataclass(frozen=True)
class ReverseValue(Value):
    """A line of `reverse_values`, which also has the model folder of a run of the reverse direction."""

    reverse: str

    @staticmethod
    def further(_: Mapping) -> dict[str, Any]:
        return {key: kind for key, kind in hints(BaseValue).items() if key != "score"}


@dataclass(frozen=True)
class ValueRun:
    """A value with all its settings. Its model translates sentences of `corpus` with the decoder `samples`."""

    model: str
    corpus: str
    settings: ValueConfig
    samples: Choice
    reverse: str | None  # computes the probability of the source; None for a line of `values`


def value_run(params: Mapping[str, Any], name: str) -> ValueRun:
    """Return the value `name` of params.yaml. Its settings are those of `base.value`, changed by the line."""
    block = "reverse_values" if name in params["reverse_values"] else "values"
    where, values = f"params.yaml: {block}.{name}", entry(params, block, name)
    merged = {**params["base"]["value"], **values} | ({"score": "source_probability"} if block == "reverse_values" else {})
    config = read(DecodingConfig, params["base"]["decoding"], "params.yaml: base.decoding")
    samples = samples_of(params, merged["samples"], f"{where}.samples", config)
    settings = read(ValueConfig, {key: merged[key] for key in hints(ValueConfig)}, where)
    return ValueRun(values["model"], values["corpus"], settings, samples, values.get("reverse"))
