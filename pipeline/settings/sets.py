"""The blocks `sets` and `decodings`: evaluations besides those of the runs' own dev and test sets.

Neither block causes a training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.download import Part
from pipeline.settings.params import entry, require_known
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, keys, read, shown, unknown

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test


@dataclass(frozen=True)
class SetConfig:
    """A test set: parallel text, normalised with the settings of its corpus."""

    corpus: str
    part: Part


@dataclass(frozen=True)
class DecodingRun:
    """A decoding: a model folder below models/ (RUN/average), a set below data/sets/, and the decoder's settings."""

    model: str
    set: str
    settings: DecodingConfig

    @property
    def run(self) -> str:
        """The name of the run that made the model."""
        return self.model.partition("/")[0]


def set_config(params: Mapping[str, Any], name: str) -> SetConfig:
    """Return the set `name` of params.yaml. Its archive, if any, must be an archive of its corpus."""
    where, values = f"params.yaml: sets.{name}", entry(params, "sets", name)
    corpus = values.get("corpus")
    if not isinstance(corpus, str):
        raise UserError(f"{where}.corpus: {shown(corpus)} is not possible; the name of a corpus is expected")
    download = entry(params, "corpora", corpus).get("download") or {}
    part = read(Part, {key: value for key, value in values.items() if key != "corpus"}, where)
    if part.hold_out is not None:
        raise UserError(f"{where}.hold_out: not possible for a set; name its files")
    archives = download.get("archives") or {}
    if part.archive is not None and part.archive not in archives:
        raise UserError(unknown(part.archive, list(archives), f"{where}: corpora.{corpus}.download.archives"))
    return SetConfig(corpus, part)


def decoding_run(params: Mapping[str, Any], name: str) -> DecodingRun:
    """Return the decoding `name` of params.yaml: `base.decoding`, changed by the entry."""
    where, values = f"params.yaml: decodings.{name}", entry(params, "decodings", name)
    require_known(values, ["model", "set", *keys(DecodingConfig)], params, where)
    for key, expected in (("model", "RUN/average"), ("set", "a set or CORPUS-test")):
        if not isinstance(values.get(key), str):
            raise UserError(f"{where}.{key}: {shown(values.get(key))} is not possible; {expected} is expected")
    own = {key: value for key, value in values.items() if key not in ("model", "set")}
    settings = read(DecodingConfig, {**entry(params, "base", "decoding"), **own}, where)
    return DecodingRun(values["model"], values["set"], settings)
