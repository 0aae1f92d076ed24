"""What is known of a run: its score files, or its record in results/, as one and the same object.

Nothing is computed here. A part whose file is missing is None and becomes a dash in the tables; a file that is there
and cannot be understood is refused by name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.runs import run_settings
from pipeline.workspace import digest
from transformer.config.reading import UserError, convert
from transformer.files import read_json

# A record holds these files' contents under these names.
PARTS = {
    "training": "training.json",
    "timing": "timing.json",
    "decoding": "decoding-timing.json",
    "translations": "translations/translations.json",
    "score": "score.json",
    "flops": "flops.json",
}
CURVE = "training.jsonl"

# What the report prints of the parts; the rest of them is kept as it is.
PRINTED = {
    "training": {"steps": int, "parameters": int, "settings_sha256": str, "data_sum": str},
    "timing": {
        "seconds": float,
        "tokens_per_second": float,
        "hardware": str,
        "commit": str | None,
        "energy_joules": float | None,
    },
    "translations": {"dev": dict[str, dict[str, float]]},
    "flops": {
        "paper_estimate.flops": float | None,
        "paper_estimate.sustained_tflops": float | None,
        "analytic.training_flops": float | None,
        "analytic.components": dict[str, float] | None,
        "mfu": float | None,
        "hfu": float | None,
        "energy_joules": float | None,
    },
}


@dataclass(frozen=True)
class Score:
    """One measure of one translation, with its 95% interval and its signature."""

    score: float
    low: float | None
    high: float | None
    signature: str


@dataclass(frozen=True)
class Scores:
    """All measures of one translation of so many pairs."""

    pairs: int
    metrics: dict[str, Score]


@dataclass(frozen=True)
class Evidence:
    """One run. `differences` are its own settings beside corpus and model."""

    run: str
    corpus: str
    model: str
    differences: dict[str, Any]
    settings: dict[str, Any]  # of the model and of the training: those it was trained with, or else would be
    recorded: bool
    parts: dict[str, dict | None]
    scores: dict[str, dict[str, Scores]]
    curve: list[dict[str, float]]
    samples: list[dict[str, str]]  # source, reference and translation of a few test sentences
    languages: tuple[str, str] | None
    attention: Path | None  # the folder with attention.npz and attention.json

    @property
    def name(self) -> str:
        """The run's name as the report shows it, unique in it."""
        return f"{self.run} (recorded)" if self.recorded else self.run

    @property
    def slug(self) -> str:
        """The name in addresses and file names; no run's own name has a dot."""
        return f"{self.run}.recorded" if self.recorded else self.run

    def at(self, part: str, *keys: str) -> Any:
        """What stands in a part under these keys, or None."""
        return within(self.parts[part], *keys)

    def measure(self, name: str, set_name: str = "test", weights: str = "average") -> Score | None:
        translation = self.scores.get(set_name, {}).get(weights)
        return translation and translation.metrics.get(name)


def within(value: Any, *keys: str) -> Any:
    """What stands under these keys in mappings in mappings, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def read(path: Path) -> Any:
    """The JSON of a file, or None where there is no file."""
    try:
        return read_json(path)
    except FileNotFoundError:
        return None


def read_curve(path: Path) -> list[dict[str, float]]:
    """The lines of training.jsonl; none where there is no file."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}; train again or remove it") from None


def checked(part: str, value: Any, where: str) -> dict | None:
    """`value` if it holds what the report prints of that part."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UserError(f"{where}: a mapping is expected, not {value!r}")
    for key, kind in PRINTED.get(part, {}).items():
        convert(kind, within(value, *key.split(".")), f"{where}: {key}")
    if part == "training" and digest(value.get("settings")) != value["settings_sha256"]:
        raise UserError(f"{where}: settings_sha256 is not that of the settings; the file was edited or is damaged")
    return value


def settings_of(training: dict | None) -> dict[str, Any]:
    if not training:
        return {}
    # A record from before `schedule` was a setting was trained with the only one there was.
    return {"schedule": "warmup", **training["settings"]["model"], **training["settings"]["training"]}


def scores_of(value: Any, where: str) -> dict[str, dict[str, Scores]]:
    return convert(dict[str, dict[str, Scores]], value, where) if value is not None else {}


def selected(params: Mapping, scores: Path) -> list[Evidence]:
    """The runs of params.yaml, in its order, with what there is of their score files."""
    return [of_run(params, run, scores) for run in params["runs"]]


def of_run(params: Mapping, run: str, scores: Path) -> Evidence:
    """A run of params.yaml with what there is of its score files."""
    folder, (corpus, *now) = scores / run, run_settings(params, run)
    entries, translations = dict(params["runs"][run]), folder / "translations"
    parts = {part: checked(part, read(folder / file), str(folder / file)) for part, file in PARTS.items()}
    pair = (read(scores / "corpora" / corpus / "binarise.json") or {}).get("languages")
    samples = read(translations / "samples.json") or []
    return Evidence(
        run=run,
        corpus=corpus,
        model=entries["model"],
        differences={key: value for key, value in entries.items() if key not in ("corpus", "model")},
        settings=settings_of(parts["training"]) or vars(now[0]) | vars(now[1]),
        recorded=False,
        parts=parts,
        scores=scores_of(parts["score"], str(folder / PARTS["score"])),
        curve=read_curve(folder / CURVE),
        samples=list(convert(tuple[dict[str, str], ...], samples, str(translations / "samples.json"))),
        languages=pair and (pair[0], pair[1]),
        attention=translations if (translations / "attention.npz").exists() else None,
    )


def records(results: Path) -> list[Evidence]:
    """The recorded runs, by name."""
    return [of_record(path) for path in sorted(results.glob("*.json"))]


def of_record(path: Path) -> Evidence:
    """A file that pipeline/record.py wrote. It holds no text of the corpus: no samples, no attention."""
    record = read(path)
    if not isinstance(record, dict) or record.get("run") != path.stem:
        raise UserError(f"{path}: a record of the run {path.stem!r} is expected, as `make record` writes it")
    strings = {key: convert(str, record.get(key), f"{path}: {key}") for key in ("run", "corpus", "model")}
    parts = {part: checked(part, record.get(part), f"{path}: {part}") for part in PARTS}
    pair = convert(tuple[str, str] | None, record.get("languages"), f"{path}: languages")
    for key, kind in (("differences", dict), ("curve", list)):
        if not isinstance(record.get(key), kind):
            raise UserError(f"{path}: {key}: {record.get(key)!r} is not what `make record` writes")
    return Evidence(
        **strings,
        differences=record["differences"],
        settings=settings_of(parts["training"]),
        recorded=True,
        parts=parts,
        scores=scores_of(parts["score"], f"{path}: score"),
        curve=record["curve"],
        samples=[],
        languages=pair,
        attention=None,
    )
