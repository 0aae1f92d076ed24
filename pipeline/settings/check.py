"""Checks all of params.yaml. The check can stop a stage but cannot change its result, so no stage depends on it.

Each block is first read as its class (blocks.py), and each name of another entry is looked up. Only if nothing is wrong
there, settings of several entries are compared (comparisons.py). All errors that a step finds are reported at once.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args, get_origin

from pipeline.settings.blocks import FIXED, STUDY, Corpus, Model, Params, Study
from pipeline.settings.comparisons import OWN, comparisons
from pipeline.settings.params import Name, require_named, section
from pipeline.settings.studies import STUDIES, study
from transformer.config.reading import Differences, UserError, convert, hints, together

AVERAGE = "the average of a run"
# The keys that name another entry, and what the name must be, as in `names`
REFERENCES = {
    "runs": {"corpus": "in corpora or back_translations", "model": "in models"},
    "back_translations": {"corpus": "in corpora", "run": "in runs"},
    "sets": {"corpus": "in corpora"},
    "ensembles": {"first": AVERAGE, "second": AVERAGE},
    "values": {"model": AVERAGE, "corpus": "in corpora"},
    "reverse_values": {"model": AVERAGE, "reverse": AVERAGE, "corpus": "in corpora"},
    "decodings": {"model": "a model here", "set": "a set"},
    "reverse_scores": {"model": AVERAGE, "set": "a set"},
    "searches": {"corpus": "in corpora or back_translations", "model": "in models"},
}

Check = Callable[[], Any]


def check(params: Mapping[str, Any]) -> None:
    """Raise UserError with a line for each error. The block `studies` of `with_studies`, if present, is also checked."""
    own, studies = {key: value for key, value in params.items() if key != "studies"}, params.get("studies", {})
    together([partial(convert, Params, own, "params.yaml:"), *references(own)])
    together([*of_base(own), *comparisons(own)])
    together(partial(selected, params, name) for name in convert(dict[Name, Any], studies, f"{STUDIES}:"))


def check_study(params: Mapping, name: str) -> None:
    """Check a study, and the blocks of params.yaml that it does not select."""
    require_named(name, list(params["studies"]), f"a study of {STUDIES}")
    together(partial(convert, kind, params.get(block), f"params.yaml: {block}") for block, kind in FIXED.items())
    selected(params, name)


def selected(params: Mapping, name: str) -> None:
    """Check a study as if it were selected."""
    try:
        convert(Study, params["studies"][name], f"{STUDIES}: {name}")
        chosen = {**params, **study(params, name)}
        together(references(chosen))
        together(comparisons(chosen))
    except UserError as error:
        block = rf"params\.yaml: ({'|'.join(STUDY)})\b"
        raise UserError(*(re.sub(block, rf"{STUDIES}: {name}.\1", line, count=1) for line in error.args)) from None


def of_base(params: Mapping) -> Iterator[Check]:
    """Yield a check of each section of a corpus or a model, merged with that of `base`."""
    for block, cls in (("corpora", Corpus), ("models", Model)):
        sections = [(key, *get_args(kind)) for key, kind in hints(cls).items() if get_origin(kind) is Differences]
        yield from (partial(section, params, block, name, *of) for name in params[block] for of in sections)


def references(params: Mapping) -> Iterator[Check]:
    """Yield a check of each name of another entry. What is no mapping or no text is left to the check of the types."""
    blocks = {block: lines if isinstance(lines := params.get(block), Mapping) else {} for block in (*STUDY, *FIXED)}
    valid = names(blocks)
    for block, kinds in REFERENCES.items():
        for name, values in blocks[block].items():
            for key, kind in kinds.items():
                if isinstance(values, Mapping) and isinstance(value := values.get(key), str):
                    where = f"params.yaml: {block}.{name}.{key}"
                    yield partial(require_named, value, valid[kind], kind, f"{where}: ")


def names(blocks: Mapping[str, Mapping]) -> dict[str, list[str]]:
    """Return the names of each kind that the selected entries can name."""
    averages = [f"{run}/average" for run in blocks["runs"]]
    models = averages + [f"ensembles/{name}" for name in blocks["ensembles"]]
    models += [f"values/{name}" for block in ("values", "reverse_values") for name in blocks[block]]
    lines = [line for block in ("runs", "back_translations") for line in blocks[block].values()]
    used = [line.get("corpus") for line in lines if isinstance(line, Mapping)]
    with_sets = [name for name in blocks["corpora"] if name in used] + [*blocks["back_translations"]]
    return {
        "in corpora": [*blocks["corpora"]],
        "in corpora or back_translations": [*blocks["corpora"], *blocks["back_translations"]],
        "in models": [*blocks["models"]],
        "in runs": [*blocks["runs"]],
        AVERAGE: averages,
        "a model here": models,
        "a set": [*blocks["sets"], *(f"{corpus}-{part}" for corpus in with_sets for part in OWN)],
    }
