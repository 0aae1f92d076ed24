"""The studies of studies.yaml: runs with their sets, decodings and other entries, which `make study` selects together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.blocks import CORPORA, STUDY
from pipeline.settings.params import Name, load, require_named, text_corpus
from transformer.config.reading import UserError, convert

STUDIES = Path("studies.yaml")


def with_studies(params: Mapping, path: Path = STUDIES) -> dict[str, Any]:
    """Return the content of params.yaml with that of studies.yaml as the block `studies`."""
    if "studies" in params:
        raise UserError(f"params.yaml: studies: unknown block; studies are in {STUDIES}, move yours there")
    return {**params, "studies": convert(dict[Name, dict[str, Any]], load(path), f"{path}:")}


def described(params: Mapping, name: str) -> str:
    """Return the description of a study on one line, or an empty text."""
    return " ".join((params["studies"][name].get("desc") or "").split())


def study(params: Mapping, name: str) -> dict:
    """Return the blocks that the study `name` selects: each block of STUDY (empty if not given) and `corpora_in_use`."""
    require_named(name, list(params["studies"]), f"a study of {STUDIES}")
    blocks = {key: params["studies"][name].get(key) or {} for key in STUDY}
    return {**blocks, "corpora_in_use": corpora_needed({**params, **blocks})}


def corpora_needed(params: Mapping) -> list[str]:
    """Return the entries of `corpora` of which the runs and the back-translations are made."""
    used = [line["corpus"] for line in params["runs"].values()]
    used += [name for block in CORPORA[1:] for name in params[block]]
    return list(dict.fromkeys(text_corpus(params, corpus) for corpus in used))
