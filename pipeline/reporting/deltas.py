"""The differences of Table 3's rows from the base model, beside the differences of our runs from their study's base."""

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
    "Differences from the base model on dev, last checkpoint: BLEU as the paper computes it; perplexity in per cent of the "
    "base model's. The interval is that of the run's own score, not of the difference; one seed."
]


@dataclass(frozen=True)
class Own:
    """The differences of one of our runs from the base of its study.

    `bleu` is in points of BLEU as the paper computes it. `perplexity` is in per cent of the base's perplexity.
    """

    run: str
    change: str
    bleu: Score
    perplexity: float | None


@dataclass(frozen=True)
class Delta:
    """The differences of a row of Table 3 from the paper's base model, and those of our runs with a similar change."""

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
    """The rows A to E of Table 3, beside one study.

    `interval` is the 95% interval of the BLEU of the study's base, relative to that BLEU.
    """

    study: Study | None
    interval: Score | None
    deltas: tuple[Delta, ...]

    @property
    def agreeing(self) -> tuple[int, int]:
        """The number of our changes that move BLEU in the paper's direction, and the number of changes compared.

        Changes that leave the paper's BLEU as it is are not compared, because they have no direction.
        """
        signs = [delta.bleu * own.bleu.score > 0 for delta in self.deltas for own in delta.ours if delta.bleu]
        return sum(signs), len(signs)


def comparison(studies: Sequence[Study]) -> Comparison:
    """Compare Table 3 with one study: the study whose runs match the most rows.

    A study on the paper's corpus with a run for any row takes precedence. Without a suitable study, the paper's
    differences stand alone.
    """
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
    """Return the runs of a study, by the index in `rows` of the row with the nearest change."""
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
    """Return the score of a run that Table 3 reports: the paper's BLEU of the last checkpoint, on dev."""
    return run.measure("bleu-paper", "dev", "last")


def against(score: Score, base: Score) -> Score:
    """Return the score of a run and the ends of its interval, with the base's score subtracted from each."""
    low, high = (bound if bound is None else bound - base.score for bound in (score.low, score.high))
    return Score(score.score - base.score, low, high, score.signature)


def nearest(settings: Mapping[str, Any], base: Mapping[str, Any], rows: Sequence[Table3Row]) -> int | None:
    """Return the index in `rows` of the row with the nearest change of the same settings, or None.

    A row with an equal new value is the nearest one. Otherwise, rows are compared by the factor of the change.
    """
    changed = differing(settings, base)
    distances = {}
    for number, row in enumerate(rows):
        if changed and changed == differing(row.settings, BASE):
            key = changed[0]  # in Table 3, the other settings of a row change with the first one
            if settings[key] == row.settings[key]:
                distances[number] = 0.0
                continue
            values = settings[key], base[key], row.settings[key], BASE[key]
            if all(isinstance(value, (int, float)) and value > 0 for value in values):
                ours, our_base, paper, paper_base = map(math.log, values)
                distances[number] = abs(ours - our_base - (paper - paper_base))
    return min(distances, key=distances.__getitem__, default=None)


def differing(settings: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ: first those of Table 3's columns, in their order, then the others."""
    order = [*SETTINGS.values(), *(key for key in settings if key not in SETTINGS.values())]
    return [key for key in order if settings[key] != base[key]]


def table(compared: Comparison) -> Table:
    """Return a table with a line for each of our runs, beside its row of Table 3. A row without a run has one line."""
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
    """Return the first change as text, for example `h 8 → 1`."""
    labels = {key: label for label, key in SETTINGS.items()}
    key = differing(settings, base)[0]
    return f"{labels.get(key, key)} {base[key]} → {settings[key]}".replace("sinusoidal → ", "")
