"""Reads params.yaml. A corpus or a model lists only its differences from `base`, a run only those from its model."""

import copy
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from ruamel.yaml import YAML, YAMLError
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.nodes import Node

from transformer.config.reading import Pattern, Settings, UserError, read, shown, similar, unknown

PARAMS = Path("params.yaml")

# A name without characters that have a meaning in paths, in a shell or in DVC's keys of params.yaml (`a.b`)
Name = Annotated[
    str, Pattern("[A-Za-z0-9][A-Za-z0-9_-]{0,99}", "a name of at most 100 letters, digits, - and _ (not first)")
]


def load(path: Path = PARAMS) -> dict[str, Any]:
    """Return all of params.yaml, unchecked, parsed as DVC parses it (YAML 1.2: `no` is text, 1e-9 a number)."""
    return parse(text_of(path), path)


def text_of(path: Path = PARAMS) -> str:
    """Return the text of params.yaml, with its line ends."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} is not in {Path.cwd()}; run this in the project's folder") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def parse(text: str, path: Path = PARAMS) -> dict[str, Any]:
    """Return the content of params.yaml, or of another file with this text."""
    require_resolved(path, text.encode())
    return copy.deepcopy(parsed(text, path))


@functools.lru_cache(maxsize=4)  # a stage asks for the same text several times
def parsed(text: str, path: Path) -> dict[str, Any]:
    yaml = YAML(typ="safe")
    yaml.Constructor = Constructor
    try:
        params = yaml.load(text)
    except (YAMLError, TypeError, AssertionError, RecursionError) as error:  # TypeError and AssertionError: an invalid key
        why = " ".join((str(error) or "a key occurs twice in !!omap").split()).replace('"<unicode string>", ', "")
        lines = text.splitlines()[mark.line :] if (mark := getattr(error, "problem_mark", None)) else []
        said = f": {shown(lines[0])}" if lines else ""  # with a tab or a no-break space as \t or \xa0
        raise UserError(f"{path} cannot be read: {why.partition(' To suppress this check')[0]}{said}") from None
    if not isinstance(params, dict):
        raise UserError(f"{path} is not a mapping")
    return params


def require_resolved(path: Path, content: bytes) -> None:
    """Raise UserError, with the line, if a file has a conflict marker of git."""
    if found := re.search(rb"^(<{7} .*|\|{7} .*|={7}|>{7} .*)\r?$", content, re.MULTILINE):
        line, marker = content.count(b"\n", 0, found.start()) + 1, found[1][:7].decode()
        raise UserError(f"{path}, line {line}: {marker} is a conflict marker of git; resolve the conflict first")


class Constructor(SafeConstructor):
    """ruamel.yaml's constructor, which also states the line of a wrong value."""

    def construct_non_recursive_object(self, node: Node, tag: str | None = None) -> Any:
        try:
            return super().construct_non_recursive_object(node, tag)
        except (ValueError, LookupError):  # a date like 2026-13-45, or !!int abc
            kind = str(node.tag).rpartition(":")[2]
            raise ConstructorError(None, None, f"{shown(node.value)} is not a valid {kind}", node.start_mark) from None

    def check_mapping_key(self, node: Any, key_node: Node, mapping: Any, key: Any, value: Any) -> bool:
        if node.flow_style and value is None and type(key) in (int, float):  # {dropout: 0,1} has the key 1
            why = f"a comma ends a setting, the decimal mark is a point, and {key_node.value} has no value"
            raise ConstructorError(None, None, why, key_node.start_mark)
        return super().check_mapping_key(node, key_node, mapping, key, value)


def entry(params: Mapping, block: str, name: str) -> Mapping:
    """Return `params[block][name]`, for example the corpus `demo`."""
    entries = params.get(block)
    if not isinstance(entries, Mapping) or name not in entries:
        raise UserError(unknown(name, list(entries or ()), f"params.yaml: {block}"))
    return entries[name]


def read_entry(cls: type[Settings], params: Mapping, block: str, name: str) -> Settings:
    """Return `params[block][name]` as the class of the block's entries."""
    return read(cls, entry(params, block, name), f"params.yaml: {block}.{name}")


MADE = ("back_translations", "warm_starts")  # blocks whose entries are made of a `corpus` of the block `corpora`


def text_corpus(params: Mapping, corpus: str) -> str:
    """Return the name in `corpora` for the corpus of a run: the same name, or the `corpus` of an entry of `MADE`."""
    of = next((params[block][corpus] for block in MADE if corpus in params.get(block, ())), None)
    return of["corpus"] if of else corpus


def languages(params: Mapping, corpus: str) -> tuple[str, str]:
    """Return the source and the target language of the corpus of a run."""
    source, target = entry(params, "corpora", text_corpus(params, corpus))["languages"]
    return source, target


def section(params: Mapping, block: str, name: str, key: str, cls: type[Settings], run: str = "") -> Settings:
    """Return section `key` of a corpus or model: `base`, changed by the entry, then by the run `run`."""
    base, differences = entry(params, "base", key), entry(params, block, name)[key]
    of_run = {k: v for k, v in params["runs"][run].items() if k in base} if run else {}
    where = f"runs.{run}" if of_run else f"{block}.{name}.{key}" if differences else f"base.{key}"
    return read(cls, {**base, **differences, **of_run}, f"params.yaml: {where}")


def require_named(name: str, valid: Sequence[str], what: str, where: str = "") -> None:
    """Raise UserError if `name` is none of the `valid` names. The message begins with `where` and calls them `what`."""
    if name not in valid:
        raise UserError(f"{where}{shown(name)} is not {what}; {similar(name, valid)}")
