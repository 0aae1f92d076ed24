"""The check of the whole of params.yaml. It can refuse but changes no result, so no stage depends on it."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pipeline.settings import layer_costs as costs
from pipeline.settings.addresses import on_the_web
from pipeline.settings.download import DownloadConfig
from pipeline.settings.machine import machine
from pipeline.settings.names import require_name
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import entry, languages, section
from pipeline.settings.rates import rates
from pipeline.settings.scoring import scoring
from pipeline.settings.selection import run_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, convert, read, shown, unknown
from transformer.config.training import AveragingConfig, TrainingConfig
from transformer.config.vocabulary import VocabularyConfig

OF_CORPUS = {"normalise": NormaliseConfig, "vocabulary": VocabularyConfig}
OF_MODEL = {
    "model": ModelConfig,
    "training": TrainingConfig,
    "averaging": AveragingConfig,
    "decoding": DecodingConfig,
}
BLOCKS = (
    "runs",
    "corpora_in_use",
    "machine",
    "base",
    "corpora",
    "models",
    "hardware",
    "peak_tflops",
    "layer_costs",
    "studies",
)

TAKEN = {
    "corpora": "scores/corpora holds the corpora's own",
    "downloads": "work/downloads holds the archives",
    "times": "work/times holds the times of all runs",
}


def check(params: Mapping[str, Any]) -> None:
    """Refuse, by a UserError, the first thing of params.yaml that cannot be right."""
    exactly(params, BLOCKS, "params.yaml")
    check_machine(params)
    check_base(params)
    for block in ("hardware", "peak_tflops"):
        rates(params, block)
    costs.config(params)
    for name in names(params, "corpora"):
        check_corpus(params, name)
    for name in names(params, "models"):
        check_model(params, name)
    check_runs(params)
    check_corpora_in_use(params)
    for name in names(params, "studies"):
        check_study(params, name)


def exactly(values: Mapping, valid: Collection[str], where: str) -> None:
    """Refuse a key that is not `valid`, then a valid one that is not there."""
    for key in values:
        if key not in valid:
            raise UserError(unknown(key, list(valid), where))
    for key in valid:
        if key not in values:
            raise UserError(f"{where}.{key} is missing; the keys here are {', '.join(valid)}")


def mapping(params: Mapping, block: str) -> Mapping:
    if not isinstance(params[block], Mapping):
        raise UserError(f"params.yaml: {block}: {shown(params[block])} is no mapping")
    return params[block]


def names(params: Mapping, block: str) -> Iterable[str]:
    """The keys of a block, each of them fit to name a folder, a stage and a word of a command."""
    for name in mapping(params, block):
        require_name(name, f"params.yaml: {block}")
        yield name


def check_machine(params: Mapping) -> None:
    """The block `machine`; a mirror's folder need not be there before something is downloaded."""
    mirror = machine(params).mirror
    try:
        on_the_web(mirror or "")
    except UserError as error:
        raise UserError(f"params.yaml: machine.mirror: {error}") from None


def check_base(params: Mapping) -> None:
    sections = {**OF_CORPUS, **OF_MODEL}
    exactly(mapping(params, "base"), [*sections, "scoring"], "params.yaml: base")
    for key, cls in sections.items():
        read(cls, entry(params, "base", key), f"params.yaml: base.{key}")
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
    """The block `runs`; a run's averaging must find the checkpoints that its training keeps."""
    if not mapping(params, "runs"):
        raise UserError("params.yaml: runs is empty; a run is a line like `demo-tiny: {corpus: demo, model: tiny}`")
    for name in names(params, "runs"):
        if name in TAKEN:
            raise UserError(f"params.yaml: runs: a run cannot be named {name!r}: {TAKEN[name]}")
        _, _, training = run_settings(params, name)
        model = params["runs"][name]["model"]
        wanted = section(params, "models", model, "averaging", AveragingConfig).checkpoints
        written = training.steps // training.checkpoint_every
        if wanted > min(training.keep, written):
            raise UserError(
                f"params.yaml: runs.{name}: averaging.checkpoints {wanted} is not possible with training.keep "
                f"{training.keep} and the {written} checkpoints that {training.steps} steps write, one every "
                f"{training.checkpoint_every}; at most {min(training.keep, written)} is"
            )


def check_corpora_in_use(params: Mapping) -> None:
    """DVC cannot tell from `runs` which corpora to make, so that they stand beside it."""
    in_use, needed = params["corpora_in_use"], {run["corpus"]: name for name, run in params["runs"].items()}
    convert(tuple[str, ...], in_use, "params.yaml: corpora_in_use")
    for name, run in needed.items():
        if name not in in_use:
            raise UserError(
                f"params.yaml: corpora_in_use: add {name!r}, the corpus of runs.{run} (`make study` does it)"
            )
    for place, name in enumerate(in_use):
        if name not in needed or name in in_use[:place]:
            why = "which stands there twice" if name in needed else "which no run uses"
            raise UserError(f"params.yaml: corpora_in_use: remove {shown(name)}, {why} (`make study` does it)")


def check_study(params: Mapping, name: str) -> None:
    """A study is checked as what it would be once it is selected."""
    runs = entry(params, "studies", name)
    try:
        check_runs({**params, "runs": runs})
    except UserError as error:
        raise UserError(str(error).replace("params.yaml: runs", f"params.yaml: studies.{name}", 1)) from None
