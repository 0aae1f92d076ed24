"""The block `values`: values of prefixes, trained on samples of a model. It causes no training of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.decodings import named, part
from pipeline.settings.params import entry
from transformer.config.decoders import Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, keys, read, unknown
from transformer.config.value import ValueConfig

FOLDER = "values"  # models/values/NAME is a model folder with a value


@dataclass(frozen=True)
class ValueRun:
    """A value: the model folder below models/, the corpus whose training text is sampled, the settings, the sampling."""

    model: str
    corpus: str
    settings: ValueConfig
    samples: Choice


def value_run(params: Mapping[str, Any], name: str) -> ValueRun:
    """Return the value `name` of params.yaml: `base.value`, changed by the entry."""
    where, values = f"params.yaml: values.{name}", entry(params, "values", name)
    model, corpus = named(values, {"model": "RUN/average", "corpus": "the corpus of the run"}, where)
    own = {key: value for key, value in values.items() if key not in ("model", "corpus")}
    return ValueRun(model, corpus, *value_settings(params, own, where))


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
    return {f"{FOLDER}/{name}": value_run(params, name).corpus for name in params[FOLDER]}
