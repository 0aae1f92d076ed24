"""Trainings against the first of their study, on the test set, whose translations are on this machine."""

from pathlib import Path

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.seeds import alike
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.bleu import HEADLINE, measure
from pipeline.scoring.intervals import SEEDS, Score, Seeds, holm, resampled, seeds_named
from pipeline.scoring.of_sets import aligned
from pipeline.settings.scoring import ScoringConfig

NOTE = (
    f"Test set, averaged checkpoints, means over the seeds. With {SEEDS} seeds on both sides, the 95% interval contains "
    "the variance between seeds and that between sentences, and p is two-sided and corrected by Holm's method. Fewer "
    "seeds decide nothing."
)


def pairs_table(study: Study, scores: Path, sets: Path, settings: ScoringConfig) -> Table | None:
    """A row for each training but the first, best first. Runs without a translation or with another test set are left out.

    `scores` is the folder of the score files, `sets` that of the evaluation sets. None if there is nothing to compare.
    """
    first, files = study.runs[0], {run: scores / run / "translations/test.average.txt" for run in study.best_first()}
    folders = {run: sets / f"{study.results.runs.at[run, 'corpus']}-test" for run in files}
    here = [run for run in files if files[run].exists() and folders[run].exists()]
    if first not in here or not settings.bootstrap:
        return None
    test = EvaluationSet.open(folders[first])
    here = [run for run in here if EvaluationSet.open(folders[run]).lines("raw") == test.lines("raw")]
    base, *others = sorted(alike(study.results.runs, here), key=lambda group: first not in group)
    if not others:
        return None
    metric, drawn = measure(test.languages[1], HEADLINE), {}
    for run in (run for group in (base, *others) for run in group):
        counts = metric.statistics(*aligned(files[run], test.path("raw", "target")))
        drawn[run] = resampled(metric, counts, settings)
    seeds = Seeds(drawn, [base, *others])
    differences = [seeds.difference(group, base) or Score(0.0) for group in others]
    rows = [
        {
            "run": group[0],
            **with_ends("difference, sacreBLEU", difference),
            "p, Holm": p,
            "seeds": seeds_named(min(len(group), len(base))),
            "against": base[0],
        }
        for group, difference, p in zip(others, differences, holm([each.p for each in differences]))
    ]
    return table("paired", "Runs against the first of their study", rows, [NOTE], places={"p, Holm": 4})
