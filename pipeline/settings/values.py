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
from transformer.config.reading import hints, keys, read, read_keys
from transformer.config.value import ValueConfig

FOLDER = "values"  # models/values/NAME is the model folder with the value NAME of either block
BLOCKS = ("values", "reverse_values")
OF_SOURCE = "source_probability"


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
    """A value with all its settings.

    The model translates sentences of `corpus` with the decoder `samples`. The model `reverse` computes the probability of
    the source. `reverse` is None for a line of `values`.
    """

    model: str
    corpus: str
    settings: ValueConfig
    samples: Choice
    reverse: str | None = None


def value_run(params: Mapping[str, Any], name: str) -> ValueRun:
    """Return the value `name` of params.yaml. Its settings are those of `base.value`, changed by the line."""
    block = next((block for block in BLOCKS if name in params[block]), FOLDER)
    where, values = f"params.yaml: {block}.{name}", dict(entry(params, block, name))
    read_keys(Value if block == FOLDER else ReverseValue, values, where)
    names = {key: values.pop(key) for key in ("model", "corpus", "reverse") if key in values}
    merged = {**params["base"]["value"], **values, **({"score": OF_SOURCE} if "reverse" in names else {})}
    config = read(DecodingConfig, params["base"]["decoding"], "params.yaml: base.decoding")
    samples = samples_of(params, merged["samples"], f"{where}.samples", config)
    settings = read(ValueConfig, {key: merged[key] for key in keys(ValueConfig)}, where)
    return ValueRun(names["model"], names["corpus"], settings, samples, names.get("reverse"))


def corpora_of_values(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the corpus of each value, by its model folder (`values/NAME`)."""
    return {f"{FOLDER}/{name}": value["corpus"] for block in BLOCKS for name, value in params[block].items()}
