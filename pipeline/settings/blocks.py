"""All blocks of params.yaml and of a study as classes: the check reads them, and the JSON schemas are made from them."""

from dataclasses import dataclass, make_dataclass

from pipeline.settings.back_translations import BackTranslation
from pipeline.settings.decodings import Decoding, Samples
from pipeline.settings.download import DownloadConfig
from pipeline.settings.ensembles import EnsembleConfig
from pipeline.settings.machine import MachineConfig
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import Name
from pipeline.settings.rates import Rates
from pipeline.settings.reverse_scores import ReverseScore
from pipeline.settings.scoring import ScoringConfig
from pipeline.settings.searches import SearchLine
from pipeline.settings.selection import Run
from pipeline.settings.sets import SetConfig
from pipeline.settings.values import BaseValue, ReverseValue, Value
from transformer.config.decoders import DECODERS
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import Differences, require
from transformer.config.training import AveragingConfig, TrainingConfig
from transformer.config.vocabulary import VocabularyConfig

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
class Base:
    """`base`: the settings from which corpora, models and the lines of other blocks differ."""

    normalise: NormaliseConfig
    vocabulary: VocabularyConfig
    model: ModelConfig
    training: TrainingConfig
    averaging: AveragingConfig
    decoding: DecodingConfig
    decoders: Decoders  # type: ignore[valid-type]
    value: BaseValue
    scoring: ScoringConfig


@dataclass(frozen=True)
class Corpus:
    """An entry of `corpora`."""

    languages: tuple[Name, Name]
    download: DownloadConfig
    normalise: Differences[NormaliseConfig]
    vocabulary: Differences[VocabularyConfig]

    def __post_init__(self) -> None:
        require(len({*self.languages}) == 2, "languages", self.languages, "two languages are expected")


@dataclass(frozen=True)
class Model:
    """An entry of `models`."""

    model: Differences[ModelConfig]
    training: Differences[TrainingConfig]
    averaging: Differences[AveragingConfig]
    decoding: Differences[DecodingConfig]


@dataclass(frozen=True)
class Study:
    """An entry of studies.yaml: its description and the blocks of params.yaml that it selects.

    `rows` has the row of Table 3 for which a run stands, and `against` the run with which a run is compared.
    """

    desc: str | None
    rows: dict[Name, str] | None
    against: dict[Name, Name] | None
    runs: dict[Name, Run]
    sets: dict[Name, SetConfig] | None
    ensembles: dict[Name, EnsembleConfig] | None
    values: dict[Name, Value] | None
    reverse_values: dict[Name, ReverseValue] | None
    decodings: dict[Name, Decoding] | None
    reverse_scores: dict[Name, ReverseScore] | None
    back_translations: dict[Name, BackTranslation] | None
    searches: dict[Name, SearchLine] | None


@dataclass(frozen=True)
class Params:
    """params.yaml. All blocks must be there, as DVC needs them."""

    runs: dict[Name, Run]
    corpora_in_use: tuple[str, ...]
    sets: dict[Name, SetConfig]
    ensembles: dict[Name, EnsembleConfig]
    values: dict[Name, Value]
    reverse_values: dict[Name, ReverseValue]
    decodings: dict[Name, Decoding]
    reverse_scores: dict[Name, ReverseScore]
    back_translations: dict[Name, BackTranslation]
    searches: dict[Name, SearchLine]
    machine: MachineConfig
    base: Base
    corpora: dict[Name, Corpus]
    models: dict[Name, Model]
    hardware: Rates
    peak_tflops: Rates
