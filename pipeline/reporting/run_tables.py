"""Tables of our own runs: all of them, their BLEU matrix, their seeds, and their studies, such as Table 3 in small."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from pipeline.reporting import variations
from pipeline.reporting.evidence import Evidence, Score
from pipeline.reporting.paper_tables import EN_DE, on
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import described, stated

TRANSLATIONS = {
    "dev, last": ("dev", "last"),
    "dev, average": ("dev", "average"),
    "test": ("test", "average"),
    "test, filtered": ("test_filtered", "average"),
}
MEASURES = {
    "bleu-13a": "sacreBLEU 13a",
    "bleu-13a-lc": "sacreBLEU 13a, lower-cased",
    "bleu-intl": "sacreBLEU intl",
    "bleu-intl-lc": "sacreBLEU intl, lower-cased",
    "bleu-paper": "the paper's",
    "bleu-paper-normalised": "the paper's, reference normalised",
    "bleu-tokenised": "on spaces, lower-cased",
    "chrf": "chrF",
}


def summary(runs: Sequence[Evidence]) -> Table:
    """The first table of the page: the results of each run."""
    columns = [Column("run", "run"), Column("corpus"), Column("parameters", "count"), Column("dev PPL", "number")]
    columns += [Column("test sacreBLEU", "score"), Column("test BLEU, paper's", "score"), Column("chrF", "score")]
    columns += [Column("training", "duration", measured=True), Column("hardware", measured=True)]
    rows = []
    for run in runs:
        cells = [run.name, run.corpus, run.at("training", "parameters")]
        cells += [run.at("translations", "dev", "average", "perplexity")]
        cells += [run.measure(name) for name in ("bleu-13a", "bleu-paper", "chrf")]
        rows.append([*cells, run.at("timing", "seconds"), run.at("timing", "hardware")])
    note = "Test sets, from the averaged checkpoints, with 95% intervals by bootstrap; perplexity per word-piece."
    return Table("summary", "Results", columns, rows, [note])


# The columns of runs.*, and where a value stands in a run's parts.
FACTS = [
    (Column("parameters", "count"), ("training", "parameters")),
    (Column("steps", "count"), ("training", "steps")),
    (Column("dev PPL, last", "number"), ("translations", "dev", "last", "perplexity")),
    (Column("dev PPL, average", "number"), ("translations", "dev", "average", "perplexity")),
    (Column("FLOPs, counted", "power"), ("flops", "analytic", "training_flops")),
    (Column("data", "hash"), ("training", "data_sum")),
    (Column("settings", "hash"), ("training", "settings_sha256")),
]
RESULTS = [
    (Column("dev sacreBLEU, last", "score"), ("bleu-13a", "dev", "last")),
    (Column("dev sacreBLEU, average", "score"), ("bleu-13a", "dev", "average")),
    (Column("test sacreBLEU", "score"), ("bleu-13a", "test", "average")),
    (Column("test BLEU, paper's", "score"), ("bleu-paper", "test", "average")),
    (Column("test chrF", "score"), ("chrf", "test", "average")),
]


def all_runs(runs: Sequence[Evidence]) -> Table:
    """One line a run, with the hashes that its numbers can be traced by."""
    columns = [Column("run", "run"), Column("corpus"), Column("model"), Column("differences"), Column("recorded")]
    columns += [column for column, _ in RESULTS + FACTS] + [Column("sacreBLEU signature", "signature")]
    rows = []
    for run in runs:
        score = run.measure("bleu-13a")
        cells: list[Any] = [
            run.name,
            run.corpus,
            run.model,
            described(run.differences),
            "yes" if run.recorded else "no",
        ]
        cells += [run.measure(*place) for _, place in RESULTS]
        rows.append([*cells, *(run.at(*place) for _, place in FACTS), score and score.signature])
    note = "Recorded runs come from results/, the others are those that params.yaml selects."
    return Table("runs", "All runs", columns, rows, [note])


def bleu_matrix(runs: Sequence[Evidence]) -> Table:
    """Every measure of each run's test set, and of the filtered one where there is one."""
    columns = [Column("run", "run"), Column("set"), *(Column(label, "score") for label in MEASURES.values())]
    rows = []
    for run in runs:
        for label in ("test", "test, filtered") if "test_filtered" in run.scores else ("test",):
            rows.append([run.name, label, *(run.measure(measure, *TRANSLATIONS[label]) for measure in MEASURES)])
    note = "The same translations, scored by each measure; 95% intervals by bootstrap in parentheses."
    return Table("bleu-matrix", "BLEU matrix", columns, rows, [note])


def scores(runs: Sequence[Evidence]) -> Table:
    """Every score with its signature, which is the same for all sets."""
    columns = [Column("run", "run"), Column("measure"), *(Column(label, "score") for label in TRANSLATIONS)]
    rows = []
    for run in runs:
        for measure, label in MEASURES.items():
            cells = [run.measure(measure, *place) for place in TRANSLATIONS.values()]
            known = [cell for cell in cells if cell]
            rows.append([run.name, label, *cells, known[0].signature if known else None])
    return Table("scores", "All scores", [*columns, Column("signature", "signature")], rows, grouped=True)


def study_table(study: Study) -> Table | None:
    """Table 3 in small: the settings that a study's runs vary, and the results.

    None if no two runs of a model differ.
    """
    rows = []
    for model in dict.fromkeys(run.model for run in study.runs):
        rows += study_rows([run for run in study.runs if run.model == model])
    if not rows:
        return None
    columns = [Column("model"), Column("row"), *variations.columns(), Column("dev PPL", "number")]
    columns += [Column("dev sacreBLEU", "score"), Column("dev chrF", "score"), Column("params (1e6)", "number", 2)]
    note = (
        "Dev set, from the last checkpoint, without averaging; 95% intervals by bootstrap in parentheses; perplexity "
        "per word-piece. An empty setting is that of the model's first row."
    )
    whole = set("ABCDE") <= {row[1] for row in rows} and not on(study.corpus, EN_DE)
    title = f"Table 3 in small: {study.name}" if whole else f"{study.name}, on {study.corpus}"
    notes = [note, study.claim()] if study.claim() else [note]
    table = Table(f"study-{study.name}", title, [*columns, Column("run", "run")], rows, notes, grouped=True)
    return table.without_empty(variations.OTHERS)


def study_rows(runs: Sequence[Evidence]) -> list[list[Any]]:
    """The rows of one model on one corpus; none if all have the same settings."""
    base = min(runs, key=lambda run: len(run.differences))
    rows = [study_row(run, base) for run in runs]
    rows.sort(key=lambda row: variations.GROUPS.index(row[1]))
    return rows if rows[-1][1] != "base" else []


def study_row(run: Evidence, base: Evidence) -> list[Any]:
    settings, reference = stated(run), stated(base)
    parameters = run.at("training", "parameters")
    cells: list[Any] = [
        run.model,
        variations.group(settings, reference),
        *variations.cells(settings, reference, run is base),
    ]
    cells += [run.at("translations", "dev", "last", "perplexity")]
    cells += [run.measure(name, "dev", "last") for name in ("bleu-13a", "chrf")]
    return [*cells, parameters and parameters / 1e6, run.name]


def seeds(runs: Iterable[Evidence]) -> Table | None:
    """The mean over runs that differ in the seed only; None if there are no such runs."""

    def identity(run: Evidence) -> str:
        return repr((run.corpus, sorted((key, value) for key, value in run.settings.items() if key != "seed")))

    names = [name for name in MEASURES if name != "chrf"]
    rows = []
    for _, group in groupby(sorted((run for run in runs if run.scores), key=identity), identity):
        of_seed: dict[Any, Evidence] = {}
        for run in group:
            of_seed.setdefault(run.settings.get("seed"), run)
        if len(of_seed) > 1:
            same = list(of_seed.values())
            means = [mean([run.measure(name) for run in same]) for name in names]
            rows.append([same[0].corpus, same[0].model, ", ".join(run.name for run in same), len(same), *means])
    columns = [Column("corpus"), Column("model"), Column("runs"), Column("seeds", "count")]
    columns += [Column(MEASURES[name], "number") for name in names]
    note = "Means of BLEU on the test set over runs that differ only in the seed."
    return Table("seeds", "Means over seeds", columns, rows, [note]) if rows else None


def mean(scores: Sequence[Score | None]) -> float | None:
    known = [score.score for score in scores if score]
    return sum(known) / len(known) if len(known) == len(scores) else None


def study_tables(studies: Sequence[Study]) -> list[Table]:
    return [table for study in studies if (table := study_table(study))]
