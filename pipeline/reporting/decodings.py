"""Tables of decodings. A decoding is one translation of a set by a model with a decoder."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.reporting.decoder_facts import Facts, shown_settings
from pipeline.reporting.decoder_facts import facts as facts_of
from pipeline.reporting.evidence import Scores, read
from pipeline.reporting.tables import Column, Table
from pipeline.scoring.intervals import holm
from pipeline.settings.score_files import entry, mapping, within
from pipeline.workflow.times import read_times
from transformer.config.reading import UserError, convert
from transformer.config.reading import read as read_settings

FILES = {"decoding": "decoding.json", "score": "score.json"}
UNKNOWN = Facts(*[None] * len(dataclasses.fields(Facts)))
NO_RESULT = ("threads", "batch_tokens", "attention_sentences")  # settings that change no translation
SCORES = {"sacreBLEU": "bleu-13a", "BLEU, published measure": "bleu-published", "chrF": "chrf"}  # metrics by column title
FACTS = {
    "p": Column("p, Holm", "number", 4),
    "log_prob": Column("log-probability", "number"),
    "source_log_prob": Column("source log-probability", "number"),
    "length_ratio": Column("length ratio", "number", 3),
    "empty": Column("empty", "count"),
    "search_errors": Column("search errors", "number", 3),
    "unfinished": Column("unfinished", "count"),
    "calls": Column("prefixes", "number", 1),
}
NOTES = [
    "A decoding is one line of `decodings` in params.yaml, with the settings that differ from `base`; 95% intervals by "
    "bootstrap.",
    "p tests the difference in sacreBLEU from the beam search of `base` by the same model on the same set: two-sided, by "
    "bootstrap over the sentences (the training is one, so no seed varies), corrected by Holm's method over the decodings "
    "of one set by one model. The log-probability is the mean of log p(translation | source) by the model. The "
    "source log-probability is the mean of log p(source | translation) by the run in `reverse_scores`. Search errors are "
    "the share of the sentences finished by exact search for which it found a more probable translation. Prefixes are the "
    "mean number of prefixes that the model scored for a sentence.",
]


@dataclass(frozen=True)
class Decoding:
    """One decoding with the scores of the whole set and, if the set has a filtered part, of that part."""

    name: str
    recorded: bool
    model: str  # RUN/average
    set: str
    settings: dict[str, Any]  # of the decoder
    scores: dict[str, Scores]
    facts: Facts
    pieces_per_second: float | None


def selected(params: Mapping[str, Any], scores: Path, times: Path, sets: Path) -> list[Decoding]:
    """The decodings of params.yaml that have been made, in its order."""
    made, facts = [], facts_of(params, scores, sets)
    for name in params["decodings"]:
        folder = scores / "decodings" / name
        parts = {part: read(folder / file) for part, file in FILES.items()}
        if all(parts.values()):
            timing = read_times(times / "decodings" / f"{name}.json", folder / FILES["decoding"])
            made.append(of_parts(name, parts | {"timing": timing}, str(folder), facts.get(name, UNKNOWN)))
    return made


def records(results: Path) -> list[Decoding]:
    """The recorded decodings, by name."""
    return [of_record(path) for path in sorted((results / "decodings").glob("*.json"))]


def of_record(path: Path) -> Decoding:
    record = read(path)
    if entry(record, "name", str, str(path)) != path.stem:
        raise UserError(f"{path}: a record of the decoding {path.stem!r} is expected, as `make record` writes it")
    known = dataclasses.asdict(UNKNOWN) | dict(mapping(record.get("facts", {}), f"{path}: facts"))  # fewer if older
    facts = read_settings(Facts, known, f"{path}: facts")
    parts = {part: record.get(part) for part in (*FILES, "timing")}
    return of_parts(path.stem, parts, str(path), facts, recorded=True)


def of_parts(name: str, parts: Mapping[str, Any], where: str, facts: Facts, recorded: bool = False) -> Decoding:
    made, scores = parts["decoding"], convert(dict[str, Scores], parts["score"], where)
    if "set" not in scores:
        raise UserError(f"{where}: score.set is missing; a mapping is expected")
    return Decoding(
        name=name,
        recorded=recorded,
        model=entry(made, "model", str, where),
        set=entry(made, "set", str, where),
        settings=dict(mapping(within(made, "settings", "decoding"), f"{where}: settings.decoding")),
        scores=scores,
        facts=facts,
        pieces_per_second=entry(parts["timing"], "pieces_per_second", float | None, where),
    )


def tables(params: Mapping[str, Any], decodings: Sequence[Decoding]) -> list[Table]:
    """Return the tables of the page: one for each model and set, best decoding first, without empty columns."""
    groups: dict[tuple[str, str], list[Decoding]] = {}
    for each in decodings:
        groups.setdefault((each.model, each.set), []).append(each)
    found = []
    for (model, chosen), group in groups.items():
        group.sort(key=lambda each: -getattr(each.scores["set"].metrics.get("bleu-13a"), "score", 0.0))
        whole = table(params, group)
        kept = "-recorded" if group[0].recorded else ""
        name = f"decodings-{model.replace('/', '-')}-{chosen}{kept}"
        title = f"Decodings of {chosen} by {model}"
        found.append(dataclasses.replace(whole, name=name, title=title).without("model", "set").without_empty())
    return found


def table(params: Mapping[str, Any], decodings: Sequence[Decoding]) -> Table:
    """Return a table with one row for each decoding."""
    corrected = corrected_p(decodings)
    varied = len({each.settings.get("precision") for each in decodings}) > 1
    left_out = NO_RESULT if varied else (*NO_RESULT, "precision")
    columns = [Column("decoding"), *(Column(title, "score", drawn=True) for title in SCORES)]
    columns += [Column("model"), Column("set"), Column("decoder"), Column("settings"), *FACTS.values()]
    columns.append(Column("pieces per second", "count", measured=True))
    rows = []
    for each in decodings:
        metrics = each.scores["set"].metrics
        facts = dataclasses.asdict(each.facts) | {"p": corrected[each.name, each.recorded]}
        cells: list[Any] = [f"{each.name} (recorded)" if each.recorded else each.name]
        cells += [*(metrics.get(metric) for metric in SCORES.values()), each.model, each.set]
        decoder = each.settings.get("decoder", "beam")
        oracle = str(each.settings.get("objective", "")).startswith("oracle")
        cells += [f"{decoder}, uses the references" if oracle else decoder]
        cells.append(shown_settings(params, each.settings, left_out))
        rows.append([*cells, *(facts[key] for key in FACTS), each.pieces_per_second])
    return Table("decoding", "Decodings", columns, rows, NOTES)


def corrected_p(decodings: Sequence[Decoding]) -> dict[tuple[str, bool], float | None]:
    """The p-values by name and origin, after Holm's correction over the decodings of one set by one model."""
    groups: dict[Any, list[Decoding]] = {}
    for each in decodings:
        groups.setdefault((each.model, each.set, each.recorded), []).append(each)
    return {
        (each.name, each.recorded): p
        for group in groups.values()
        for each, p in zip(group, holm([each.facts.p for each in group]))
    }
