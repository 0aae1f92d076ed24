"""Checks all of params.yaml. The check can stop a stage but cannot change its result, so no stage depends on it."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from pipeline.settings.back_translations import back_translation, decoder, require_no_circle
from pipeline.settings.decodings import choice, decoding_run
from pipeline.settings.download import DownloadConfig, on_the_web
from pipeline.settings.ensembles import corpora_of_models, corpora_of_runs, ensemble, require_model
from pipeline.settings.machine import machine
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import entry, languages, require_name, section, text_corpus
from pipeline.settings.rates import rates
from pipeline.settings.reverse_scores import reverse_score
from pipeline.settings.scoring import scoring
from pipeline.settings.searches import search
from pipeline.settings.selection import run_settings
from pipeline.settings.sets import OWN, set_config
from pipeline.settings.studies import STUDIES, STUDY, blocks_of, corpora_needed, require_mapping, study
from pipeline.settings.values import BLOCKS as BLOCKS_OF_VALUES
from pipeline.settings.values import FOLDER, corpora_of_values, value_run, value_settings
from transformer.config.decoders import DECODERS, Choice
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, convert, read, require_keys, shown, similar
from transformer.config.training import AveragingConfig, TrainingConfig
from transformer.config.vocabulary import VocabularyConfig

OF_CORPUS = {"normalise": NormaliseConfig, "vocabulary": VocabularyConfig}
OF_MODEL = {"model": ModelConfig, "training": TrainingConfig, "averaging": AveragingConfig, "decoding": DecodingConfig}
WITH_TEXT = ("corpora", "back_translations")  # the blocks whose entries are corpora of runs
BLOCKS = (*STUDY, "corpora_in_use", "machine", "base", "corpora", "models", "hardware", "peak_tflops")

TAKEN = {
    "corpora": "scores/corpora holds the reports on the corpora",
    "decodings": "scores/decodings holds the scores of `decodings`",
    "reverse_scores": "scores/reverse_scores holds what `reverse_scores` makes",
    "searches": "scores/searches holds the results of `searches`",
    "ensembles": "models/ensembles holds the models of `ensembles`",
    "downloads": "work/downloads holds the downloaded files",
    "values": "models/values and scores/values hold what `values` makes",
    "times": "work/times holds the times of stages",
    "logs": "work/logs holds what stages print",
}


def check(params: Mapping[str, Any]) -> None:
    """Raise UserError for the first invalid setting. The block `studies` of `with_studies`, if present, is also checked."""
    exactly({key: value for key, value in params.items() if key != "studies"}, BLOCKS, "params.yaml")
    check_machine(params)
    check_base(params)
    for block in ("hardware", "peak_tflops"):
        rates(params, block)
    for name in names(params, "corpora"):
        check_corpus(params, name)
    for name in names(params, "models"):
        check_model(params, name)
    check_selection(params)
    for name in params.get("studies", {}):
        require_name(name, str(STUDIES))
        check_study(params, name)


def check_selection(params: Mapping[str, Any]) -> None:
    """Check the blocks that a study can select, and `corpora_in_use`."""
    require_corpora_and_models(params)
    check_runs(params)
    for name in params["back_translations"]:
        check_back_translation(params, name)
    check_corpora_in_use(params)
    for name in names(params, "sets"):
        check_set(params, name)
    for name in names(params, "ensembles"):
        ensemble(params, name)
    for block in BLOCKS_OF_VALUES:
        for name in names(params, block):
            check_value(params, block, name)
    for name in names(params, "decodings"):
        check_decoding(params, name)
    for name in names(params, "reverse_scores"):
        check_reverse_score(params, name)
    for name in names(params, "searches"):
        check_search(params, name)


def exactly(values: Mapping, valid: Collection[str], where: str) -> None:
    """Raise UserError for an unknown key, or else for a missing key."""
    require_keys(values, list(valid), where)
    for key in valid:
        if key not in values:
            raise UserError(f"{where}.{key} is missing; the keys here are {', '.join(valid)}")


def names(params: Mapping, block: str) -> Iterable[str]:
    """Yield the keys of a block. Raises UserError if a key cannot be used as the name of a folder or a stage."""
    require_mapping(params[block], f"params.yaml: {block}")
    for name in params[block]:
        if not isinstance(name, str):
            written = name.isoformat() if isinstance(name, date) else shown(name)
            raise UserError(f"params.yaml: {block}: YAML does not read {written} as text; put the name into quotes")
        require_name(name, f"params.yaml: {block}")
        yield name


def require_one_of(params: Mapping, block: str, name: str, key: str, *blocks: str) -> None:
    """Raise UserError if `key` of an entry is the name of no entry of `blocks`. What is no name is left to later checks."""
    value, valid = entry(params, block, name).get(key), [other for each in blocks for other in params[each]]
    if isinstance(value, str) and value not in valid:
        raise UserError(
            f"params.yaml: {block}.{name}.{key}: {shown(value)} is not in {' or '.join(blocks)}; "
            f"{similar(value, valid)}valid names are {', '.join(valid)}"
        )


def require_corpora_and_models(params: Mapping) -> None:
    """Raise UserError if a run or a back-translation names a corpus or a model that does not exist."""
    for name in names(params, "back_translations"):
        require_one_of(params, "back_translations", name, "corpus", "corpora")
    for name in names(params, "runs"):
        require_one_of(params, "runs", name, "corpus", *WITH_TEXT)
        require_one_of(params, "runs", name, "model", "models")


def check_machine(params: Mapping) -> None:
    """Check the block `machine`. The folder of a mirror need not exist until something is downloaded."""
    mirror = machine(params).mirror
    try:
        on_the_web(mirror or "")
    except UserError as error:
        raise UserError(f"params.yaml: machine.mirror: {error}") from None


def check_base(params: Mapping) -> None:
    sections = {**OF_CORPUS, **OF_MODEL}
    require_mapping(params["base"], "params.yaml: base")
    exactly(params["base"], [*sections, "decoders", "value", "scoring"], "params.yaml: base")
    for key, cls in sections.items():
        read(cls, entry(params, "base", key), f"params.yaml: base.{key}")
    exactly(entry(params, "base", "decoders"), DECODERS, "params.yaml: base.decoders")
    for name in DECODERS:
        choice(params, {"decoder": name}, f"params.yaml: base.decoders.{name}", used=False)
    require_samples(value_settings(params, {}, "params.yaml: base.value")[1], "params.yaml: base.value")
    scoring(params)


def check_corpus(params: Mapping, name: str) -> None:
    where, corpus = f"params.yaml: corpora.{name}", entry(params, "corpora", name)
    exactly(corpus, ["languages", "download", *OF_CORPUS], where)
    for code in languages(params, name):
        require_name(code, f"{where}.languages")
    read(DownloadConfig, corpus["download"], f"{where}.download")
    for key, cls in OF_CORPUS.items():
        section(params, "corpora", name, key, cls)


def check_model(params: Mapping, name: str) -> None:
    exactly(entry(params, "models", name), OF_MODEL, f"params.yaml: models.{name}")
    for key, cls in OF_MODEL.items():
        section(params, "models", name, key, cls)


def check_runs(params: Mapping) -> None:
    """Check the block `runs`. A run must write and keep at least as many checkpoints as it averages."""
    require_mapping(params["runs"], "params.yaml: runs")
    if not params["runs"]:
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
    for name in names(params, "runs"):
        if name in TAKEN:
            raise UserError(f"params.yaml: runs: a run cannot be named {name!r}: {TAKEN[name]}")
        _, _, training = run_settings(params, name)
        model = params["runs"][name]["model"]
        wanted = section(params, "models", model, "averaging", AveragingConfig).checkpoints
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
                f"params.yaml: runs.{name}: averaging.checkpoints: {wanted} is not possible, because {reason}; at most "
                f"{min(training.keep, written)} is expected"
            )


def check_corpora_in_use(params: Mapping) -> None:
    """Check that `corpora_in_use` lists exactly the corpora of `runs` and `back_translations`. DVC cannot derive them."""
    in_use, needed = params["corpora_in_use"], corpora_needed(params)
    convert(tuple[str, ...], in_use, "params.yaml: corpora_in_use")
    for name, user in needed.items():
        if name not in in_use:
            raise UserError(f"params.yaml: corpora_in_use: add {name!r}, the corpus of {user}")
    for place, name in enumerate(in_use):
        if name not in needed or name in in_use[:place]:
            why = "which is listed twice" if name in needed else "which no run uses"
            raise UserError(f"params.yaml: corpora_in_use: remove {shown(name)}, {why}")


def check_set(params: Mapping, name: str) -> None:
    """Check a set. It must not have the name of a corpus's own dev or test set, whose folder it would overwrite."""
    require_one_of(params, "sets", name, "corpus", "corpora")
    set_config(params, name)
    with_sets = [other for block in WITH_TEXT for other in params[block]]
    own = {f"{corpus}-{part}": corpus for corpus in with_sets for part in OWN}
    if name in own:
        raise UserError(f"params.yaml: sets: a set cannot be named {name!r}: the corpus {own[name]} has a set of this name")


def check_value(params: Mapping, block: str, name: str) -> None:
    """Check a value. Its runs must be selected, and its corpus must be the corpus of the run in `model`.

    If this run is trained on a back-translation, the corpus must be the corpus that the back-translation extends.
    """
    where, value = f"params.yaml: {block}.{name}", value_run(params, name)
    require_samples(value.samples, where)
    others = [other for other in BLOCKS_OF_VALUES if other != block]
    require_own_name(params, block, name, ("runs", "decodings", *others))
    of_runs = corpora_of_runs(params)
    corpora = {model: text_corpus(params, corpus) for model, corpus in of_runs.items()}
    require_model(value.model, corpora, f"{where}.model")
    if value.corpus != corpora[value.model]:
        raise UserError(
            f"{where}.corpus: {shown(value.corpus)} is not the corpus of the run; {corpora[value.model]!r} is expected"
        )
    if value.reverse:
        require_model(value.reverse, of_runs, f"{where}.reverse")
        require_reverse(params, value.reverse, of_runs[value.reverse], value.corpus, f"{where}.reverse")


def require_samples(samples: Choice, where: str) -> None:
    """Raise UserError for a decoder that the stages `value` and `reverse_value` cannot run."""
    if samples.needs_value or getattr(samples.own, "metric", None):
        raise UserError(
            f"{where}.samples.decoder: {samples.decoder!r} needs a value or references, which this stage does not have; "
            "another decoder is expected, such as sampling"
        )


def check_decoding(params: Mapping, name: str) -> None:
    """Check a decoding. Its run, ensemble or value must be selected, and its set must have the model's languages."""
    where, decoding = f"params.yaml: decodings.{name}", decoding_run(params, name)
    require_own_name(params, "decodings", name, ("runs",))
    models = corpora_of_models(params) | corpora_of_values(params)
    require_model(decoding.model, models, f"{where}.model")
    if decoding.choice.needs_value and not decoding.model.startswith(f"{FOLDER}/"):
        raise UserError(
            f"{where}.model: {shown(decoding.model)} has no value, which the decoder {decoding.choice.decoder} needs; "
            f"{FOLDER}/NAME is expected, with a NAME of `values` or `reverse_values`"
        )
    corpora = corpora_of_sets(params)
    if decoding.set not in corpora:
        raise UserError(f"{where}.set: {shown(decoding.set)} is not a set; the sets are {', '.join(corpora)}")
    of_run = languages(params, models[decoding.model])
    of_set = languages(params, corpora[decoding.set])
    if of_run != of_set:
        pairs = [" to ".join(pair) for pair in (of_run, of_set)]
        raise UserError(f"{where}: the model translates {pairs[0]}, and the set {decoding.set} is {pairs[1]}")


def corpora_of_sets(params: Mapping) -> dict[str, str]:
    """Return the corpus of each set that a decoding can name."""
    corpora = {name: entry(params, "sets", name)["corpus"] for name in params["sets"]}
    with_sets = [*params["corpora_in_use"], *params["back_translations"]]
    return corpora | {f"{corpus}-{part}": corpus for corpus in with_sets for part in OWN}


def check_reverse_score(params: Mapping, name: str) -> None:
    """Check a line of `reverse_scores`. Its set must be the set of a decoding and must occur in no other line.

    Its run must be selected and must translate from the target language to the source language of the set.
    """
    where, chosen = f"params.yaml: reverse_scores.{name}", reverse_score(params, name)
    models = corpora_of_runs(params)
    require_model(chosen.model, models, f"{where}.model")
    sets = {decoding_run(params, decoding).set: None for decoding in params["decodings"]}
    if chosen.set not in sets:
        raise UserError(
            f"{where}.set: {shown(chosen.set)} is translated by none of `decodings`; their sets are "
            f"{', '.join(sets) or 'none'}"
        )
    for other in params["reverse_scores"]:
        if other != name and reverse_score(params, other).set == chosen.set:
            raise UserError(f"{where}.set: {chosen.set} is also the set of {other}; one line for each set is expected")
    require_reverse(params, chosen.model, models[chosen.model], corpora_of_sets(params)[chosen.set], f"{where}.model")


def require_reverse(params: Mapping, run: str, corpus_of_run: str, corpus: str, where: str) -> None:
    source, target = languages(params, corpus)
    of_run = languages(params, corpus_of_run)
    if of_run != (target, source):
        raise UserError(f"{where}: {run} translates {' to '.join(of_run)}; a run from {target} to {source} is expected")


def require_own_name(params: Mapping, block: str, name: str, others: Iterable[str]) -> None:
    """Raise UserError if `name` is also a name in one of the blocks `others`.

    `make record` and the results in the terminal identify an entry by its name alone.
    """
    for other in others:
        if name in params[other]:
            raise UserError(f"params.yaml: {block}: {name!r} is also a name in `{other}`; another name is expected")


def check_back_translation(params: Mapping, name: str) -> None:
    """Check a back-translation. Its run must be selected and must translate in the reverse direction of its corpus."""
    where, chosen = f"params.yaml: back_translations.{name}", back_translation(params, name)
    decoder(params, name)
    if name in params["corpora"]:
        raise UserError(f"params.yaml: back_translations: {name!r} is the name of a corpus; another name is expected")
    if chosen.run not in params["runs"]:
        runs = ", ".join(params["runs"])
        raise UserError(f"{where}.run: {shown(chosen.run)} is not one of `runs`, which are {runs}")
    require_reverse(params, chosen.run, params["runs"][chosen.run]["corpus"], name, f"{where}.run")
    if chosen.tagged and section(params, "corpora", chosen.corpus, "vocabulary", VocabularyConfig).unknown == "unk":
        raise UserError(
            f"{where}.tagged: true is not possible with the vocabulary of {chosen.corpus}: with unknown: unk, the "
            "tag, which is the unknown piece, occurs in text; use unknown: byte_fallback or tagged: false"
        )
    require_no_circle(params, name)


def check_search(params: Mapping, name: str) -> None:
    """Check a search. Its corpus must be the corpus of a run in `runs`, with which the user compares the best trial."""
    require_own_name(params, "searches", name, ("runs", "decodings", *BLOCKS_OF_VALUES))
    require_one_of(params, "searches", name, "corpus", *WITH_TEXT)
    require_one_of(params, "searches", name, "model", "models")
    corpus, known = search(params, name).config.corpus, {run["corpus"]: None for run in params["runs"].values()}
    if corpus not in known:
        raise UserError(
            f"params.yaml: searches.{name}.corpus: {shown(corpus)} is the corpus of no run; those of `runs` are "
            f"{', '.join(known)}"
        )


def check_study(params: Mapping, name: str) -> None:
    """Check a study as if it were selected."""
    try:
        require_corpora_and_models({**params, **blocks_of(params, name)})
        check_selection({**params, **study(params, name)})
    except UserError as error:
        said = re.sub(rf"params\.yaml: ({'|'.join(STUDY)})\b", rf"{STUDIES}: {name}.\1", str(error), count=1)
        raise UserError(said) from None
