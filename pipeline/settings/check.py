"""Checks all of params.yaml. The check can stop a stage but cannot change its result, so no stage depends on it.

Each block is read as its class (blocks.py), then each name of another entry is looked up, and then settings of several
entries are compared (comparisons.py). All errors of the first two steps are reported at once, then those of the third.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args, get_origin

from pipeline.settings.blocks import CORPORA, FIXED, OF_RUNS, STUDY, Corpus, Model, Params, Study
from pipeline.settings.comparisons import OWN, comparisons
from pipeline.settings.params import Name, require_named, section
from pipeline.settings.registry import AVERAGE, CORPUS, MODEL
from pipeline.settings.studies import STUDIES, study
from transformer.config.reading import Differences, UserError, at, convert, hints, require, together

NOT_IN_RUN_CACHE = ("size", "nfiles")  # DVC leaves keys with these names out of the key of its run cache

Check = Callable[[], Any]


def check(params: Mapping[str, Any]) -> None:
    """Raise UserError with a line for each error. The block `studies` of `with_studies`, if present, is also checked."""
    own, studies = {key: value for key, value in params.items() if key != "studies"}, params.get("studies", {})
    named: list[Check] = []
    if all(isinstance(own.get(block), Mapping) for block in (*STUDY, *FIXED)):
        with contextlib.suppress(TypeError, KeyError):  # a line is no mapping or lacks a key, say the types
            named = list(references(own))
    together([partial(convert, Params, own, "params.yaml:"), *named])
    together(
        [*of_base(own), *comparisons(own), *unseen_by_dvc(own, "params.yaml:"), *unseen_by_dvc(studies, f"{STUDIES}:")]
    )
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
        together(compared(params["studies"], name))
        chosen = {**params, **study(params, name)}
        together(references(chosen))
        together(comparisons(chosen))
    except UserError as error:
        block = rf"params\.yaml: ({'|'.join(STUDY)})\b"
        raise UserError(*(re.sub(block, rf"{STUDIES}: {name}.\1", line, count=1) for line in error.args)) from None


def compared(studies: Mapping[str, Any], name: str) -> Iterator[Check]:
    """Yield a check of each run that `rows` and `against` of a study name. It may be a run of another study."""
    runs = [run for study in studies.values() if isinstance(study, Mapping) for run in study.get("runs") or ()]
    rows, against = (studies[name].get(key) or {} for key in ("rows", "against"))
    for key, named in {"rows": rows, "against": [*against, *against.values()]}.items():
        for run in named:
            yield partial(require_named, run, runs, "a run of a study", f"{STUDIES}: {name}.{key}: ")


def of_base(params: Mapping) -> Iterator[Check]:
    """Yield a check of each section of a corpus or a model, merged with that of `base`."""
    for block, cls in (("corpora", Corpus), ("models", Model)):
        sections = [(key, *get_args(kind)) for key, kind in hints(cls).items() if get_origin(kind) is Differences]
        yield from (partial(section, params, block, name, *of) for name in params[block] for of in sections)


def unseen_by_dvc(values: Any, where: str, seen: set[int] | None = None) -> Iterator[Check]:
    """Yield a refusal of each key, at any depth, after whose edit DVC would restore the outputs of the old value.

    A value that aliases of YAML repeat is looked at once.
    """
    seen = set() if seen is None else seen
    if id(values) in seen or not isinstance(values, Mapping | list):
        return
    seen.add(id(values))
    for key, value in values.items() if isinstance(values, Mapping) else enumerate(values):
        if key in NOT_IN_RUN_CACHE:
            yield partial(
                require, False, at(where, key), key, "another name is expected: DVC's run cache leaves this one out"
            )
        yield from unseen_by_dvc(value, at(where, key), seen)


def references(params: Mapping) -> Iterator[Check]:
    """Yield a check of each name of another entry."""
    valid = names(params)
    for block, of in STUDY.items():
        for name, line in params[block].items():
            for key, kind in of.names.items():
                if isinstance(line[key], str):
                    yield partial(require_named, line[key], valid[kind], kind, f"params.yaml: {block}.{name}.{key}: ")


def names(params: Mapping) -> dict[str, list[str]]:
    """Return the names of each kind that the selected entries can name."""
    averages = [f"{run}/average" for run in params["runs"]]
    makers = [(key, block.folder) for key, block in STUDY.items() if block.models]
    models = averages + [f"{folder}/{name}" for key, folder in makers for name in params[key]]
    of_runs = list(dict.fromkeys(line["corpus"] for line in params["runs"].values()))
    made = [(name, line) for block in CORPORA[1:] for name, line in params[block].items()]
    used = [*of_runs, *(line["corpus"] for _, line in made)]
    with_sets = [name for name in params["corpora"] if name in used] + [name for name, _ in made]
    return {
        CORPUS: [*params["corpora"]],
        OF_RUNS: [name for block in CORPORA for name in params[block]],
        MODEL: [*params["models"]],
        "in runs": [*params["runs"]],
        AVERAGE: averages,
        "a model here": models,
        "a set": [*params["sets"], *(f"{corpus}-{part}" for corpus in with_sets for part in OWN)],
        "the corpus of a run": of_runs,
        "the set of a decoding": list(dict.fromkeys(line["set"] for line in params["decodings"].values())),
    }
