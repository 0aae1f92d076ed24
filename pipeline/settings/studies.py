"""The studies of studies.yaml: runs with their sets, decodings and other entries, which `make study` selects together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.settings.params import PARAMS, load, require_known, require_named, text_corpus
from pipeline.settings.selection import run_settings
from transformer.config.reading import UserError, shown

STUDIES = Path("studies.yaml")

# The blocks of params.yaml that a study has. All but `runs` are optional. A study may also have a description, `desc`.
STUDY = ["runs", "sets", "ensembles", "values", "reverse_values", "decodings", "reverse_scores"]
STUDY += ["back_translations", "searches"]


def with_studies(params: Mapping, path: Path = STUDIES) -> dict[str, Any]:
    """Return the content of params.yaml with that of studies.yaml as the block `studies`."""
    if "studies" in params:
        raise UserError(f"params.yaml: studies: unknown block; studies are in {STUDIES}, move yours there")
    try:
        studies = load(path)
    except UserError as error:  # its text names params.yaml. An edit of params.py would make all trainings stale
        raise UserError(str(error).replace(str(PARAMS), str(path)).partition("; its blocks are")[0]) from None
    for name, value in studies.items():
        require_mapping(value, f"{path}: {name}")
        require_mapping(value.get("runs", {}), f"{path}: {name}.runs")
        if not isinstance(value.get("desc", ""), str):
            raise UserError(f"{path}: {name}.desc: {shown(value['desc'])} is not a text")
    return {**params, "studies": studies}


def require_mapping(value: Any, where: str) -> None:
    if not isinstance(value, Mapping):
        raise UserError(f"{where}: {shown(value)} is not a mapping")


def described(params: Mapping, name: str) -> str:
    """Return the description of a study on one line, or an empty text."""
    return " ".join(params["studies"][name].get("desc", "").split())


def study(params: Mapping, name: str) -> dict:
    """Return the blocks that the study `name` selects: each block of STUDY (empty if not given) and `corpora_in_use`."""
    blocks = blocks_of(params, name)
    return {**blocks, "corpora_in_use": list(corpora_needed({**params, **blocks}))}


def blocks_of(params: Mapping, name: str) -> dict:
    where, studies = f"{STUDIES}: {name}", params["studies"]
    require_named(name, list(studies), f"a study of {STUDIES}")
    chosen = studies[name]
    require_mapping(chosen, where)
    require_known(chosen, [*STUDY, "desc"], params, where)
    blocks = {key: chosen.get(key, {}) for key in STUDY}
    for key, block in blocks.items():
        require_mapping(block, f"{where}.{key}")
    return blocks


def corpora_needed(params: Mapping) -> dict[str, str]:
    """Return the entries of `corpora` that are needed, each with the first run or back-translation that needs it."""
    found: dict[str, str] = {}
    for run in params["runs"]:
        found.setdefault(text_corpus(params, run_settings(params, run)[0]), f"runs.{run}")
    for name in params["back_translations"]:
        found.setdefault(text_corpus(params, name), f"back_translations.{name}")
    return found
