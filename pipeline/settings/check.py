"""Checks all of params.yaml. The check can stop a stage but cannot change its result, so no stage depends on it.

Each block is first read as its class (blocks.py), and each name of another entry is looked up. Only if nothing is wrong
there, settings of several entries are compared. All errors that a step finds are reported at once.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, get_args, get_origin

from pipeline.settings.back_translations import BackTranslation, decoder, require_no_circle
from pipeline.settings.blocks import Base, Corpus, Model, Params, Study
from pipeline.settings.decodings import decoding_run
from pipeline.settings.ensembles import corpora_of_models, corpora_of_runs
from pipeline.settings.params import Name, languages, read_entry, require_named, section, text_corpus
from pipeline.settings.references import references
from pipeline.settings.reverse_scores import ReverseScore
from pipeline.settings.searches import search
from pipeline.settings.selection import run_settings
from pipeline.settings.sets import OWN, SetConfig
from pipeline.settings.studies import STUDIES, STUDY, corpora_needed, study
from pipeline.settings.values import FOLDER, corpora_of_values, value_run
from transformer.config.reading import Differences, UserError, convert, hints, shown, similar, together
from transformer.config.training import AveragingConfig
from transformer.config.vocabulary import VocabularyConfig

# The other blocks in which the name of an entry must not occur
OWN_NAMES = {
    "back_translations": ["corpora"],
    "decodings": ["runs"],
    "values": ["runs", "decodings", "reverse_values"],
    "reverse_values": ["runs", "decodings"],
    "searches": ["runs", "decodings", "values", "reverse_values"],
}

WITH_TEXT = ("corpora", "back_translations")  # the blocks whose entries are corpora of runs

# What the folders models/, scores/ and work/ hold besides runs
TAKEN = ["corpora", "decodings", "downloads", "ensembles", "logs", "reverse_scores", "searches", "times", "values"]

# Where the settings of each section of `base` may also be
OWNERS = {
    "normalise": "`normalise` of a corpus (corpora.NAME.normalise)",
    "vocabulary": "`vocabulary` of a corpus (corpora.NAME.vocabulary)",
    "model": "`model` of a model (models.NAME.model) or a run",
    "training": "`training` of a model (models.NAME.training) or a run",
    "averaging": "`averaging` of a model (models.NAME.averaging)",
    "decoding": "`decoding` of a model (models.NAME.decoding) or an entry of `decodings`",
    "scoring": "`base.scoring`",
}

Check = Callable[[], Any]


def check(params: Mapping[str, Any]) -> None:
    """Raise UserError with a line for each error. The block `studies` of `with_studies`, if present, is also checked."""
    own, studies = {key: value for key, value in params.items() if key != "studies"}, params.get("studies", {})
    try:
        together([partial(convert, Params, own, "params.yaml:"), *references(own)])
        together([*of_base(own), *comparisons(own)])
    except UserError as error:
        raise UserError(*map(explained, error.args)) from None
    together(partial(selected, params, name) for name in convert(dict[Name, Any], studies, f"{STUDIES}:"))


def check_study(params: Mapping, name: str) -> None:
    """Check a study, and the blocks of params.yaml that it does not select."""
    require_named(name, list(params["studies"]), f"a study of {STUDIES}")
    fixed = [(block, kind) for block, kind in hints(Params).items() if block not in [*STUDY, "corpora_in_use"]]
    together(partial(convert, kind, params.get(block), f"params.yaml: {block}") for block, kind in fixed)
    selected(params, name)


def selected(params: Mapping, name: str) -> None:
    """Check a study as if it were selected."""
    try:
        convert(Study, params["studies"][name], f"{STUDIES}: {name}")
        together(references({**params, **{block: {} for block in STUDY}, **params["studies"][name]}))
        together(comparisons({**params, **study(params, name)}))
    except UserError as error:
        block = rf"params\.yaml: ({'|'.join(STUDY)})\b"
        said = (re.sub(block, rf"{STUDIES}: {name}.\1", line, count=1) for line in error.args)
        raise UserError(*map(explained, said)) from None


def explained(line: str) -> str:
    """Return a line about an unknown key with the section of `base` that has a setting of this name, if one has."""
    place, separator, _ = line.partition(": unknown key; ")
    where, _, key = place.rpartition(".")
    places = [owner for section, owner in OWNERS.items() if key in hints(hints(Base)[section])]
    if not (separator and places and re.search(r" (\w+\.)?(base|corpora|models|runs|searches)\.", where)):
        return line
    return f"{place}: not a setting here; {key} belongs in {', or in '.join(places)}"


def of_base(params: Mapping) -> Iterator[Check]:
    """Yield a check of each section of a corpus or a model, merged with that of `base`."""
    for block, cls in (("corpora", Corpus), ("models", Model)):
        sections = [(key, *get_args(kind)) for key, kind in hints(cls).items() if get_origin(kind) is Differences]
        yield from (partial(section, params, block, name, *of) for name in params[block] for of in sections)


def comparisons(params: Mapping) -> Iterator[Check]:
    """Yield a check of each entry of the blocks that a study can select, and of `corpora_in_use`."""
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
    yield partial(check_corpora_in_use, params)
    checks = {
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
    for block, function in checks.items():
        yield from (partial(function, params, name, f"params.yaml: {block}.{name}") for name in params[block])
    yield from (partial(require_own_name, params, block, name) for block in checks for name in params[block])


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
    chosen = read_entry(SetConfig, params, "sets", name)
    archives = list(params["corpora"][chosen.corpus]["download"].get("archives") or {})
    if chosen.archive is not None and chosen.archive not in archives:
        named = f"corpora.{chosen.corpus}; {similar(chosen.archive, archives)}"
        raise UserError(f"{where}.archive: {chosen.archive} is not an archive of {named}")
    own = {f"{corpus}-{part}": corpus for block in WITH_TEXT for corpus in params[block] for part in OWN}
    if name in own:
        raise UserError(f"params.yaml: sets: a set cannot be named {name!r}: the corpus {own[name]} has a set of this name")


def check_ensemble(params: Mapping, name: str, where: str) -> None:
    corpora = corpora_of_runs(params)
    first, second = (corpora[params["ensembles"][name][key]] for key in ("first", "second"))
    if first != second:
        raise UserError(f"{where}: the corpora are {first} and {second}; two runs with the same corpus are expected")


def check_value(params: Mapping, name: str, where: str) -> None:
    """Check a value. Its corpus must be the corpus of the run in `model`.

    If this run is trained on a back-translation, the corpus must be the corpus that the back-translation extends.
    """
    value, of_runs = value_run(params, name), corpora_of_runs(params)
    if value.samples.needs_value or getattr(value.samples.own, "metric", None):
        raise UserError(
            f"{where}.samples.decoder: {value.samples.decoder!r} needs a value or references, which this stage does not "
            "have; another decoder is expected, such as sampling"
        )
    expected = text_corpus(params, of_runs[value.model])
    if value.corpus != expected:
        raise UserError(f"{where}.corpus: {shown(value.corpus)} is not the corpus of the run; {expected!r} is expected")
    if value.reverse:
        require_reverse(params, value.reverse, of_runs[value.reverse], value.corpus, f"{where}.reverse")


def check_decoding(params: Mapping, name: str, where: str) -> None:
    """Check a decoding. Its model must have a value if its decoder needs one. Its set must have the model's languages."""
    decoding = decoding_run(params, name)
    if decoding.choice.needs_value and not decoding.model.startswith(f"{FOLDER}/"):
        raise UserError(
            f"{where}.model: {shown(decoding.model)} has no value, which the decoder {decoding.choice.decoder} needs; "
            f"{FOLDER}/NAME is expected, with a NAME of `values` or `reverse_values`"
        )
    models = corpora_of_models(params) | corpora_of_values(params)
    of_run, of_set = languages(params, models[decoding.model]), languages(params, corpus_of_set(params, decoding.set))
    if of_run != of_set:
        pairs = [" to ".join(pair) for pair in (of_run, of_set)]
        raise UserError(f"{where}: the model translates {pairs[0]}, and the set {decoding.set} is {pairs[1]}")


def corpus_of_set(params: Mapping, name: str) -> str:
    return params["sets"][name]["corpus"] if name in params["sets"] else name.rpartition("-")[0]


def check_reverse_score(params: Mapping, name: str, where: str) -> None:
    """Check a line of `reverse_scores`. Its set must be the set of a decoding and must occur in no other line.

    Its run must translate from the target language to the source language of the set.
    """
    chosen = read_entry(ReverseScore, params, "reverse_scores", name)
    sets = dict.fromkeys(decoding["set"] for decoding in params["decodings"].values())
    if chosen.set not in sets:
        known = ", ".join(sets) or "none"
        raise UserError(f"{where}.set: {shown(chosen.set)} is translated by none of `decodings`; their sets are {known}")
    for other, values in params["reverse_scores"].items():
        if other != name and values["set"] == chosen.set:
            raise UserError(f"{where}.set: {chosen.set} is also the set of {other}; one line for each set is expected")
    of_run = corpora_of_runs(params)[chosen.model]
    require_reverse(params, chosen.model, of_run, corpus_of_set(params, chosen.set), f"{where}.model")


def require_reverse(params: Mapping, run: str, corpus_of_run: str, corpus: str, where: str) -> None:
    source, target = languages(params, corpus)
    of_run = languages(params, corpus_of_run)
    if of_run != (target, source):
        raise UserError(f"{where}: {run} translates {' to '.join(of_run)}; a run from {target} to {source} is expected")


def require_own_name(params: Mapping, block: str, name: str) -> None:
    """Raise UserError if `name` is also the name of another kind of entry.

    The files in results/ and the terminal identify an entry by its name alone.
    """
    for other in OWN_NAMES.get(block, ()):
        if name in params[other]:
            raise UserError(f"params.yaml: {block}: {name!r} is also a name in `{other}`; another name is expected")


def check_back_translation(params: Mapping, name: str, where: str) -> None:
    """Check a back-translation. Its run must translate in the reverse direction of its corpus."""
    chosen = read_entry(BackTranslation, params, "back_translations", name)
    decoder(params, name)
    require_reverse(params, chosen.run, params["runs"][chosen.run]["corpus"], name, f"{where}.run")
    if chosen.tagged and section(params, "corpora", chosen.corpus, "vocabulary", VocabularyConfig).unknown == "unk":
        raise UserError(
            f"{where}.tagged: true is not possible with the vocabulary of {chosen.corpus}: with unknown: unk, the "
            "tag, which is the unknown piece, occurs in text; use unknown: byte_fallback or tagged: false"
        )
    require_no_circle(params, name)


def check_search(params: Mapping, name: str, where: str) -> None:
    """Check a search. Its corpus must be the corpus of a run in `runs`, with which the user compares the best trial."""
    corpus, known = search(params, name).config.corpus, dict.fromkeys(corpora_of_runs(params).values())
    if corpus not in known:
        raise UserError(f"{where}.corpus: {shown(corpus)} is the corpus of no run; those of `runs` are {', '.join(known)}")
