"""Trainings against the first of their study, on the test set, whose translations are on this machine."""

from pathlib import Path

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.bleu import HEADLINE, measure, resampled
from pipeline.scoring.intervals import SEEDS, Score, Seeds, holm, seeds_named
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
    corpora, texts, tests = study.results.runs["corpus"], dict[str, Path](), dict[str, EvaluationSet]()
    for run in study.best_first():
        text, folder = scores / run / "translations/test.average.txt", sets / f"{corpora[run]}-test"
        if text.exists() and folder.exists():
            texts[run], tests[run] = text, EvaluationSet.open(folder)
    if not settings.bootstrap or not (test := tests.get(study.runs[0])):
        return None
    here = [run for run in tests if tests[run].lines("raw") == test.lines("raw")]
    base, *others = sorted(study.results.alike(here), key=lambda group: study.runs[0] not in group)
    if not others:
        return None
    metric, drawn = measure(test.languages[1], HEADLINE), {}
    for run in here:
        counts = metric.statistics(*aligned(texts[run], test.path("raw", "target")))
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
