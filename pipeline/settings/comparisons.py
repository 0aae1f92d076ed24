"""The checks that compare settings of several entries of params.yaml, each of which is valid by itself."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, combinations
from typing import Any

from pipeline.settings.back_translations import decoder
from pipeline.settings.decodings import decoding_run, unguided
from pipeline.settings.params import languages, section, text_corpus
from pipeline.settings.searches import search
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import corpora_needed
from pipeline.settings.values import value_run
from transformer.config.reading import UserError, shown, similar
from transformer.config.training import AveragingConfig
from transformer.config.vocabulary import VocabularyConfig

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test

# Blocks of which no two have an entry of the same name, as the files in results/ and the terminal show only the name
OWN_NAMES = (("corpora", "back_translations"), ("runs", "decodings", "reverse_values", "values", "searches"))

# What the folders models/, scores/ and work/ hold besides runs
TAKEN = ["code", "corpora", "decodings", "downloads", "ensembles", "logs"]
TAKEN += ["progress", "reverse_scores", "searches", "times", "values"]


def comparisons(params: Mapping) -> Iterator[Callable[[], None]]:
    """Yield a check of each entry of the blocks that a study can select, and of `corpora_in_use`."""
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
    yield partial(check_corpora_in_use, params)
    for block, function in CHECKS.items():
        yield from (partial(function, params, name, f"params.yaml: {block}.{name}") for name in params[block])
    for other, block in chain.from_iterable(combinations(blocks, 2) for blocks in OWN_NAMES):
        yield from (partial(require_own_name, params, block, other, name) for name in params[block])


def require_own_name(params: Mapping, block: str, other: str, name: str) -> None:
    if name in params[other]:
        raise UserError(f"params.yaml: {block}: {name!r} is also a name in `{other}`; another name is expected")


def check_run(params: Mapping, name: str, where: str) -> None:
    """Check a run. It must write and keep at least as many checkpoints as it averages."""
    if name in TAKEN:
        raise UserError(f"params.yaml: runs: a run cannot be named {name!r}, a folder of models/, scores/ or work/")
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
    lines = [f"add {name!r}, the corpus of {user}" for name, user in needed.items() if name not in in_use]
    lines += [f"remove {shown(name)}, which no run uses" for name in dict.fromkeys(in_use) if name not in needed]
    lines += [f"remove {shown(name)}, which is listed twice" for name in needed if in_use.count(name) > 1]
    if lines:
        raise UserError(*(f"params.yaml: corpora_in_use: {line}" for line in lines))


def check_set(params: Mapping, name: str, where: str) -> None:
    """Check a set. It must not have the name of a corpus's own dev or test set, whose folder it would overwrite."""
    corpus, archive = params["sets"][name]["corpus"], params["sets"][name].get("archive")
    archives = list(params["corpora"][corpus]["download"].get("archives") or {})
    if archive is not None and archive not in archives:
        named = f"corpora.{corpus}; {similar(archive, archives)}"
        raise UserError(f"{where}.archive: {archive} is not an archive of {named}")
    own = {f"{each}-{part}": each for block in ("corpora", "back_translations") for each in params[block] for part in OWN}
    if name in own:
        raise UserError(f"params.yaml: sets: a set cannot be named {name!r}: the corpus {own[name]} has a set of this name")


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
    corpora = corpus_of(params, decoding.model), corpus_of_set(params, decoding.set)
    of_run, of_set = (languages(params, corpus) for corpus in corpora)
    if of_run != of_set:
        pairs = [" to ".join(pair) for pair in (of_run, of_set)]
        raise UserError(f"{where}: the model translates {pairs[0]}, and the set {decoding.set} is {pairs[1]}")


def check_reverse_score(params: Mapping, name: str, where: str) -> None:
    """Check a line of `reverse_scores`. Its set must be the set of a decoding and must occur in no other line.

    Its run must translate from the target language to the source language of the set.
    """
    model, chosen = (params["reverse_scores"][name][key] for key in ("model", "set"))
    sets = dict.fromkeys(decoding["set"] for decoding in params["decodings"].values())
    if chosen not in sets:
        known = ", ".join(sets) or "none"
        raise UserError(f"{where}.set: {shown(chosen)} is translated by none of `decodings`; their sets are {known}")
    for other, values in params["reverse_scores"].items():
        if other != name and values["set"] == chosen:
            raise UserError(f"{where}.set: {chosen} is also the set of {other}; one line for each set is expected")
    require_reverse(params, model, corpus_of_set(params, chosen), f"{where}.model")


def check_back_translation(params: Mapping, name: str, where: str) -> None:
    """Check a back-translation. Its run must translate in the reverse direction, and must not be trained on it."""
    line = params["back_translations"][name]
    decoder(params, name)
    require_reverse(params, line["run"], name, f"{where}.run")
    unknown = section(params, "corpora", line["corpus"], "vocabulary", VocabularyConfig).unknown
    if line["tagged"] and unknown == "unk":
        raise UserError(
            f"{where}.tagged: true is not possible with the vocabulary of {line['corpus']}: with unknown: unk, the "
            "tag, which is the unknown piece, occurs in text; use unknown: byte_fallback or tagged: false"
        )
    users = [name]
    while (corpus := params["runs"][run := params["back_translations"][users[-1]]["run"]]["corpus"]) not in users:
        if corpus not in params["back_translations"]:
            return
        users.append(corpus)
    raise UserError(
        f"params.yaml: back_translations.{users[-1]}.run: {run} is trained on {corpus}, which therefore needs "
        f"itself ({' <- '.join([*users, corpus])}); a run that is trained on another corpus is expected"
    )


def check_search(params: Mapping, name: str, where: str) -> None:
    """Check a search. Its corpus must be the corpus of a run in `runs`, with which the user compares the best trial."""
    corpus, known = search(params, name).corpus, dict.fromkeys(run["corpus"] for run in params["runs"].values())
    if corpus not in known:
        raise UserError(f"{where}.corpus: {shown(corpus)} is the corpus of no run; those of `runs` are {', '.join(known)}")


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
    of_run = languages(params, corpus_of(params, model))
    if of_run != (target, source):
        raise UserError(f"{where}: {model} translates {' to '.join(of_run)}; a run from {target} to {source} is expected")


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
