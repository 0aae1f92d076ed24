"""Changes of one setting: the differences between trainings, beside those of Table 3's rows from the paper's base model.

A study names in studies.yaml the row of Table 3 for which a run stands. The seeds of a run are compared with the seeds of
the study's first run, or of the run that the study names for it. Both may be runs of another study.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.reporting.paper_tables import EN_DE, on, stated
from pipeline.reporting.published import BASE, TABLE3, Table3Row, described, differing
from pipeline.reporting.results import LAST, TEST, Results
from pipeline.reporting.studies import Study
from pipeline.scoring.bleu import PUBLISHED, measures, resampled
from pipeline.scoring.intervals import MEASURES, SEEDS, Score, Seeds
from pipeline.settings.scoring import ScoringConfig

FAILED = 10.0  # BLEU; a run further below its base has failed: it has not learnt to translate
ELSEWHERE = {"dev, averaged": ("dev", "average"), "test, averaged": TEST}  # where BLEU is compared beside Table 3's place
ROWS = {row.key: row for row in TABLE3 if row.group in tuple("ABCDE")}


@dataclass(frozen=True)
class Change:
    """The differences of some seeds from those with which they are compared, by their means.

    `row` is the row of Table 3, if the study names one. `bleu` is in points of the paper's BLEU. Its interval and its
    p-value, before a correction, are known with SEEDS seeds on both sides. `welch` is the same by Welch's test.
    `perplexity` is in per cent of the base's, by the mean of the logarithms, with the interval and the p-value of Welch's
    test. `elsewhere` has the differences in BLEU by the keys of ELSEWHERE.
    """

    runs: Sequence[str]
    bases: Sequence[str]
    row: Table3Row | None
    new: Mapping[str, Any]
    old: Mapping[str, Any]
    bleu: Score
    perplexity: Score
    failed: bool
    welch: Score | None = None
    elsewhere: Mapping[str, Score | None] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """The number of seeds of the side with fewer."""
        return min(len(self.runs), len(self.bases))

    @property
    def p(self) -> dict[str, float | None]:
        """The p-values, before a correction, of BLEU, Welch's test, the perplexity of a row of Table 3, and ELSEWHERE."""
        tests = {"BLEU": self.bleu, "Welch": self.welch, "perplexity": self.perplexity if self.row else None}
        return {name: score and score.p for name, score in {**tests, **self.elsewhere}.items()}

    @property
    def same_ratio(self) -> bool:
        """Whether the setting changes by the ratio of the paper's row, or to its value if that is no number above 0."""
        assert self.row
        key = differing(self.new, self.old)[0]
        new, old, theirs, base = self.new[key], self.old[key], self.row.settings[key], BASE[key]
        if all(isinstance(value, int | float) and value for value in (new, old, theirs, base)):
            return math.isclose(new / old, theirs / base)
        return bool(new == theirs)

    @property
    def text(self) -> str:
        """The change, for example `h 8 → 1`. In a row of Table 3, the first setting stands for the others."""
        seeds = f", {len(self.runs)} seeds" if len(self.runs) > 1 else ""
        return described(self.new, self.old, first=self.row is not None) + seeds


@dataclass(frozen=True)
class Comparison:
    """The changes of one study, those of Table 3 first and in its order, by one measure of MEASURES.

    `study` also has the runs of other studies that it compares. `seeds` has the scores of all seeds on one dev set.
    """

    study: Study
    measure: str
    changes: Sequence[Change]
    seeds: Seeds

    def sample(self) -> str:
        """A text that names the number of seeds and the base."""
        base = self.study.seeds(self.study.runs[0])
        mean = self.study.results.over_seeds(base, self.measure, *LAST)
        return f"one seed per change unless stated; base: {mean.text if mean else base[0]}"

    def sides(self) -> list[Sequence[str]]:
        """The seeds that are compared, without those of a change that has failed."""
        return [*(each.bases for each in self.changes), *(each.runs for each in self.changes if not each.failed)]

    def note(self) -> str:
        intervals, pooled = "", self.seeds.spread
        if pooled and any(change.bleu.p is not None for change in self.changes):
            intervals = (
                " The 95% intervals contain the variance between seeds and that between sentences: t distribution, pooled "
                f"standard deviation of a seed {math.sqrt(pooled.seeds):.2f} BLEU, {pooled.freedom} degrees of freedom; "
                f"paired bootstrap. A change with fewer than {SEEDS} seeds has no interval."
            )
        return (
            f"Differences from the base model on dev, last checkpoint: {MEASURES[self.measure]}; perplexity in per cent of "
            f"the base model's. Ours: {self.sample()}.{intervals}"
        )


def comparison(studies: Sequence[Study], results: Results, settings: ScoringConfig) -> Comparison | None:
    """The changes of the study on the paper's corpus, or of that with most rows of Table 3. None if no study has one."""
    found = [of_study(with_others(study, results)) for study in studies if study.rows]
    best = max((each for each in found if each.changes), key=rank, default=None)
    return best and tested(best, settings)


def rank(compared: Comparison) -> tuple[bool, bool, int]:
    study = compared.study
    rows = [run for run in study.rows if run in study.runs]
    return on(study.corpus, EN_DE), len(study.seeds(study.runs[0])) > 1, len(rows)


def with_others(study: Study, results: Results) -> Study:
    """The study, also with the runs of other studies that it names in `rows` and `against`, and with their seeds."""
    named = {*study.rows, *study.against.values()} - set(study.runs)
    more = [run for same in results.alike(results.scored) if named & set(same) for run in same]
    return replace(study, results=results.of([*study.runs, *(run for run in more if run not in study.runs)]))


def of_study(study: Study) -> Comparison:
    """The comparisons of seeds that have the BLEU of Table 3 on both sides, without intervals."""
    results, found = study.results, []
    measure = next((name for name in MEASURES if {*results.scored} <= {*results.at(name, *LAST).index}), PUBLISHED)
    known = results.at(measure, *LAST)["score"].astype(float)
    losses = results.losses
    for runs in results.groups:
        bases = study.seeds(study.against.get(runs[0], study.runs[0]))
        if runs == bases or not {*runs, *bases} <= set(known.index):
            continue
        found.append(
            Change(
                runs=runs,
                bases=bases,
                row=ROWS.get(study.rows.get(runs[0], "")),
                new=stated(results.runs.loc[runs[0]]),
                old=stated(results.runs.loc[bases[0]]),
                bleu=Score(known[runs].mean() - known[bases].mean()),
                perplexity=per_cent(Score(losses[runs].mean(skipna=False) - losses[bases].mean(skipna=False))),
                failed=known[runs].min() < known[bases].mean() - FAILED,
            )
        )
    # One change for each row of Table 3: that with most seeds, if equal one that has not failed. Then the others.
    rows = [[change for change in found if change.row is row] for row in ROWS.values()]
    best = [max(of, key=lambda change: (change.seeds, not change.failed)) for of in rows if of]
    return Comparison(study, measure, [*best, *(change for change in found if change.row is None)], Seeds({}, []))


def per_cent(logarithms: Score) -> Score:
    """The difference of two quantities in per cent, from that of their logarithms."""
    low, high = (None if end is None else 100 * math.expm1(end) for end in (logarithms.low, logarithms.high))
    return Score(100 * math.expm1(logarithms.score), low, high, logarithms.p)


def tested(compared: Comparison, settings: ScoringConfig) -> Comparison:
    """The comparison with intervals and p-values, of all runs whose dev set is that of the first.

    BLEU on dev, last, is compared by the statistics of the sentences. On another set, for which a run lacks them, the
    scores of the seeds are compared. Without resamples, the comparison stays as it is.
    """
    if not settings.bootstrap:
        return compared
    results, groups = compared.study.results, compared.sides()
    sides = dict.fromkeys(run for change in compared.changes for run in (*change.bases, *change.runs))
    scores = resampled_at(compared, sides, LAST, settings)
    lengths = {run: results.statistics[run][compared.measure, *LAST][:, 1].tolist() for run in scores}
    same = [run for run, of in lengths.items() if of == next(iter(lengths.values()))]  # equal references
    seeds = Seeds({run: scores[run] for run in same}, groups)
    elsewhere = {}
    for name, place in ELSEWHERE.items():
        sentences = resampled_at(compared, same, place, settings)
        known = results.at(compared.measure, *place)["score"].reindex(same).dropna()
        elsewhere[name] = Seeds(sentences, groups) if len(sentences) == len(same) else Seeds.of_values(known, groups)
    perplexities = Seeds.of_values(results.losses[same].dropna(), groups)
    changes = []
    for change in compared.changes:
        both = change.runs, change.bases
        found = seeds.difference(*both) if {*change.runs, *change.bases} <= set(same) else None
        if found and found.p is not None:
            welch, loss = (of.difference(*both, pooled=False) for of in (seeds, perplexities))
            perplexity = per_cent(loss) if loss and loss.p is not None else change.perplexity
            others = {name: of.difference(*both) for name, of in elsewhere.items()}
            change = replace(change, bleu=found, welch=welch, perplexity=perplexity, elsewhere=others)
        changes.append(change)
    return replace(compared, changes=changes, seeds=seeds)


def resampled_at(
    compared: Comparison, runs: Iterable[str], place: tuple[str, str], settings: ScoringConfig
) -> dict[str, np.ndarray]:
    """The scores [1 + R] at one place of ELSEWHERE, or LAST, of the runs whose sentences have statistics there."""
    statistics, key = compared.study.results.statistics, (compared.measure, *place)
    metric = measures("")[compared.measure]
    return {run: resampled(metric, statistics[run][key], settings) for run in runs if key in statistics[run]}
