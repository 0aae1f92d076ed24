"""The names of other entries in the blocks of params.yaml: each must be the name of an entry."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pipeline.settings.ensembles import FOLDER as ENSEMBLES
from pipeline.settings.sets import OWN
from pipeline.settings.studies import STUDY
from pipeline.settings.values import FOLDER as VALUES
from transformer.config.reading import UserError, shown, similar

# The keys that name another entry, and what the name must be, as in `names`
REFERENCES = {
    "runs": {"corpus": "in corpora or back_translations", "model": "in models"},
    "back_translations": {"corpus": "in corpora", "run": "in runs"},
    "sets": {"corpus": "in corpora"},
    "ensembles": {"first": "the average of a run", "second": "the average of a run"},
    "values": {"model": "the average of a run", "corpus": "in corpora"},
    "reverse_values": {"model": "the average of a run", "reverse": "the average of a run", "corpus": "in corpora"},
    "decodings": {"model": "a model here", "set": "a set"},
    "reverse_scores": {"model": "the average of a run", "set": "a set"},
    "searches": {"corpus": "in corpora or back_translations", "model": "in models"},
}


def references(params: Mapping) -> Iterator[Callable[[], None]]:
    """Yield a check of each name of another entry. What is no mapping or no text is left to the check of the types."""
    valid = names(params)
    for block, kinds in REFERENCES.items():
        for name, values in items(params, block):
            for key, kind in kinds.items():
                if isinstance(values, Mapping) and isinstance(value := values.get(key), str):
                    yield partial(require_one_of, value, valid[kind], kind, f"params.yaml: {block}.{name}.{key}")


def items(params: Mapping, block: str) -> Iterable[tuple[Any, Any]]:
    return params[block].items() if isinstance(params.get(block), Mapping) else ()


def names(params: Mapping) -> dict[str, list[str]]:
    """Return the names of each kind that the selected entries can name."""
    of = {block: [name for name, _ in items(params, block)] for block in ("corpora", "models", *STUDY)}
    averages = [f"{run}/average" for run in of["runs"]]
    folders = {ENSEMBLES: of["ensembles"], VALUES: of["values"] + of["reverse_values"]}
    entries = [values for block in ("runs", "back_translations") for _, values in items(params, block)]
    used = [values.get("corpus") for values in entries if isinstance(values, Mapping)]
    with_sets = [name for name in of["corpora"] if name in used] + of["back_translations"]
    return {
        "in corpora": of["corpora"],
        "in corpora or back_translations": of["corpora"] + of["back_translations"],
        "in models": of["models"],
        "in runs": of["runs"],
        "the average of a run": averages,
        "a model here": averages + [f"{folder}/{name}" for folder, inner in folders.items() for name in inner],
        "a set": of["sets"] + [f"{corpus}-{part}" for corpus in with_sets for part in OWN],
    }


def require_one_of(value: str, valid: list[str], kind: str, where: str) -> None:
    if value not in valid:
        raise UserError(f"{where}: {shown(value)} is not {kind}; {similar(value, valid)}")
