"""The differences that Table 3 reports between its rows and the base model, beside ours between the runs of a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Evidence, Score
from pipeline.reporting.paper_tables import EN_DE, on
from pipeline.reporting.published import BASE, TABLE3, Table3Row
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import SETTINGS, stated

NOTES = [
    "Of the last checkpoint on the dev set: BLEU as the paper computes it, and perplexity in per cent of the base model's. "
    "The interval is that of the run's own score, one seed."
]


@dataclass(frozen=True)
class Own:
    """A run of ours against the base of its study. BLEU as the paper computes it; perplexity in per cent."""

    run: str
    change: str
    bleu: Score
    perplexity: float | None


@dataclass(frozen=True)
class Delta:
    """A row of Table 3 against the paper's base model, and our runs with the same kind of change."""

    row: Table3Row
    ours: tuple[Own, ...]

    @property
    def change(self) -> str:
        return described(self.row.settings, BASE)

    @property
    def bleu(self) -> float:
        return self.row.bleu - TABLE3[0].bleu

    @property
    def perplexity(self) -> float:
        return 100 * (self.row.perplexity / TABLE3[0].perplexity - 1)


@dataclass(frozen=True)
class Comparison:
    """The rows A to E of Table 3 beside one study; `interval` is that of the score of the study's base."""

    study: Study | None
    interval: Score | None
    deltas: tuple[Delta, ...]

    @property
    def agreeing(self) -> tuple[int, int]:
        """How many of our changes move BLEU in the paper's direction, and how many there are."""
        signs = [delta.bleu * own.bleu.score > 0 for delta in self.deltas for own in delta.ours if delta.bleu]
        return sum(signs), len(signs)


def comparison(studies: Sequence[Study]) -> Comparison:
    """With the study on the paper's corpus if it has rows of Table 3, otherwise with the study that has most rows."""
    rows = [row for row in TABLE3 if row.group in tuple("ABCDE")]
    of_study = {study.name: (study, own_rows(study, rows)) for study in studies}
    study, ours = max(
        of_study.values(),
        key=lambda found: (bool(found[1]) and on(found[0].corpus, EN_DE), len(found[1])),
        default=(None, {}),
    )
    deltas = tuple(Delta(row, tuple(ours.get(number, ()))) for number, row in enumerate(rows))
    base = result(study.base) if study and ours else None
    if base is None:
        return Comparison(None, None, deltas)
    return Comparison(study, against(base, base), deltas)


def own_rows(study: Study, rows: Sequence[Table3Row]) -> dict[int, list[Own]]:
    """The runs of a study by the number of the row whose change is nearest to theirs."""
    base, base_score = study.base, result(study.base)
    found: dict[int, list[Own]] = {}
    if not base.settings or not base_score:
        return {}
    for run in study.runs:
        score = result(run)
        number = nearest(stated(run), stated(base), rows) if run.settings and score else None
        if score and number is not None:
            perplexities = [other.at("translations", "dev", "last", "perplexity") for other in (run, base)]
            change = 100 * (perplexities[0] / perplexities[1] - 1) if all(perplexities) else None
            own = Own(run.name, described(stated(run), stated(base)), against(score, base_score), change)
            found.setdefault(number, []).append(own)
    return found


def result(run: Evidence) -> Score | None:
    """The score that Table 3 reports."""
    return run.measure("bleu-paper", "dev", "last")


def against(score: Score, base: Score) -> Score:
    """The score of a run and the ends of its interval, less the base's score."""
    low, high = (bound if bound is None else bound - base.score for bound in (score.low, score.high))
    return Score(score.score - base.score, low, high, score.signature)


def nearest(settings: Mapping[str, Any], base: Mapping[str, Any], rows: Sequence[Table3Row]) -> int | None:
    """The number of the row that changes the same settings: to an equal value, or else by the nearest factor."""
    changed = differing(settings, base)
    distances = {}
    for number, row in enumerate(rows):
        if changed and changed == differing(row.settings, BASE):
            key = changed[0]  # the others follow from it
            if settings[key] == row.settings[key]:
                distances[number] = 0.0
            elif all(isinstance(value, (int, float)) and value > 0 for value in (settings[key], row.settings[key])):
                distances[number] = abs(math.log(settings[key] / base[key]) - math.log(row.settings[key] / BASE[key]))
    return min(distances, key=distances.__getitem__, default=None)


def differing(settings: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """The settings that differ, in the order of Table 3's columns and then the others."""
    order = [*SETTINGS.values(), *(key for key in settings if key not in SETTINGS.values())]
    return [key for key in order if settings[key] != base[key]]


def table(compared: Comparison) -> Table:
    """A line for each change of Table 3, and for each run of ours that makes it."""
    columns = [Column("the paper's change"), Column("BLEU, ours", "score"), Column("BLEU, paper", "number", 1)]
    columns += [Column("PPL %, ours", "number", 1), Column("PPL %, paper", "number", 1)]
    columns += [Column("run", "run"), Column("our change")]
    rows = []
    for delta in compared.deltas:
        for own in delta.ours or [None]:
            bleu, perplexity, *names = [own.bleu, own.perplexity, own.run, own.change] if own else [None] * 4
            rows.append([f"{delta.row.group}: {delta.change}", bleu, delta.bleu, perplexity, delta.perplexity, *names])
    return Table("table3-differences", "Table 3, A to E: differences from the base model", columns, rows, NOTES)


def described(settings: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """The leading change, as `h 8 → 1`."""
    labels = {key: label for label, key in SETTINGS.items()}
    key = differing(settings, base)[0]
    return f"{labels.get(key, key)} {base[key]} → {settings[key]}".replace("sinusoidal → ", "")
