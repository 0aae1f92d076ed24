"""The block `decodings`: translations of a set by a trained model. It causes no training."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry
from transformer.config.decoders import COMMON, DECODERS, DEFAULT, Choice, settings_of
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, convert, read, shown, unknown


@dataclass(frozen=True)
class DecodingRun:
    """A decoding: a model folder below models/ (RUN/average), a set below data/sets/, and the decoder."""

    model: str
    set: str
    choice: Choice

    @property
    def run(self) -> str:
        """The name of the run that made the model."""
        return self.model.partition("/")[0]


def decoding_run(params: Mapping[str, Any], name: str) -> DecodingRun:
    """Return the decoding `name` of params.yaml: `base.decoding` and `base.decoders`, changed by the entry."""
    where, values = f"params.yaml: decodings.{name}", entry(params, "decodings", name)
    for key, expected in (("model", "RUN/average"), ("set", "a set or CORPUS-test")):
        if not isinstance(values.get(key), str):
            raise UserError(f"{where}.{key}: {shown(values.get(key))} is not possible; {expected} is expected")
    settings = {key: value for key, value in values.items() if key not in ("model", "set")}
    return DecodingRun(values["model"], values["set"], choice(params, settings, where))


def choice(params: Mapping[str, Any], values: Mapping[str, Any], where: str) -> Choice:
    """Return the decoder that `values` names, with its settings in `base`, changed by `values`."""
    name = values.get("decoder", DEFAULT)
    if not isinstance(name, str) or name not in DECODERS:
        raise UserError(f"{where}.decoder: {shown(name)} is not a decoder; the decoders are {', '.join(DECODERS)}")
    changed, valid = {key: value for key, value in values.items() if key != "decoder"}, settings_of(name)
    for key in changed:
        if key not in valid:
            raise UserError(unknown(key, valid, f"{where}: the decoder {name}"))
    cls, base = DECODERS[name], entry(params["base"], "decoders", name)
    merged = {**base, **{key: value for key, value in changed.items() if key not in (*cls.USES, *COMMON)}}
    shared = {key: value for key, value in changed.items() if key in (*cls.USES, *COMMON)}
    config = read(DecodingConfig, {**entry(params, "base", "decoding"), **shared}, where)
    parts = {key: part(params, merged.pop(key, None), f"{where}.{key}", config) for key in cls.PARTS}
    return Choice(name, config, read(cls, merged, where), parts=parts)


def part(params: Mapping[str, Any], values: Any, where: str, config: DecodingConfig) -> Choice:
    """Return the decoder of one of PARTS. It has the common settings of the decoder that uses it, which is `config`."""
    simple = [name for name, cls in DECODERS.items() if not cls.PARTS]
    if not isinstance(values, Mapping) or values.get("decoder") not in simple or "number" not in values:
        raise UserError(
            f"{where}: {shown(values)} is not possible; {{decoder: NAME, number: N}} is expected, with the decoder's "
            f"settings; the decoders are {', '.join(simple)}"
        )
    number = convert(int, values["number"], f"{where}.number")
    if number < 1:
        raise UserError(f"{where}.number: {number} is not possible; a whole number above 0 is expected")
    for key in COMMON:
        if key in values:
            raise UserError(f"{where}.{key}: not a setting here; set it beside {where.rpartition('.')[2]}")
    found = choice(params, {key: value for key, value in values.items() if key != "number"}, where)
    common = {key: getattr(config, key) for key in COMMON}
    return dataclasses.replace(found, number=number, config=dataclasses.replace(found.config, **common))
