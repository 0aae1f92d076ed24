"""Reads params.yaml. A corpus or a model lists only its differences from `base`, a run only those from its model."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML, YAMLError
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node

from transformer.config.reading import UserError, convert, keys, read, shown, similar, unknown

PARAMS = Path("params.yaml")
LARGEST = 2**31 - 1  # the largest whole number that torch, sacreBLEU and sentencepiece all accept
DEEPEST, MOST_VALUES = 100, 100_000  # params.yaml has 6 levels and 1,400 values, studies.yaml 7 and 2,400
Settings = TypeVar("Settings")


def load(path: Path = PARAMS) -> dict[str, Any]:
    """Return all of params.yaml, unchecked, parsed as DVC parses it (YAML 1.2: `no` is text, 1e-9 a number)."""
    return parse(text_of(path))


def text_of(path: Path = PARAMS) -> str:
    """Return the text of params.yaml, with its line ends."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} is not in {Path.cwd()}; run this in the project's folder") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def parse(text: str) -> dict[str, Any]:
    """Return the content of params.yaml, given its text."""
    try:
        require_shallow(text)
        yaml = YAML(typ="safe")
        yaml.Constructor = Constructor
        params = yaml.load(text)
    except (YAMLError, TypeError, AssertionError) as error:  # TypeError and AssertionError: an invalid key
        why = " ".join((str(error) or "a key occurs twice in !!omap").split()).replace('"<unicode string>", ', "")
        raise UserError(f"{PARAMS} cannot be read: {why}") from None
    if not isinstance(params, dict):
        raise UserError(f"{PARAMS} is not a mapping; its blocks are runs, corpora_in_use, machine, base, ...")
    return params


def require_shallow(text: str) -> None:
    """Refuse nesting so deep that the recursion of ruamel.yaml would fail or crash the process."""
    depth = 0
    for event in YAML(typ="safe").parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise MarkedYAMLError(problem=f"nested deeper than {DEEPEST} levels", problem_mark=event.start_mark)


class Constructor(SafeConstructor):
    """ruamel.yaml's constructor, with limits on the number and the size of values. It states the line of a wrong value."""

    def construct_document(self, node: Node) -> Any:
        if size(node, {}) > MOST_VALUES:
            raise YAMLError(f"it holds more than {MOST_VALUES} values, counting the values behind each alias")
        return super().construct_document(node)

    def construct_non_recursive_object(self, node: Node, tag: str | None = None) -> Any:
        """Return the value of a node. A whole number that is too large is refused here, where its line is known."""
        try:
            value = super().construct_non_recursive_object(node, tag)
        except (ValueError, LookupError):
            kind = str(node.tag).rpartition(":")[2]
            raise ConstructorError(None, None, f"{shown(node.value)} is not a valid {kind}", node.start_mark) from None
        if isinstance(value, int) and abs(value) > LARGEST:
            problem = f"{shown(value)} is not possible; a whole number of at most {LARGEST} is expected"
            raise ConstructorError(None, None, problem, node.start_mark)
        return value

    def check_mapping_key(self, node: MappingNode, key_node: Node, mapping: Mapping, key: Any, value: Any) -> bool:
        """Return True for the first entry with a key. Another one is refused, with the line of the first."""
        if key in mapping:
            first, content = next(pair for pair in node.value if pair[0].value == key_node.value)
            line, name = first.start_mark.line + 1, shown(key)
            problem = f"the key {name} of line {line} occurs again"
            if content.value in ([], "") and line <= key_node.start_mark.line:
                problem = f"the key {name} is empty in line {line}, which is to be removed, because the key occurs again"
            raise DuplicateKeyError(problem=problem, problem_mark=key_node.start_mark)
        return True


def size(node: Node, known: dict[Node, float]) -> float:
    """Return the number of values in a node, counting those behind each alias; infinity if it contains itself."""
    if node not in known:
        known[node] = math.inf
        inner = node.value if isinstance(node, CollectionNode) else []
        nodes = [part for pair in inner for part in pair] if isinstance(node, MappingNode) else inner
        known[node] = 1 + sum(size(part, known) for part in nodes)
    return known[node]


def entry(params: Mapping, block: str, name: str) -> Mapping:
    """Return `params[block][name]`, for example the corpus `demo`."""
    entries = params.get(block)
    if not isinstance(entries, Mapping):
        raise UserError(f"params.yaml: {block} is missing or not a mapping")
    if name not in entries:
        raise UserError(unknown(name, list(entries), f"params.yaml: {block}"))
    if not isinstance(entries[name], Mapping):
        raise UserError(f"params.yaml: {block}.{name}: {shown(entries[name])} is not a mapping")
    return entries[name]


def text_corpus(params: Mapping, corpus: str) -> str:
    """Return the name in `corpora` for the corpus of a run: the same name, or `corpus` of a back-translation."""
    augmented = params.get("back_translations")
    if not isinstance(augmented, Mapping) or corpus not in augmented:
        return corpus
    parent = entry(params, "back_translations", corpus).get("corpus")
    return convert(str, parent, f"params.yaml: back_translations.{corpus}.corpus")


def languages(params: Mapping, corpus: str) -> tuple[str, str]:
    """Return the source and the target language of a corpus or a back-translation."""
    corpus = text_corpus(params, corpus)
    given = entry(params, "corpora", corpus).get("languages")
    source, target = convert(tuple[str, str], given, f"params.yaml: corpora.{corpus}.languages")
    if source == target:
        raise UserError(f"params.yaml: corpora.{corpus}.languages: {shown(source)} twice; two languages are expected")
    return source, target


def section(params: Mapping, block: str, name: str, key: str, cls: type[Settings], run: str = "") -> Settings:
    """Return section `key` of a corpus or model: `base`, changed by the entry, then by the run `run`."""
    base, differences = entry(params, "base", key), entry(params, block, name).get(key)
    if not isinstance(differences, Mapping):
        raise UserError(f"params.yaml: {block}.{name}.{key}: a mapping is expected, {{}} if nothing differs")
    merged, where = dict(base), f"params.yaml: base.{key}"
    read(cls, merged, where)
    of_entry = f"params.yaml: {block}.{name}.{key}"
    require_known(differences, keys(cls), params, of_entry)
    of_run = {k: v for k, v in params["runs"][run].items() if k in base} if run else {}
    for more, place in [(differences, of_entry), (of_run, f"params.yaml: runs.{run}")]:
        if more:
            merged, where = {**merged, **more}, place
    return read(cls, merged, where)


def require_name(name: Any, where: str) -> None:
    """Refuse a name with a character that has a meaning in paths, in a shell or in DVC's keys of params.yaml (`a.b`)."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UserError(
            f"{where}: {shown(name)} is not a valid name; a letter or digit is expected, then letters, digits, - and _"
        )


OWNERS = {
    "normalise": "`normalise` of a corpus (corpora.NAME.normalise)",
    "vocabulary": "`vocabulary` of a corpus (corpora.NAME.vocabulary)",
    "model": "`model` of a model (models.NAME.model) or a run",
    "training": "`training` of a model (models.NAME.training) or a run",
    "averaging": "`averaging` of a model (models.NAME.averaging)",
    "decoding": "`decoding` of a model (models.NAME.decoding) or an entry of `decodings`",
    "scoring": "`base.scoring`",
}


def require_named(name: str, valid: Sequence[str], what: str) -> None:
    """Raise UserError if `name` is none of the `valid` names. The message calls these `what` and names the most similar."""
    if name not in valid:
        raise UserError(f"{shown(name)} is not {what}; {similar(name, valid)}valid names are {', '.join(valid)}")


def require_known(given: Iterable, valid: list[str], params: Mapping, where: str) -> None:
    """Raise UserError for an unknown key. If another section has this key, the message names the section."""
    for key in given:
        if key not in valid:
            sections = [name for name in OWNERS if isinstance(key, str) and key in entry(params, "base", name)]
            if not sections:
                raise UserError(unknown(key, valid, where))
            places = ", or in ".join(OWNERS[name] for name in sections)
            raise UserError(f"{where}.{key}: not a setting here; {key} belongs in {places}")
