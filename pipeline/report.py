"""Write the report: tables beside the paper's, figures, and a page for the browser.

    python -m pipeline.report --scores scores --times work/times --sets data/sets --results results --studies studies.yaml
                              --out reports

Reads the score files and times of the runs, decodings, values and searches that params.yaml selects (others are
ignored), the test sets, the records in results/, and studies.yaml. Missing values
become dashes.

Writes into reports/: README.md with its pictures, each table as .csv, Tables 1 to 3 as .tex as well, and index.html.
Removes the files of an earlier report that this one does not write.

index.html also shows times, hardware and commits, so git and DVC ignore it. The other files show none of these: equal
results give equal files.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.reporting import (
    claims,
    decodings,
    delta_plot,
    deltas,
    evidence,
    layer_table,
    pairs,
    paper_tables,
    run_tables,
    searches,
    tree_plots,
    values,
)
from pipeline.reporting.attention_maps import attention
from pipeline.reporting.decodings import Decoding
from pipeline.reporting.deltas import Comparison, comparison
from pipeline.reporting.differences import Bootstrap
from pipeline.reporting.evidence import Evidence
from pipeline.reporting.headlines import headlines
from pipeline.reporting.headlines import table as headline_table
from pipeline.reporting.page import Content, count, page
from pipeline.reporting.plots import Figure, curves, positional_encoding, style
from pipeline.reporting.searches import Tuning
from pipeline.reporting.studies import Study, expected_to_fail, studies
from pipeline.reporting.tables import Table, comma_separated, escape_markdown, latex, markdown
from pipeline.reporting.tree_plots import Trees
from pipeline.reporting.values import Calibration
from pipeline.settings.params import load
from pipeline.settings.scoring import scoring
from pipeline.settings.studies import with_studies
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import atomic, digest

PAGE = "index.html"
IN_LATEX = ("table1", "table2", "table3")
PICTURES = 3  # at most, in README.md
SUFFIXES = (".html", ".svg", ".md", ".csv", ".tex")  # of the files of a report


@dataclass(frozen=True)
class Known:
    """What the report shows. `layers`: the file of the measured layers of Table 1. `sets`: the folder of the test sets."""

    runs: Sequence[Evidence]
    layers: Path = Path("results/layers/layers.json")
    decoded: Sequence[Decoding] = ()
    sets: Path | None = None
    values: Sequence[Calibration] = ()
    trees: Sequence[Trees] = ()
    tuned: Sequence[Tuning] = ()


def content_of(params: Mapping, known: Known, figures: bool = True) -> Content:
    """Return the content of the page.

    Runs that are expected to fail (`expected_to_fail`) are left out of the tables `paper` and `costs` and of the means over
    seeds.
    """
    found = studies(params, known.runs)
    against = pairs.pairs(params, found, known.sets) if known.sets else []
    bootstrap = Bootstrap(known.sets, scoring(params)) if known.sets else None
    compared, shown = comparison(found, bootstrap), [run for run in known.runs if not expected_to_fail(run)]
    return Content(
        runs=known.runs,
        studies=found,
        headlines=headlines(params, found, compared),
        selected=[run_tables.study_table(study) for study in found if not study.recorded],
        compared=[table for table in (pairs.table(against), run_tables.seeds(shown)) if table],
        claims=[table] if (table := claims.table(compared)) else [],
        deltas=deltas.table(compared),
        decodings=searched_tables(params, known, recorded=False),
        pairs=against,
        searches=[searches.table(search) for search in known.tuned],
        recorded=[run_tables.study_table(study) for study in found if study.recorded],
        recorded_decodings=searched_tables(params, known, recorded=True),
        paper=[layer_table.table1(known.layers), paper_tables.table2(shown), paper_tables.table3(shown)],
        costs=[
            run_tables.bleu_matrix(shown),
            run_tables.flops(shown),
            run_tables.operations(shown),
            paper_tables.toolkits(shown),
        ],
        figures=figures_of(known, found, compared) if figures else [],
    )


def searched_tables(params: Mapping, known: Known, recorded: bool) -> list[Table]:
    """The tables of decodings and values on the page: the `recorded` ones, or those that params.yaml selects."""
    found = decodings.tables(params, [each for each in known.decoded if each.recorded == recorded])
    of_values = values.table([each for each in known.values if each.recorded == recorded])
    return [*found, of_values] if of_values else found


def figures_of(known: Known, found: Sequence[Study], compared: Comparison) -> list[Figure]:
    with style():
        return [
            *delta_plot.figures(compared),
            *curves(known.runs, found),
            *(figure for search in known.tuned for figure in searches.figures(search)),
            positional_encoding(),
            *(values.calibration(value) for value in known.values),
            *(tree_plots.figure(trees) for trees in known.trees),
            *(figure for run in known.runs for figure in attention(run)),
        ]


def report(params: Mapping, known: Known) -> dict[str, str]:
    """The text of each file of the report, by its path in the report's folder."""
    content, files = content_of(params, known), {}
    every = [*content.selected, *content.compared, *content.searches]
    every += [*content.recorded, *content.paper, *content.costs, content.deltas, *content.claims]
    every += [decodings.table(params, known.decoded)] if known.decoded else []
    every += [of_values] if (of_values := values.table(known.values)) else []
    in_order = {run.name: run for study in content.studies for run in study.best_first()}  # selected runs first
    summary = run_tables.summary([run for run in in_order.values() if run.scores and not expected_to_fail(run)])
    tables = [kept for table in every if len((kept := table.reproducible()).columns) > 1]  # not tables of names alone
    pictures = overview(content.figures)
    overviews = [headline_table(content.headlines), *content.claims, summary]
    files["README.md"] = readme(overviews, pictures)
    for table in [summary, *tables, run_tables.all_runs(known.runs), run_tables.scores(known.runs)]:
        files[f"{table.name}.csv"] = comma_separated(table)
        if table.name in IN_LATEX:
            files[f"{table.name}.tex"] = latex(table)
    shown = {name: text for name, text in files.items() if name.endswith(".csv")}
    files[PAGE] = page(content, digest(shown))  # pipeline/workflow/results.py compares the digest with the files
    return files | {f"figures/{figure.name}.svg": figure.svg for figure in pictures}


def overview(figures: Sequence[Figure]) -> list[Figure]:
    """The figures that README.md shows. The page embeds all `figures`."""
    kinds = ("deltas", "studies", "runs")
    return [figure for kind in kinds for figure in figures if figure.section == kind][:PICTURES]


def readme(tables: Sequence[Table], figures: Sequence[Figure]) -> str:
    """The overview that a git host shows: the studies, the runs, and a few pictures."""
    intro = (
        "# Results\n\nGenerated by `pipeline/report.py` from score files; never edited by hand. `index.html`, which is "
        "not in git, shows everything, with times and hardware. Each table is a .csv (numbers unrounded), and Tables "
        "1 to 3 are .tex as well. `study-*.csv` hold the runs of a study, `runs.csv` all runs with the hashes of their "
        "data and settings, `scores.csv` every score.\n\nSelected runs are those of params.yaml; recorded runs are kept in "
        "results/. A study whose runs have several test sets is shown in parts, one per test set. The part with the "
        "study's first run has the name of the study. Any other part is named STUDY-CORPUS. Exception: a part without the "
        "first run is named after its corpus if it is the only part with results. `make study` does not list such names. "
        "The table of runs leaves out runs that are expected to fail (post-norm without warm-up); `runs.csv` has them.\n"
    )
    pictures = [
        f"{escape_markdown(figure.caption)}\n\n![{escape_markdown(figure.alt)}](figures/{figure.name}.svg)\n"
        for figure in figures
    ]
    return "\n".join([intro, *(markdown(table) for table in tables), "## Pictures\n", *pictures])


def publish(files: dict[str, str], out: Path) -> None:
    """Write each file atomically, and remove the files of an earlier report that are not in `files`."""
    there = [path.name for path in out.glob("*") if path.suffix != ".partial"]
    if there and not {PAGE, "runs.csv"} & set(there):  # a clone has no index.html
        raise UserError(f"{out} holds files, but no earlier report; choose a new folder or the folder of a report")
    for name, text in files.items():
        with atomic(out / name, "w") as file:
            file.write(text)
    for path in [*out.glob("*"), *out.glob("figures/*")]:
        if path.suffix in SUFFIXES and path.relative_to(out).as_posix() not in files:
            path.unlink()


def main(arguments: argparse.Namespace) -> None:
    params = with_studies(load(), arguments.studies)
    runs = evidence.selected(params, arguments.scores, arguments.times) + evidence.records(params, arguments.results)
    decoded = decodings.selected(params, arguments.scores, arguments.times, arguments.sets)
    decoded += decodings.records(arguments.results)
    known = Known(
        runs=runs,
        layers=arguments.results / "layers/layers.json",
        decoded=decoded,
        sets=arguments.sets,
        values=values.selected(params, arguments.scores) + values.records(arguments.results),
        trees=tree_plots.selected(params, arguments.scores),
        tuned=searches.selected(params, arguments.scores) + searches.records(arguments.results),
    )
    for run in (run.run for run in runs if not run.recorded and not run.parts["training"]):
        if (arguments.scores / run / evidence.PARTS["training"]).exists():
            print(f"{run}: its scores are of other settings or of another corpus, and are left out", file=sys.stderr)
    publish(report(params, known), arguments.out)
    scored = sum(bool(run.scores) for run in runs)
    print(f"{arguments.out / PAGE} written: {count(len(runs), 'run')}, {scored} with scores")


if __name__ == "__main__":
    stage.script(main, "report", __doc__, "scores times sets results studies out")
