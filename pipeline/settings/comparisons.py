"""The checks that compare settings of several entries of params.yaml, each of which is valid by itself."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pipeline.extras.back_translation.settings import decoder
from pipeline.extras.search.settings import search
from pipeline.extras.values.settings import value_run
from pipeline.settings.decodings import decoding_run, unguided
from pipeline.settings.params import languages, require_named, section, text_corpus
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import corpora_needed
from pipeline.settings.vocabulary import VocabularyConfig
from transformer.config.reading import UserError, require, shown
from transformer.config.training import AveragingConfig

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test

# An entry of one of these blocks has a name that no other of them has: results/ and the terminal show only the name
OWN_NAMES = (("corpora", "back_translations"), ("runs", "decodings", "reverse_values", "values", "searches"))

# What the folders models/, scores/ and work/ hold besides runs
FOLDERS = ["code", "corpora", "decodings", "downloads", "ensembles", "logs"]
FOLDERS += ["progress", "reverse_scores", "searches", "times", "values"]


def comparisons(params: Mapping) -> Iterator[Callable[[], None]]:
    """Yield a check of each entry of the blocks that a study can select, and of `corpora_in_use`."""
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
    yield partial(check_corpora_in_use, params)
    for block, function in CHECKS.items():
        others = taken(params, block)
        for name in params[block]:
            yield partial(require_free, block, name, others)
            yield partial(function, params, name, f"params.yaml: {block}.{name}")


def taken(params: Mapping, block: str) -> dict[str, str]:
    """Return the names that the entries of a block cannot have, each with what has this name."""
    before = [other for blocks in OWN_NAMES if block in blocks for other in blocks[: blocks.index(block)]]
    found = {name: f"a name in `{other}`" for other in before for name in params[other]}
    if block == "runs":
        found |= dict.fromkeys(FOLDERS, "a folder of models/, scores/ or work/")
    if block == "sets":  # the set would overwrite the folder of the other
        corpora = (*params["corpora"], *params["back_translations"])
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
    """Check that `corpora_in_use` lists exactly the corpora of `runs` and `back_translations`. DVC cannot derive them."""
    in_use, needed = params["corpora_in_use"], corpora_needed(params)
    expected = f"[{', '.join(needed)}], the corpora of `runs` and `back_translations`, is expected"
    require(sorted(in_use) == sorted(needed), "params.yaml: corpora_in_use", in_use, expected)


def check_set(params: Mapping, name: str, where: str) -> None:
    """Check a set. Its archive, if any, must be one of its corpus."""
    corpus, archive = params["sets"][name]["corpus"], params["sets"][name].get("archive")
    if archive is not None:
        known = list(params["corpora"][corpus]["download"].get("archives") or {})
        require_named(archive, known, f"an archive of corpora.{corpus}", f"{where}.archive: ")


def check_ensemble(params: Mapping, name: str, where: str) -> None:
    first, second = (corpus_of(params, params["ensembles"][name][key]) for key in ("first", "second"))
    if first != second:
        raise UserError(f"{where}: the corpora are {first} and {second}; two runs with the same corpus are expected")


def check_value(params: Mapping, name: str, where: str) -> None:
    """Check a value. Its corpus must be the corpus of the run in `model`.

    If this run is trained on a back-translation, the corpus must be the corpus that the back-translation extends.
    """
    value = value_run(params, name)
    unguided(value.samples, f"{where}.samples")
    expected = text_corpus(params, corpus_of(params, value.model))
    if value.corpus != expected:
        raise UserError(f"{where}.corpus: {shown(value.corpus)} is not the corpus of the run; {expected!r} is expected")
    if value.reverse:
        require_reverse(params, value.reverse, value.corpus, f"{where}.reverse")


def check_decoding(params: Mapping, name: str, where: str) -> None:
    """Check a decoding. Its model must have a value if its decoder needs one. Its set must have the model's languages."""
    decoding = decoding_run(params, name)
    if decoding.choice.needs_value and not decoding.model.startswith("values/"):
        raise UserError(
            f"{where}.model: {shown(decoding.model)} has no value, which the decoder {decoding.choice.decoder} needs; "
            "values/NAME is expected, with a NAME of `values` or `reverse_values`"
        )
    require_languages(params, decoding.model, languages(params, corpus_of_set(params, decoding.set)), f"{where}.model")


def check_reverse_score(params: Mapping, name: str, where: str) -> None:
    """Check a line of `reverse_scores`. Its set must occur in no other line.

    Its run must translate from the target language to the source language of the set.
    """
    model, chosen = (params["reverse_scores"][name][key] for key in ("model", "set"))
    for other, values in params["reverse_scores"].items():
        if other != name and values["set"] == chosen:
            raise UserError(f"{where}.set: {chosen} is also the set of {other}; one line for each set is expected")
    require_reverse(params, model, corpus_of_set(params, chosen), f"{where}.model")


def check_back_translation(params: Mapping, name: str, where: str) -> None:
    """Check a back-translation. Its run must translate in the reverse direction; DVC refuses one trained on it."""
    line = params["back_translations"][name]
    decoder(params, name)
    require_reverse(params, line["run"], name, f"{where}.run")
    unknown = section(params, "corpora", line["corpus"], "vocabulary", VocabularyConfig).unknown
    if line["tagged"] and unknown == "unk":
        raise UserError(
            f"{where}.tagged: true is not possible with the vocabulary of {line['corpus']}: with unknown: unk, the "
            "tag, which is the unknown piece, occurs in text; use unknown: byte_fallback or tagged: false"
        )


def check_search(params: Mapping, name: str, _: str) -> None:
    search(params, name)


def corpus_of(params: Mapping[str, Any], model: str) -> str:
    """Return the corpus of a run or of a model folder: RUN/average, ensembles/NAME or values/NAME."""
    kind, _, name = model.partition("/")
    if kind == "ensembles":
        return corpus_of(params, params["ensembles"][name]["first"])
    if kind == "values":
        return {**params["reverse_values"], **params["values"]}[name]["corpus"]
    return params["runs"][kind]["corpus"]


def corpus_of_set(params: Mapping, name: str) -> str:
    return params["sets"][name]["corpus"] if name in params["sets"] else name.rpartition("-")[0]


def require_reverse(params: Mapping, model: str, corpus: str, where: str) -> None:
    """Raise UserError unless a run or its model folder translates in the reverse direction of `corpus`."""
    source, target = languages(params, corpus)
    require_languages(params, model, (target, source), where)


def require_languages(params: Mapping, model: str, expected: tuple[str, str], where: str) -> None:
    found = languages(params, corpus_of(params, model))
    if found != expected:
        said = f"{model} translates {' to '.join(found)}; a run from {' to '.join(expected)} is expected"
        raise UserError(f"{where}: {said}")


CHECKS: dict[str, Callable[[Mapping, str, str], None]] = {
    "runs": check_run,
    "back_translations": check_back_translation,
    "sets": check_set,
    "ensembles": check_ensemble,
    "values": check_value,
    "reverse_values": check_value,
    "decodings": check_decoding,
    "reverse_scores": check_reverse_score,
    "searches": check_search,
}
