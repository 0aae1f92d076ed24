"""The block `sets`: evaluation sets besides the dev and test sets of the corpora. A set causes no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.download import Part
from pipeline.settings.params import entry
from transformer.config.reading import UserError, read, shown

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test


@dataclass(frozen=True)
class SetConfig:
    """An evaluation set: parallel text, normalised with the settings of its corpus."""

    corpus: str
    part: Part


def set_config(params: Mapping[str, Any], name: str) -> SetConfig:
    """Return the set `name` of params.yaml.

    Raises UserError for an invalid entry, and for an archive that the corpus of the set does not have.
    """
    where, values = f"params.yaml: sets.{name}", entry(params, "sets", name)
    corpus = values.get("corpus")
    if corpus is None:
        raise UserError(f"{where}.corpus is missing; the name of a corpus is expected")
    if not isinstance(corpus, str):
        raise UserError(f"{where}.corpus: {shown(corpus)} is not possible; the name of a corpus is expected")
    download = entry(params, "corpora", corpus).get("download") or {}
    part = read(Part, {key: value for key, value in values.items() if key != "corpus"}, where)
    if part.hold_out is not None:
        raise UserError(f"{where}.hold_out: this is not a setting of a set; give source and target")
    archives = download.get("archives") or {}
    if part.archive is not None and part.archive not in archives:
        named = ", ".join(archives) or "none"
        raise UserError(f"{where}.archive: {part.archive} is not an archive of corpora.{corpus}; its archives: {named}")
    return SetConfig(corpus, part)
