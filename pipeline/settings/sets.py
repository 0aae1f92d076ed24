"""The block `sets`: evaluation sets besides the runs' own dev and test sets. It causes no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.download import Part
from pipeline.settings.params import entry
from transformer.config.reading import UserError, read, shown, unknown

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test


@dataclass(frozen=True)
class SetConfig:
    """A test set: parallel text, normalised with the settings of its corpus."""

    corpus: str
    part: Part


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
