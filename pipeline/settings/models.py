"""The corpora and the languages of the models and sets that entries of params.yaml name."""

from collections.abc import Mapping
from typing import Any

from pipeline.settings.languages import same
from pipeline.settings.params import languages
from pipeline.settings.registry import parts
from transformer.config.reading import UserError


def corpus_of(params: Mapping[str, Any], model: str) -> str:
    """Return the corpus of a run or of a model folder: RUN/average, or FOLDER/NAME of an extra.

    The entry NAME of an extra has a `corpus`, or its first model.
    """
    kind, _, name = model.partition("/")
    if kind in params["runs"]:
        return params["runs"][kind]["corpus"]
    blocks = [each for extra in parts("pipeline.extras.*.blocks") for each in extra.BLOCKS.items()]
    line = next(params[key][name] for key, block in blocks if block.models and block.folder == kind and name in params[key])
    return line["corpus"] if "corpus" in line else corpus_of(params, line["first"])


def corpus_of_set(params: Mapping, name: str) -> str:
    return params["sets"][name]["corpus"] if name in params["sets"] else name.rpartition("-")[0]


def require_reverse(params: Mapping, model: str, corpus: str, where: str) -> None:
    """Raise UserError unless a run or its model folder translates in the reverse direction of `corpus`."""
    source, target = languages(params, corpus)
    require_languages(params, model, (target, source), where)


def require_languages(params: Mapping, model: str, expected: tuple[str, str], where: str) -> None:
    found = languages(params, corpus_of(params, model))
    if not same(found, expected):
        said = f"{model} translates {' to '.join(found)}; a run from {' to '.join(expected)} is expected"
        raise UserError(f"{where}: {said}")
