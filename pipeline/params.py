"""params.yaml: what a stage may read of it. A corpus, a model or a run is `base` and its differences."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML, YAMLError

from transformer.config.reading import UserError, convert, read, unknown

PARAMS = Path("params.yaml")
Settings = TypeVar("Settings")


def load(path: Path = PARAMS) -> dict[str, Any]:
    """All of params.yaml, unchecked, read as DVC reads it (YAML 1.2: `no` is a language, 1e-9 a number)."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is not in {Path.cwd()}; run this in the project's own folder") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def parse(text: str) -> dict[str, Any]:
    """What the text of params.yaml says."""
    try:
        params = YAML(typ="safe").load(text)
    except YAMLError as error:
        raise UserError(f"{PARAMS} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(params, dict):
        raise UserError(f"{PARAMS} holds no mapping; its blocks are runs, corpora_in_use, machine, base, ...")
    return params


def entry(params: Mapping, block: str, name: str) -> Mapping:
    """`params[block][name]`, for example the corpus `demo`."""
    entries = params.get(block)
    if not isinstance(entries, Mapping):
        raise UserError(f"params.yaml: {block} is missing or no mapping")
    if name not in entries:
        raise UserError(unknown(name, list(entries), f"params.yaml: {block}"))
    if not isinstance(entries[name], Mapping):
        raise UserError(f"params.yaml: {block}.{name}: {entries[name]!r} is not a mapping")
    return entries[name]


def languages(params: Mapping, corpus: str) -> tuple[str, str]:
    """Source and target language of a corpus."""
    given = entry(params, "corpora", corpus).get("languages")
    source, target = convert(tuple[str, str], given, f"params.yaml: corpora.{corpus}.languages")
    if source == target:
        raise UserError(f"params.yaml: corpora.{corpus}.languages: {source!r} twice; two languages are expected")
    return source, target


def section(params: Mapping, block: str, name: str, key: str, cls: type[Settings], run: str = "") -> Settings:
    """Section `key` of a corpus or model: `base`'s, then what the entry changes, then what the run `run` changes."""
    base, differences = entry(params, "base", key), entry(params, block, name).get(key)
    if not isinstance(differences, Mapping):
        raise UserError(f"params.yaml: {block}.{name}.{key}: a mapping is expected, {{}} where nothing differs")
    merged, where = dict(base), f"params.yaml: base.{key}"
    read(cls, merged, where)
    of_run = {k: v for k, v in params["runs"][run].items() if k in base} if run else {}
    for more, place in [(differences, f"params.yaml: {block}.{name}.{key}"), (of_run, f"params.yaml: runs.{run}")]:
        if more:
            merged, where = {**merged, **more}, place
    return read(cls, merged, where)
