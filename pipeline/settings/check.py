"""Checks all of params.yaml. The check can stop a stage but cannot change its result, so no stage depends on it.

Each block is read as its class (blocks.py), then each name of another entry is looked up, and then settings of several
entries, each of which is valid by itself, are compared. All errors of the first two steps are reported at once, then those
of the third.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args, get_origin

from pipeline.settings.blocks import (
    CORPORA,
    FIXED,
    OF_RUNS,
    STUDIES,
    STUDY,
    Corpus,
    Model,
    Params,
    Study,
    corpora_needed,
    study,
)
from pipeline.settings.decodings import decoding_run
from pipeline.settings.models import corpus_of_set, require_languages
from pipeline.settings.params import Name, languages, require_named, section
from pipeline.settings.registry import AVERAGE, CORPUS, MODEL
from pipeline.settings.selection import run_settings
from transformer.config.reading import Differences, UserError, at, convert, hints, require, shown, together
from transformer.config.training import AveragingConfig

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
    runs = [run for run in runs if isinstance(run, str)]  # others are refused by their study
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
    """Yield a check of each name of another entry. A name that YAML read as a number is refused by its block."""
    valid = {kind: [*map(str, found)] for kind, found in names(params).items()}
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


OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test

# An entry of one of these blocks has a name that no other of them has: results/ and the terminal show only the name
OWN_NAMES = (CORPORA, tuple(name for name, block in STUDY.items() if block.beside == "runs"))

# What the folders models/, scores/ and work/ hold besides runs
FOLDERS = ["code", "corpora", "downloads", "logs", "progress", "times"]
FOLDERS += [block.folder for block in STUDY.values() if block.folder]


def comparisons(params: Mapping) -> Iterator[Callable[[], None]]:
    """Yield a check of each entry of the blocks that a study can select, and of `corpora_in_use`."""
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: quick}`")
    yield partial(check_corpora_in_use, params)
    for block, function in CHECKS.items():
        others = taken(params, block)
        for name in params[block]:
            yield partial(require_free, block, name, others)
            if function:
                yield partial(function, params, name, f"params.yaml: {block}.{name}")


def taken(params: Mapping, block: str) -> dict[str, str]:
    """Return the names that the entries of a block cannot have, each with what has this name."""
    before = [other for blocks in OWN_NAMES if block in blocks for other in blocks[: blocks.index(block)]]
    found = {name: f"a name in `{other}`" for other in before for name in params[other]}
    if block == "runs":
        found |= dict.fromkeys(FOLDERS, "a folder of models/, scores/ or work/")
    if block == "sets":  # the set would overwrite the folder of the other
        corpora = [name for block in CORPORA for name in params[block]]
        found |= {f"{corpus}-{part}": f"a set of the corpus {corpus}" for corpus in corpora for part in OWN}
    return found


def require_free(block: str, name: str, others: Mapping[str, str]) -> None:
    if name in others:
        raise UserError(f"params.yaml: {block}: {name!r} is also {others[name]}; another name is expected")


def check_run(params: Mapping, name: str, where: str) -> None:
    """Check a run. It must write and keep at least as many checkpoints as it averages, and know their dev losses."""
    _, _, training = run_settings(params, name)
    averaging = section(params, "models", params["runs"][name]["model"], "averaging", AveragingConfig)
    wanted, every = averaging.checkpoints, training.evaluate_every
    if averaging.choose == "dev_loss" and (training.checkpoint_every % every or training.steps % every):
        expected = f"an evaluate_every ({every}) that divides checkpoint_every ({training.checkpoint_every}) and steps"
        raise UserError(f"{where}: averaging.choose: dev_loss is not possible; {expected} ({training.steps}) is expected")
    written, why = math.ceil(training.steps / training.checkpoint_every), ""
    if training.patience:  # the training ends at the earliest step if the first dev loss is the lowest
        earliest = training.evaluate_every * (training.patience + 1)
        first = training.steps % training.checkpoint_every or training.checkpoint_every
        written = min(written, 1 + max(0, math.ceil((earliest - first) / training.checkpoint_every)))
        why = f" (patience can end it at step {earliest})"
    if wanted > min(training.keep, written):
        steps = f"a training of {training.steps} steps{why} writes a checkpoint every {training.checkpoint_every} steps"
        reason = f"training.keep is {training.keep}" if training.keep <= written else steps
        raise UserError(
            f"{where}: averaging.checkpoints: {wanted} is not possible, because {reason}; at most "
            f"{min(training.keep, written)} is expected"
        )


def check_corpora_in_use(params: Mapping) -> None:
    """Check that `corpora_in_use` lists exactly the needed corpora. DVC cannot derive them."""
    in_use, needed = params["corpora_in_use"], corpora_needed(params)
    blocks = " and ".join(f"`{block}`" for block in ("runs", *CORPORA[1:]))
    expected = f"[{', '.join(needed)}], the corpora of {blocks}, is expected"
    require(sorted(in_use) == sorted(needed), "params.yaml: corpora_in_use", in_use, expected)


def check_set(params: Mapping, name: str, where: str) -> None:
    """Check a set. Its archive, if any, must be one of its corpus."""
    corpus, archive = params["sets"][name]["corpus"], params["sets"][name].get("archive")
    if archive is not None:
        known = list(params["corpora"][corpus]["download"].get("archives") or {})
        require_named(archive, known, f"an archive of corpora.{corpus}", f"{where}.archive: ")


def check_decoding(params: Mapping, name: str, where: str) -> None:
    """Check a decoding. Its model must have a value if its decoder needs one. Its set must have the model's languages."""
    decoding = decoding_run(params, name)
    valued = {name: block.folder for name, block in STUDY.items() if block.value}
    if decoding.choice.needs_value and decoding.model.partition("/")[0] not in valued.values():
        expected = " or ".join(f"{folder}/NAME of `{block}`" for block, folder in valued.items()) or "another decoder"
        raise UserError(
            f"{where}.model: {shown(decoding.model)} has no value, which the decoder {decoding.choice.decoder} needs; "
            f"{expected} is expected"
        )
    require_languages(params, decoding.model, languages(params, corpus_of_set(params, decoding.set)), f"{where}.model")


CHECKS: dict[str, Callable[[Mapping, str, str], None] | None] = {
    **{name: block.check for name, block in STUDY.items()},
    "runs": check_run,
    "sets": check_set,
    "decodings": check_decoding,
}
