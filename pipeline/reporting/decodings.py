"""Decodings side by side: the same or other models, sets and decoder settings, one translation each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.reporting.evidence import Scores, read
from pipeline.reporting.tables import Column, Table
from pipeline.settings.score_files import entry, mapping, within
from transformer.config.reading import UserError, convert

FILES = {"decoding": "decoding.json", "score": "score.json"}


@dataclass(frozen=True)
class Decoding:
    """One decoding with its scores: those of the whole set and, if it has one, of its filtered part."""

    name: str
    recorded: bool
    model: str  # RUN/average
    set: str
    settings: dict[str, Any]  # of the decoder
    scores: dict[str, Scores]


def selected(params: Mapping[str, Any], scores: Path) -> list[Decoding]:
    """The decodings of params.yaml that have been made, in its order."""
    made = []
    for name in params["decodings"]:
        folder = scores / "decodings" / name
        parts = {part: read(folder / file) for part, file in FILES.items()}
        if all(parts.values()):
            made.append(of_parts(name, parts, str(folder), recorded=False))
    return made


def records(results: Path) -> list[Decoding]:
    """The recorded decodings, by name."""
    return [of_record(path) for path in sorted((results / "decodings").glob("*.json"))]


def of_record(path: Path) -> Decoding:
    record = read(path)
    if entry(record, "name", str, str(path)) != path.stem:
        raise UserError(f"{path}: a record of the decoding {path.stem!r} is expected, as `make record` writes it")
    return of_parts(path.stem, {part: record.get(part) for part in FILES}, str(path), recorded=True)


def of_parts(name: str, parts: Mapping[str, Any], where: str, recorded: bool) -> Decoding:
    made = parts["decoding"]
    return Decoding(
        name=name,
        recorded=recorded,
        model=entry(made, "model", str, where),
        set=entry(made, "set", str, where),
        settings=dict(mapping(within(made, "settings", "decoding"), f"{where}: settings.decoding")),
        scores=convert(dict[str, Scores], parts["score"], where),
    )


def table(decodings: Sequence[Decoding]) -> Table | None:
    """A row a decoding, with the decoder settings in which they differ. None if there is no decoding."""
    if not decodings:
        return None
    known = [key for key in decodings[0].settings if key not in ("threads", "batch_tokens", "attention_sentences")]
    varied = [key for key in known if len({repr(each.settings.get(key)) for each in decodings}) > 1]
    columns = [Column("decoding"), Column("model"), Column("set"), *(Column(key, "given") for key in varied)]
    columns += [Column("sacreBLEU", "score"), Column("BLEU, paper's", "score"), Column("chrF", "score")]
    rows = []
    for each in decodings:
        metrics = each.scores["set"].metrics
        cells: list[Any] = [f"{each.name} (recorded)" if each.recorded else each.name, each.model, each.set]
        cells += [each.settings.get(key) for key in varied]
        rows.append([*cells, *(metrics.get(name) for name in ("bleu-13a", "bleu-paper", "chrf"))])
    note = (
        "Each is one line of `decodings` in params.yaml; 95% intervals by bootstrap. Settings that do not vary are "
        "left out."
    )
    return Table("decodings", "Decodings", columns, rows, [note])
