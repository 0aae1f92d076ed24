"""The block `decodings`: translations of a set by a trained model. A decoding causes no training."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.settings.params import entry
from transformer.config.decoders import COMMON, DECODERS, DEFAULT, Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import Count, UserError, hints, placed, read

SIMPLE = tuple(name for name, cls in DECODERS.items() if not cls.PARTS)


@dataclass(frozen=True)
class Samples:
    """A decoder that another decoder (PARTS) or a value (`samples`) uses, and how many translations it gives."""

    decoder: Literal[SIMPLE]  # type: ignore[valid-type]
    number: Count

    @staticmethod
    def further(values: Mapping) -> dict[str, Any]:
        """The settings of its decoder, except those that follow from the decoder or the value that uses it."""
        return {key: kind for key, kind in of_decoder(values.get("decoder")).items() if key not in COMMON}


@dataclass(frozen=True)
class Decoder:
    """A decoder, and the settings in which it differs from `base.decoding` and `base.decoders`."""

    decoder: Literal[tuple(DECODERS)] | None  # type: ignore[valid-type]

    @staticmethod
    def further(values: Mapping) -> dict[str, Any]:
        return of_decoder(values.get("decoder") or DEFAULT)


@dataclass(frozen=True)
class Decoding(Decoder):
    """A line of `decodings`: a model folder below models/ (for example RUN/average) and a set below data/sets/."""

    model: str
    set: str


@dataclass(frozen=True)
class DecodingRun:
    """A decoding with all its settings."""

    model: str
    set: str
    choice: Choice


def of_decoder(name: Any) -> dict[str, Any]:
    """Return the annotation of each setting of a decoder; of all decoders if there is none of this name."""
    found: dict[str, Any] = {}
    for cls in [DECODERS[name]] if isinstance(name, str) and name in DECODERS else DECODERS.values():
        shared = {key: hints(DecodingConfig)[key] for key in (*cls.USES, *COMMON)}
        found |= {**hints(cls), **dict.fromkeys(cls.PARTS, Samples), **shared}
    return found


def decoding_run(params: Mapping[str, Any], name: str) -> DecodingRun:
    """Return the decoding `name` of params.yaml: `base.decoding` and `base.decoders`, changed by the entry."""
    values = entry(params, "decodings", name)
    return DecodingRun(values["model"], values["set"], choice(params, values, f"params.yaml: decodings.{name}"))


def choice(params: Mapping[str, Any], values: Mapping[str, Any], where: str) -> Choice:
    """Return the decoder that `values` names. Its settings are those of `base`, changed by `values`.

    The check has refused unknown keys, so that those of the line which are no settings of the decoder are left out.
    """
    name = values.get("decoder") or DEFAULT
    cls, base = DECODERS[name], params["base"]
    own = {key: values.get(key, of_base) for key, of_base in base["decoders"][name].items()}
    shared = {key: value for key, value in values.items() if key in [*cls.USES, *COMMON]}
    config = read(DecodingConfig, {**base["decoding"], **shared}, where)
    parts = {key: samples_of(params, own.pop(key), f"{where}.{key}", config) for key in cls.PARTS}
    found = read(cls, own, where)
    with placed(where):
        found.check(config)
    return Choice(name, config, found, parts=parts)


def unguided(found: Choice, where: str) -> Choice:
    """Return a decoder of a stage that has only a model. Raises UserError if it needs more."""
    if found.needs_value or found.own.metric or found.parts:
        raise UserError(
            f"{where}.decoder: {found.decoder!r} needs a value or references (mbr: a utility), which this stage does not "
            "have; another decoder is expected, such as sampling"
        )
    return found


def samples_of(params: Mapping[str, Any], values: Mapping[str, Any], where: str, config: DecodingConfig) -> Choice:
    """Return the decoder of `Samples`. `config` gives its COMMON settings."""
    found = choice(params, values, where)
    common = {key: getattr(config, key) for key in COMMON}
    return dataclasses.replace(found, number=values["number"], config=dataclasses.replace(found.config, **common))
