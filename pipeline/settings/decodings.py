"""The block `decodings`: translations of a set by a trained model. A decoding causes no training."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry
from transformer.config.decoders import COMMON, DECODERS, DEFAULT, Choice, settings_of
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, convert, keys, read, require_keys, shown


@dataclass(frozen=True)
class DecodingRun:
    """A decoding: a model folder below models/ (for example RUN/average), a set below data/sets/, and the decoder."""

    model: str
    set: str
    choice: Choice


def decoding_run(params: Mapping[str, Any], name: str) -> DecodingRun:
    """Return the decoding `name` of params.yaml: `base.decoding` and `base.decoders`, changed by the entry."""
    where, values = f"params.yaml: decodings.{name}", entry(params, "decodings", name)
    model, chosen = named(
        values, {"model": "RUN/average, ensembles/NAME or values/NAME", "set": "a set or CORPUS-test"}, where
    )
    settings = {key: value for key, value in values.items() if key not in ("model", "set")}
    return DecodingRun(model, chosen, choice(params, settings, where))


def named(values: Mapping[str, Any], expected: Mapping[str, str], where: str) -> list[str]:
    """Return the value of each key of `expected`, which holds a description of each value for the error message."""
    for key, meaning in expected.items():
        if not isinstance(values.get(key), str):
            raise UserError(f"{where}.{key}: {shown(values.get(key))} is not possible; {meaning} is expected")
    return [values[key] for key in expected]


def choice(params: Mapping[str, Any], values: Mapping[str, Any], where: str, used: bool = True) -> Choice:
    """Return the decoder that `values` names. Its settings are those of `base`, changed by `values`.

    If `used` is False, the decoder's own settings are not compared with those of `DecodingConfig`.
    """
    name = values.get("decoder", DEFAULT)
    require_decoder(name, list(DECODERS), where)
    changed = {key: value for key, value in values.items() if key != "decoder"}
    require_keys(changed, settings_of(name), f"{where}: the decoder {name}")
    cls = DECODERS[name]
    shared = {key: value for key, value in changed.items() if key in (*cls.USES, *COMMON)}
    merged = {**of_base(params, name), **{key: value for key, value in changed.items() if key not in shared}}
    config = read(DecodingConfig, {**entry(params, "base", "decoding"), **shared}, where)
    parts = {key: part(params, merged.pop(key), f"{where}.{key}", config) for key in cls.PARTS}
    own = read(cls, merged, where)
    if used and hasattr(own, "check"):
        try:
            own.check(config)
        except UserError as error:
            raise UserError(f"{where}.{error}") from None
    return Choice(name, config, own, parts=parts)


def of_base(params: Mapping[str, Any], decoder: str) -> Mapping[str, Any]:
    """Return `base.decoders.NAME`. Raises UserError for an unknown key and for a missing key of PARTS."""
    base, where, cls = (
        entry(params["base"], "decoders", decoder),
        f"params.yaml: base.decoders.{decoder}",
        DECODERS[decoder],
    )
    require_keys(base, [*keys(cls), *cls.PARTS], where)
    for key in cls.PARTS:
        if key not in base:
            raise UserError(f"{where}.{key} is missing; a mapping is expected")
    return base


def require_decoder(name: Any, valid: list[str], where: str) -> None:
    if not isinstance(name, str) or name not in valid:
        raise UserError(f"{where}.decoder: {shown(name)} is not a decoder here; the decoders are {', '.join(valid)}")


def part(params: Mapping[str, Any], values: Any, where: str, config: DecodingConfig) -> Choice:
    """Return a decoder that another decoder (PARTS) or a value (`samples`) uses. `config` gives its COMMON settings."""
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: {shown(values)} is not a mapping; {{decoder: NAME, number: N}} is expected")
    name, simple = values.get("decoder"), [name for name, cls in DECODERS.items() if not cls.PARTS]
    own = [key for key in settings_of(name) if key not in COMMON] if isinstance(name, str) and name in simple else []
    require_keys(values, ["decoder", "number", *own], where)
    for key in ("decoder", "number"):
        if key not in values:
            raise UserError(f"{where}.{key} is missing; {{decoder: NAME, number: N}} is expected")
    require_decoder(name, simple, where)
    number = convert(int, values["number"], f"{where}.number")
    if number < 1:
        raise UserError(f"{where}.number: {number} is not possible; a whole number above 0 is expected")
    found = choice(params, {key: value for key, value in values.items() if key != "number"}, where)
    common = {key: getattr(config, key) for key in COMMON}
    return dataclasses.replace(found, number=number, config=dataclasses.replace(found.config, **common))
