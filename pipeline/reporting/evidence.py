"""The results of a run, read from its score files and times or from its record in results/.

A part whose file is missing is None and becomes a dash in the tables. For a file with invalid content, a UserError names
the file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.costs.training_cost import Cost, cost, timing_of
from pipeline.settings.params import text_corpus
from pipeline.settings.score_files import entry, mapping, within
from pipeline.settings.selection import run_settings
from pipeline.workflow.times import read_times
from pipeline.workflow.trained import changes
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, convert, read_saved, shown
from transformer.config.training import TrainingConfig
from transformer.files import digest, read_json

# A record holds the contents of these files of scores/RUN under these names.
PARTS = {
    "training": "training.json",
    "translations": "translations/translations.json",
    "score": "score.json",
    "flops": "flops.json",
}
CURVE = "training.jsonl"
TRANSLATION, DEV_TRANSLATION = "test.average.txt", "dev.last.txt"

# A record also holds these files of work/times/RUN. The second name is the part whose stage was timed.
TIMES = {"timing": ("training.json", "training"), "decoding": ("decoding.json", "translations")}

# The types of the entries that the report prints. Other entries of the parts are not checked here.
PRINTED: dict[str, dict[str, Any]] = {
    "training": {"steps": int, "parameters": int, "settings_sha256": str, "data_sum": str},
    "timing": {"tokens_per_second": float, "commit": str | None},
    "translations": {"dev": dict[str, dict[str, float]]},
    "flops": {
        "analytic.training_flops": float | None,
        "analytic.training_flops_causal_half": float | None,
        "analytic.components": dict[str, float] | None,
    },
}


OF_BPE_DROPOUT = ("bpe_dropout", "segmentations", "seed")  # settings of a vocabulary


@dataclass(frozen=True)
class Score:
    """One measure of one translation, with its 95% interval and its signature."""

    score: float
    low: float | None
    high: float | None
    signature: str


@dataclass(frozen=True)
class Scores:
    """All measures of one translation. `pairs` is the number of sentence pairs in the set."""

    pairs: int
    metrics: dict[str, Score]


ALL_SCORES = dict[str, dict[str, Scores]] | None  # by set and weights


@dataclass(frozen=True)
class Evidence:
    """One run. `differences` are the settings of its entry in `runs`, without the corpus and the model."""

    run: str
    corpus: str
    model: str
    differences: dict[str, Any]
    settings: dict[str, Any]  # of model and training, from the finished training or else params.yaml; and bpe_dropout
    recorded: bool
    parts: dict[str, dict | None]
    cost: Cost
    scores: dict[str, dict[str, Scores]]
    curve: list[dict[str, float]]
    languages: tuple[str, str] | None
    text: str = ""  # what identifies the training text and its vocabulary, without bpe_dropout
    samples: list[dict[str, str]] = field(default_factory=list)  # source, reference and translation of test sentences
    translation: Path | None = None  # of the test set by the averaged weights, one segment per line
    dev_translation: Path | None = None  # of the dev set by the last checkpoint
    statistics: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # of dev, by measure; see differences.py. Of records
    attention: Path | None = None  # the folder with attention.npz and attention.json

    @property
    def name(self) -> str:
        """The name of the run in the report, where it is unique."""
        return f"{self.run} (recorded)" if self.recorded else self.run

    @property
    def slug(self) -> str:
        """The name in URLs and file names. It is unique, because the name of a run in params.yaml has no dot."""
        return f"{self.run}.recorded" if self.recorded else self.run

    def is_model_of(self, model: str, corpus: str) -> bool:
        """Whether this is a run of the model on the corpus without settings of its own, except the seed and precision."""
        return (self.model, self.corpus) == (model, corpus) and self.differences.keys() <= {"seed", "precision"}

    def at(self, part: str, *keys: str) -> Any:
        """Return the value under these nested keys of a part, or None."""
        return within(self.parts[part], *keys)

    def measure(self, name: str, set_name: str = "test", weights: str = "average") -> Score | None:
        translation = self.scores.get(set_name, {}).get(weights)
        return translation.metrics.get(name) if translation else None


def alike(runs: Iterable[Evidence]) -> list[list[Evidence]]:
    """Group runs that differ only in the seed, or in the seed and the precision.

    Of runs with equal seeds and precisions, such as a run and its record, keep the first. Two precisions are in one group
    only if they have no seed in common.
    """
    of_settings: dict[str, dict[Any, dict[Any, Evidence]]] = {}
    for run in runs:
        settings = sorted((key, value) for key, value in run.settings.items() if key not in ("seed", "precision"))
        of_precision = of_settings.setdefault(repr((run.corpus, run.at("training", "data_sum"), settings)), {})
        of_precision.setdefault(run.settings.get("precision"), {}).setdefault(run.settings.get("seed"), run)
    groups = []
    for of_precision in of_settings.values():
        mixed: list[dict[Any, Evidence]] = []
        for seeds in of_precision.values():
            if (group := next((each for each in mixed if each.keys().isdisjoint(seeds)), None)) is None:
                mixed.append(group := {})
            group.update(seeds)
        groups += [list(group.values()) for group in mixed]
    return groups


@dataclass(frozen=True)
class Mean:
    """The mean score of runs of `alike`, and the range of their scores. It is not a 95% interval."""

    score: float
    low: float
    high: float
    seeds: int
    precisions: tuple[str, ...] = ()  # those that the trainings used

    def __str__(self) -> str:
        mixed = f", in {' and '.join(self.precisions)}" if len(self.precisions) > 1 else ""
        return f"mean of {self.seeds} seeds ({self.low:.2f} to {self.high:.2f}){mixed}"


def over_seeds(runs: Sequence[Evidence], *measure: str) -> Mean | None:
    """The mean of a measure over these runs; None if one of them does not have it, or if there is only one.

    `measure` has the arguments of `Evidence.measure`.
    """
    scores = [score.score for run in runs if (score := run.measure(*measure))]
    if len(scores) < max(2, len(runs)):
        return None
    precisions = sorted({run.at("timing", "precision") for run in runs} - {None})
    return Mean(sum(scores) / len(scores), min(scores), max(scores), len(scores), tuple(precisions))


def read(path: Path) -> Any:
    """Return the content of a JSON file, or None if the file does not exist."""
    try:
        value = read_json(path)
    except FileNotFoundError:
        return None
    if value is None:
        raise UserError(f"{path} holds nothing but null; make it again or remove it")
    return value


def read_curve(path: Path) -> list[dict[str, float]]:
    """Return the records of training.jsonl, or an empty list if the file does not exist."""
    if not path.exists():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}; train again or remove it") from None
    return checked_curve(lines, f"{path}: line")


def checked_curve(points: Any, where: str) -> list[dict[str, float]]:
    """Return `points` if each maps names to numbers and has a step. Error messages number the points from 1."""
    if not isinstance(points, list):
        raise UserError(f"{where}: a list is expected, not {shown(points)}")
    for number, point in enumerate(points, 1):
        convert(dict[str, float], point, f"{where} {number}")
        entry(point, "step", int, f"{where} {number}")
    return points


def checked(part: str, value: Any, where: str) -> dict | None:
    """Return `value`. Raises UserError for an invalid entry that the report prints, or for settings with a wrong digest."""
    if value is None:
        return None
    mapping(value, where)
    for key, kind in PRINTED.get(part, {}).items():
        entry(value, key, kind, where)
    if part == "training":
        for key in ("model", "training"):
            mapping(within(value, "settings", key), f"{where}: settings.{key}")
        if digest(value["settings"]) != value["settings_sha256"]:
            raise UserError(f"{where}: settings_sha256 is not that of the settings; the file was edited or is damaged")
    return value


def text_entry(params: Mapping, corpus: str) -> Mapping | None:
    """Return the entry of `corpora` with the text of a run, or None if params.yaml does not have it.

    For a back-translation, which need not be selected, this is the entry with its real pairs.
    """
    made = [*params.get("studies", {}).values(), params]  # the selection takes precedence
    back_translations = {name: back for of in made for name, back in (of.get("back_translations") or {}).items()}
    return params["corpora"].get(text_corpus({"back_translations": back_translations}, corpus))


def bpe_dropout(params: Mapping, corpus: str) -> float:
    """Return `bpe_dropout` of a corpus in params.yaml. The files of a training and earlier records do not hold it."""
    own = (text_entry(params, corpus) or {}).get("vocabulary", {})
    return {**params["base"]["vocabulary"], **own}.get("bpe_dropout", 0.0)


def training_text(params: Mapping, corpus: str) -> str:
    """Return what identifies the training text and the vocabulary of a corpus or back-translation, without bpe_dropout."""
    entry = text_entry(params, corpus)
    if entry is None or corpus not in params["corpora"]:  # a back-translation has text of its own
        return corpus
    pieces = {key: value for key, value in entry.get("vocabulary", {}).items() if key not in OF_BPE_DROPOUT}
    return repr([entry["languages"], entry.get("download"), entry.get("normalise"), pieces])


def settings_of(params: Mapping, corpus: str, training: dict | None, where: str) -> dict[str, Any]:
    """The settings of the model and of the training, and bpe_dropout of the corpus; {} if `training` is None."""
    if not training:
        return {}
    of = training["settings"]
    model = vars(read_saved(ModelConfig, of["model"], f"{where}: settings.model"))
    settings = vars(read_saved(TrainingConfig, of["training"], f"{where}: settings.training"))
    return model | settings | {"bpe_dropout": bpe_dropout(params, corpus)}


def selected(params: Mapping, scores: Path, times: Path) -> list[Evidence]:
    """Return the runs of params.yaml, in its order, with the score files and times that exist."""
    return [of_run(params, run, scores, times) for run in params["runs"]]


def of_run(params: Mapping, run: str, scores: Path, times: Path) -> Evidence:
    """Return a run of params.yaml with the score files and times that exist.

    Files of a training with other settings or on another corpus are left out.
    """
    folder, (corpus, *own) = scores / run, run_settings(params, run)
    if training := checked("training", read(path := folder / PARTS["training"]), str(path)):
        folder = folder / "none" if changes(params, run, training, scores) else folder  # this folder does not exist
    now = vars(own[0]) | vars(own[1]) | {"bpe_dropout": bpe_dropout(params, corpus)}
    entries, translations = dict(params["runs"][run]), folder / "translations"
    parts = {part: checked(part, read(folder / file), str(folder / file)) for part, file in PARTS.items()}
    for part, (file, made) in TIMES.items():
        path = times / run / file
        parts[part] = checked(part, read_times(path, folder / PARTS[made]), str(path))
    binarised, samples = scores / "corpora" / corpus / "binarise.json", translations / "samples.json"
    return Evidence(
        run=run,
        corpus=corpus,
        model=entries["model"],
        differences={key: value for key, value in entries.items() if key not in ("corpus", "model")},
        settings=settings_of(params, corpus, parts["training"], str(folder / PARTS["training"])) or now,
        recorded=False,
        parts=parts,
        cost=cost_of(parts, params, str(times / run / TIMES["timing"][0])),
        scores=convert(ALL_SCORES, parts["score"], str(folder / PARTS["score"])) or {},
        curve=read_curve(folder / CURVE),
        translation=translated if (translated := translations / TRANSLATION).exists() else None,
        dev_translation=translated if (translated := translations / DEV_TRANSLATION).exists() else None,
        samples=list(convert(tuple[dict[str, str], ...] | None, read(samples), str(samples)) or []),
        languages=entry(read(binarised), "languages", tuple[str, str], str(binarised)) if binarised.exists() else None,
        text=training_text(params, corpus),
        attention=translations if (translations / "attention.npz").exists() else None,
    )


def cost_of(parts: Mapping[str, dict | None], params: Mapping, where: str) -> Cost:
    """Compute the cost of a training with the current rates of params.yaml, which may be newer than a record."""
    timing = parts["timing"]
    return cost(None if timing is None else timing_of(timing, where), parts["flops"], params)


def records(params: Mapping, results: Path) -> list[Evidence]:
    """The recorded runs, by name."""
    return [of_record(params, path) for path in sorted(results.glob("*.json"), key=lambda path: path.stem)]


def of_record(params: Mapping, path: Path) -> Evidence:
    """Read a record that pipeline/commands/record.py wrote. It holds no text of the corpus, so `samples` is empty."""
    record = read(path)
    if within(record, "run") != path.stem:
        raise UserError(f"{path}: a record of the run {path.stem!r} is expected, as `make record` writes it")
    strings = {key: entry(record, key, str, str(path)) for key in ("run", "corpus", "model")}
    parts = {part: checked(part, record.get(part), f"{path}: {part}") for part in [*PARTS, *TIMES]}
    settings = settings_of(params, strings["corpus"], parts["training"], f"{path}: training")
    if settings and "bpe_dropout" in record:
        settings["bpe_dropout"] = entry(record, "bpe_dropout", float, str(path))
    return Evidence(
        **strings,
        differences=dict(mapping(record.get("differences"), f"{path}: differences")),
        settings=settings,
        recorded=True,
        parts=parts,
        cost=cost_of(parts, params, f"{path}: timing"),
        scores=convert(ALL_SCORES, parts["score"], f"{path}: score") or {},
        curve=checked_curve(record.get("curve"), f"{path}: curve"),
        statistics=convert(dict[str, tuple[str, ...]] | None, record.get("statistics"), f"{path}: statistics") or {},
        languages=entry(record, "languages", tuple[str, str] | None, str(path)),
        text=training_text(params, strings["corpus"]),
    )
