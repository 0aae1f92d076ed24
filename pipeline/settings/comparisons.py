"""The checks that compare settings of several entries of params.yaml, each of which is valid by itself."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pipeline.settings.blocks import CORPORA, STUDY
from pipeline.settings.decodings import decoding_run
from pipeline.settings.models import corpus_of_set, require_languages
from pipeline.settings.params import languages, require_named, section
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import corpora_needed
from transformer.config.reading import UserError, require, shown
from transformer.config.training import AveragingConfig

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test

# An entry of one of these blocks has a name that no other of them has: results/ and the terminal show only the name
OWN_NAMES = (CORPORA, tuple(name for name, block in STUDY.items() if block.beside == "runs"))

# What the folders models/, scores/ and work/ hold besides runs
FOLDERS = ["code", "corpora", "downloads", "logs", "progress", "times"]
FOLDERS += [block.folder for block in STUDY.values() if block.folder]


def comparisons(params: Mapping) -> Iterator[Callable[[], None]]:
    """Yield a check of each entry of the blocks that a study can select, and of `corpora_in_use`."""
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
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
    """Check a run. It must write and keep at least as many checkpoints as it averages."""
    _, _, training = run_settings(params, name)
    wanted = section(params, "models", params["runs"][name]["model"], "averaging", AveragingConfig).checkpoints
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
    """Check that `corpora_in_use` lists exactly the corpora of the runs and back-translations. DVC cannot derive them."""
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
    if decoding.choice.needs_value and not decoding.model.startswith("values/"):
        raise UserError(
            f"{where}.model: {shown(decoding.model)} has no value, which the decoder {decoding.choice.decoder} needs; "
            "values/NAME is expected, with a NAME of `values` or `reverse_values`"
        )
    require_languages(params, decoding.model, languages(params, corpus_of_set(params, decoding.set)), f"{where}.model")


CHECKS: dict[str, Callable[[Mapping, str, str], None] | None] = {
    **{name: block.check for name, block in STUDY.items()},
    "runs": check_run,
    "sets": check_set,
    "decodings": check_decoding,
}
