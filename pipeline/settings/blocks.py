"""All blocks of params.yaml and of a study as classes, and the studies of studies.yaml, which `make study` selects.

The check reads the blocks, and the JSON schemas are made from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from pipeline.settings.decodings import Decoding, Samples
from pipeline.settings.download import DownloadConfig, SetConfig
from pipeline.settings.languages import tag
from pipeline.settings.machine import MachineConfig
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import Name, load, require_named, text_corpus
from pipeline.settings.registry import CORPUS, MODEL, Block, parts
from pipeline.settings.scoring import ScoringConfig
from pipeline.settings.selection import Run
from pipeline.settings.vocabulary import VocabularyConfig
from transformer.config.decoders import DECODERS
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import Differences, Pattern, Positive, UserError, convert, require
from transformer.config.training import AveragingConfig, TrainingConfig

# `base.decoders`: the settings of each decoder, with the decoders that it uses
Decoders = make_dataclass(
    "Decoders",
    [
        (name, make_dataclass(cls.__name__, [(part, Samples) for part in cls.PARTS], bases=(cls,), frozen=True))
        for name, cls in DECODERS.items()
    ],
    frozen=True,
)


@dataclass(frozen=True)
class CoreBase:
    """`base` without extras: the settings from which corpora, models and the lines of other blocks differ."""

    normalise: NormaliseConfig
    vocabulary: VocabularyConfig
    model: ModelConfig
    training: TrainingConfig
    averaging: AveragingConfig
    decoding: DecodingConfig
    decoders: Decoders  # type: ignore[valid-type]
    scoring: ScoringConfig


@dataclass(frozen=True)
class Corpus:
    """An entry of `corpora`."""

    languages: tuple[Name, Name]
    licence: Annotated[str, Pattern(r"\S[^\r\n]*", "the name of a licence")] | None  # of the text, for the model card
    download: DownloadConfig
    normalise: Differences[NormaliseConfig]
    vocabulary: Differences[VocabularyConfig]

    def __post_init__(self) -> None:
        require(len({*map(tag, self.languages)}) == 2, "languages", self.languages, "two languages are expected")


@dataclass(frozen=True)
class Model:
    """An entry of `models`."""

    model: Differences[ModelConfig]
    training: Differences[TrainingConfig]
    averaging: Differences[AveragingConfig]
    decoding: Differences[DecodingConfig]


EXTRAS = parts("pipeline.extras.*.blocks")
ADDED: dict[str, Block] = {name: block for extra in EXTRAS for name, block in extra.BLOCKS.items()}

# The blocks with the corpora of runs, and how a message calls their entries
CORPORA = ("corpora", *(name for name, block in ADDED.items() if block.beside == "corpora"))
OF_RUNS = f"in {' or '.join(CORPORA)}"

# The blocks that a study selects. A study must have `runs`.
STUDY: dict[str, Block] = {
    "runs": Block(Run, {"corpus": OF_RUNS, "model": MODEL}, beside="runs"),
    "sets": Block(SetConfig, {"corpus": CORPUS}),
    "decodings": Block(Decoding, {"model": "a model here", "set": "a set"}, beside="runs", folder="decodings"),
    **ADDED,
}

added = [(key, kind) for extra in EXTRAS for key, kind in getattr(extra, "BASE", {}).items()]
Base = make_dataclass("Base", added, bases=(CoreBase,), frozen=True)

SELECTED: dict[str, Any] = {name: dict[Name, block.entry] for name, block in STUDY.items()}  # type: ignore[name-defined]
OPTIONAL = {block: of | None for block, of in SELECTED.items() if block != "runs"}
FIXED = {"corpora": dict[Name, Corpus], "models": dict[Name, Model], "machine": MachineConfig, "base": Base}
FIXED |= {block: dict[str, Positive] for block in ("hardware", "peak_tflops")}  # TFLOPS by GPU, sustained and at most

# An entry of studies.yaml: `rows` has the row of Table 3 for which a run stands, `against` the run with which a run is
# compared, and `perplexity` says that the headline is about perplexity. In params.yaml, all blocks must be there, as DVC
# needs them.
ROW = "base|big|h(1|4|16|32)|dk(16|32)|N[248]|d(256|1024)|dff(1024|4096)|dropout[02]|smoothing[02]|learned"
Row = Annotated[str, Pattern(ROW, "the key of a row of Table 3, such as h1, dk16, N2, d256, dff1024, dropout0 or learned")]
ABOUT = {"desc": str | None, "rows": dict[Name, Row] | None, "against": dict[Name, Name] | None, "perplexity": bool | None}
Study = make_dataclass("Study", (ABOUT | {"runs": SELECTED["runs"]} | OPTIONAL).items(), frozen=True)
Params = make_dataclass("Params", (SELECTED | {"corpora_in_use": tuple[str, ...]} | FIXED).items(), frozen=True)


STUDIES = Path("studies.yaml")


def with_studies(params: Mapping, path: Path = STUDIES) -> dict[str, Any]:
    """Return the content of params.yaml with that of studies.yaml as the block `studies`."""
    if "studies" in params:
        raise UserError(f"params.yaml: studies: unknown block; studies are in {STUDIES}, move yours there")
    return {**params, "studies": convert(dict[Name, dict[str, Any]], load(path), f"{path}:")}


def described(params: Mapping, name: str) -> str:
    """Return the description of a study on one line, or an empty text."""
    return " ".join((params["studies"][name].get("desc") or "").split())


def study(params: Mapping, name: str) -> dict:
    """Return the blocks that the study `name` selects: each block of STUDY (empty if not given) and `corpora_in_use`."""
    require_named(name, list(params["studies"]), f"a study of {STUDIES}")
    blocks = {key: params["studies"][name].get(key) or {} for key in STUDY}
    return {**blocks, "corpora_in_use": corpora_needed({**params, **blocks})}


def corpora_needed(params: Mapping) -> list[str]:
    """Return the entries of `corpora` of which the runs, and the corpora of other blocks, are made."""
    used = [line["corpus"] for line in params["runs"].values()]
    used += [name for block in CORPORA[1:] for name in params[block]]
    return list(dict.fromkeys(text_corpus(params, corpus) for corpus in used))
