"""The differences of Table 3's rows from the base model, beside the differences of our runs from their study's base."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from pipeline.reporting.differences import MEASURES, SET, WEIGHTS, Bootstrap, differences, measure_of
from pipeline.reporting.evidence import Evidence, Mean, Score, alike, over_seeds
from pipeline.reporting.paper_tables import EN_DE, on
from pipeline.reporting.published import BASE, TABLE3, Table3Row
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import SETTINGS, stated
from pipeline.scoring.bleu import PUBLISHED
from pipeline.scoring.intervals import SEEDS, Spread

FAILED = 10.0  # BLEU; a run further below its base has failed: it has not learnt to translate


@dataclass(frozen=True)
class Own:
    """The differences of one of our runs from the run with which it is compared. Several seeds are compared by their mean.

    `run` and `base` are the first seeds; `base` is in most cases the base of the study. `seeds` is the number of seeds of
    the side with fewer. `bleu` is in points of BLEU as the paper computes it, with its 95% interval where it is known, and
    `p` its p-value before a correction. `perplexity` is in per cent of the base's. `failed` says that one of the runs has.
    """

    run: Evidence
    base: Evidence
    change: str
    seeds: int
    bleu: Score
    perplexity: float | None
    failed: bool
    p: float | None = None


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
    """The rows A to E of Table 3, beside one study. `others` are its runs with a change that Table 3 does not have.

    `measure` is the one of its differences. `seeds` is the BLEU of the study's base over its seeds, or None if the base
    has one seed. `spread` is that of all seeds in the comparison, or None if no difference has an interval.
    """

    study: Study | None
    measure: str
    seeds: Mean | None
    deltas: tuple[Delta, ...]
    others: tuple[Own, ...] = ()
    spread: Spread | None = None

    @property
    def ours(self) -> list[Own]:
        """The compared runs: first those with a row in Table 3, in its order, then the others."""
        return [*(own for delta in self.deltas for own in delta.ours), *self.others]

    @property
    def has_intervals(self) -> bool:
        return any(own.bleu.low is not None for own in self.ours)

    def sample(self) -> str:
        """Return a text that names the number of seeds and the base."""
        base = self.seeds or (self.study and self.study.base.name)
        return f"one seed per change unless stated; base: {base}" if base else "no run of ours"


def comparison(studies: Sequence[Study], bootstrap: Bootstrap | None = None) -> Comparison:
    """Compare Table 3 with one study that has a run for any row.

    A study on the paper's corpus is preferred, then one whose base has several seeds, then the one whose runs match the
    most rows. Without a study, there are only the paper's differences. Without `bootstrap`, no difference has an interval.
    """
    rows = [row for row in TABLE3 if row.group in tuple("ABCDE")]
    of_study = [(study, rows_of(study, rows)) for study in studies]
    study, found = max(of_study, key=lambda of: rank(*of), default=(None, []))
    if study is None or not matched(found):
        return Comparison(None, PUBLISHED, None, tuple(Delta(row, ()) for row in rows))
    changes = [(number, runs, bases) for runs, number in found if (bases := compared_with(runs[0], study))]
    measure = measure_of(study.runs)
    ours = [own(measure, runs, bases, number is not None) for number, runs, bases in changes]
    spread = None
    if bootstrap and ours:
        pairs, failed = [(runs, bases) for _, runs, bases in changes], [each.failed for each in ours]
        spread, tested = differences(measure, pairs, failed, bootstrap)
        for place, result in enumerate(tested):
            if result:
                score = Score(result.score, result.low, result.high, "")
                ours[place] = replace(ours[place], bleu=score, p=result.p)
    placed = [(number, each) for (number, *_), each in zip(changes, ours)]
    deltas = (Delta(row, tuple(each for place, each in placed if place == number)) for number, row in enumerate(rows))
    others = tuple(each for place, each in placed if place is None)
    seeds = over_seeds(study.bases, measure, SET, WEIGHTS)
    return Comparison(study, measure, seeds, tuple(deltas), others, spread)


def rows_of(study: Study, rows: Sequence[Table3Row]) -> list[tuple[list[Evidence], int | None]]:
    """Return the scored seeds of each change of a setting, with the index in `rows` of the row with the nearest change.

    The index is None if no row has such a change. The result is empty if a seed of the base has no score.
    """
    bases, of_table3 = study.bases, (measure_of(study.runs), SET, WEIGHTS)
    if not study.base.settings or not all(base.measure(*of_table3) for base in bases):
        return []
    base = stated(study.base)
    scored = [run for run in study.runs if run.settings and run.measure(*of_table3) and run not in bases]
    changes = [(runs, stated(runs[0])) for runs in alike(scored)]
    return [
        (runs, nearest(settings, base, rows))
        for runs, settings in changes
        if settings != base  # a run on another corpus may also have another training text
        and (
            runs[0].corpus == study.base.corpus
            or (differing(settings, base) == ["bpe_dropout"] and runs[0].text == study.base.text)
        )
    ]


def compared_with(run: Evidence, study: Study) -> list[Evidence]:
    """The runs with which `run` is compared: the base with its seeds. If `run` changes the schedule and other settings,
    they are the seeds of the run that has only the other changes, or an empty list if there is none.

    So pre-norm without the warm-up is compared with pre-norm, not with post-norm.
    """
    changed = differing(stated(run), stated(study.base))
    if "schedule" not in changed or len(changed) == 1:
        return study.bases
    scored = [each for each in study.runs if each.settings and each.measure(measure_of(study.runs), SET, WEIGHTS)]
    return next((same for same in alike(scored) if differing(stated(same[0]), stated(run)) == ["schedule"]), [])


def rank(study: Study, found: Sequence[tuple[list[Evidence], int | None]]) -> tuple[bool, bool, int]:
    rows = len(set(matched(found)))
    return rows > 0 and on(study.corpus, EN_DE), rows > 0 and len(study.bases) > 1, rows


def matched(found: Sequence[tuple[list[Evidence], int | None]]) -> list[int]:
    return [number for _, number in found if number is not None]


def own(measure: str, runs: Sequence[Evidence], bases: Sequence[Evidence], in_table3: bool) -> Own:
    """The differences of some seeds from the seeds of their base, without intervals."""
    ours, others = (
        [score.score for run in part if (score := run.measure(measure, SET, WEIGHTS))] for part in (runs, bases)
    )
    known = [run.at("translations", "dev", "last", "perplexity") for run in (*runs, *bases)]
    perplexity = 100 * (mean(known[: len(runs)]) / mean(known[len(runs) :]) - 1) if all(known) else None
    change = described(stated(runs[0]), stated(bases[0]), in_table3)
    seeds = f", {len(runs)} seeds" if len(runs) > 1 else ""
    return Own(
        run=runs[0],
        base=bases[0],
        change=f"{change}{seeds}",
        seeds=min(len(runs), len(bases)),
        bleu=Score(mean(ours) - mean(others), None, None, ""),
        perplexity=perplexity,
        failed=min(ours) < mean(others) - FAILED,
    )


def nearest(settings: Mapping[str, Any], base: Mapping[str, Any], rows: Sequence[Table3Row]) -> int | None:
    """Return the index in `rows` of the row with the nearest change of the same settings, or None.

    The change has the direction of the row's. Rows are compared by the factor of the change. A change to 0 or 1, such as a
    single head, belongs to the row with the same new value.
    """
    changed = differing(settings, base)
    distances = {}
    for number, row in enumerate(rows):
        if changed and changed == differing(row.settings, BASE):
            key = changed[0]  # in Table 3, the other settings of a row change with the first one
            values = settings[key], base[key], row.settings[key], BASE[key]
            if not all(isinstance(value, (int, float)) for value in values):
                if values[0] == values[2]:
                    distances[number] = 0.0
                continue
            ours, our_base, paper, paper_base = values
            if (ours - our_base) * (paper - paper_base) <= 0:
                continue
            if ours == paper and ours in (0, 1):
                distances[number] = 0.0
            elif min(values) > 0:
                distances[number] = abs(math.log(ours / our_base) - math.log(paper / paper_base))
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
            bleu, perplexity, *names = [own.bleu, own.perplexity, own.run.name, own.change] if own else [None] * 4
            rows.append([f"{delta.row.group}: {delta.change}", bleu, delta.bleu, perplexity, delta.perplexity, *names])
    return Table("table3-differences", "Table 3, A to E: differences from the base model", columns, rows, [note(compared)])


def note(compared: Comparison) -> str:
    spread, intervals = compared.spread, ""
    if spread and compared.has_intervals:
        intervals = (
            " The 95% intervals contain the variance between seeds and that between sentences: t distribution, pooled "
            f"standard deviation of a seed {math.sqrt(spread.seeds):.2f} BLEU, {spread.freedom} degrees of freedom; paired "
            f"bootstrap. A change with fewer than {SEEDS} seeds has no interval."
        )
    return (
        f"Differences from the base model on dev, last checkpoint: {MEASURES[compared.measure]}; perplexity in per cent of "
        f"the base model's. Ours: {compared.sample()}.{intervals}"
    )


def described(settings: Mapping[str, Any], base: Mapping[str, Any], in_table3: bool = True) -> str:
    """Return the changes as text, for example `h 8 → 1`. In a row of Table 3, the first change stands for the others."""
    labels = {key: label for label, key in SETTINGS.items()}
    keys = differing(settings, base)[: 1 if in_table3 else None]
    changes = ", ".join(f"{labels.get(key, key)} {base[key]} → {settings[key]}" for key in keys)
    return changes.replace("sinusoidal → ", "")
