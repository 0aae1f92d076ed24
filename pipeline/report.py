"""Write the report: tables beside the paper's, figures, and two pages for the browser.

    python -m pipeline.report --results results --scores scores --sets data/sets --times work/times \\
        --studies studies.yaml --out reports

Reads the result files of all runs, decodings, values and searches in results/. Of those that params.yaml selects, it also
reads attention weights in scores/ and the test sets in data/sets/. Missing values become dashes.

Writes into reports/: README.md with pictures; Tables 1 to 3, runs, scores, decodings, claims, Table 3 at two scales and
other implementations as .csv, Tables 1 to 3 as .tex as well; index.html with the runs of params.yaml, recorded.html with
the studies of all runs, and translations.html with test translations beside the references; files.txt with the names of
these files. Removes the files that an earlier report has written by its files.txt and this one does not write, and no
others.

The pages also show times, hardware and commits, so git and DVC ignore them. The other files show none of these: equal
results give equal files. The times are in results/times/, which is no output; those of trainings here come from --times.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pipeline.reporting import run_tables
from pipeline.reporting.figures import style
from pipeline.reporting.page import count, page, views
from pipeline.reporting.results import Results, load_results
from pipeline.reporting.studies import headline_table
from pipeline.reporting.tables import latex
from pipeline.running import stage
from pipeline.running.times import read_times
from pipeline.settings.blocks import with_studies
from pipeline.settings.params import load
from transformer.config.reading import UserError
from transformer.files import digest, read_json, write_file, write_json, write_lines

PAGE, RECORDED, TRANSLATED = "index.html", "recorded.html", "translations.html"
LISTED = "files.txt"  # the names of the files of a report


def files_of(params: Mapping, results: Results, scores: Path, folder: Path, sets: Path) -> dict[str, str]:
    """The text of each file of the report, by its path in the report's folder. The arguments are those of `views`."""
    with style():
        shown = views(params, results, scores, folder, sets)
        paper, claims = [shown[name] for name in ("table1", "table2", "table3")], shown["claims"]
        tables = [*paper, run_tables.all_runs(results), run_tables.all_scores(results), shown["toolkits"]]
        tables += [claims, *shown["scales"], run_tables.decodings_table(params, results.decodings)]
        files = {f"{table.name}.csv": table.csv for table in tables if table}
        files |= {f"{table.name}.tex": latex(table) for table in paper}
        for name, runs in ((PAGE, results.selected), (RECORDED, results.runs.index), (TRANSLATED, ())):
            files[name] = page(name, **shown, runs=set(runs))
    figures = [shown[name] for name in ("changes", "scales_plot", "example") if shown[name]]
    files |= {f"figures/{figure.name}.svg": figure.svg for figure in figures}
    # The claims without their last columns, for which a page of text is too narrow
    narrow = [replace(claims, frame=claims.frame.loc[:, :"the paper's change"])] if claims else []
    studies = headline_table(shown["headlines"])
    files["README.md"] = page("summary.md", tables=[*narrow, *shown["scales"]], figures=figures, studies=studies)
    return files


def publish(files: Mapping[str, str], out: Path) -> None:
    """Write each file atomically, and remove the files that an earlier report has written and that are not in `files`.

    Raises UserError if a file that no report has written would be replaced. The list has each file before it is written,
    for the case of a kill.
    """
    listed = out / LISTED
    earlier = set(listed.read_text(encoding="utf-8").split("\n")) - {""} if listed.is_file() else set()
    if not earlier and any(path.suffix != ".partial" for path in out.glob("*")):
        raise UserError(f"{out} holds files, but no {LISTED} of an earlier report; restore it, or choose a new folder")
    if others := [name for name in files if name not in earlier and (out / name).exists()]:
        raise UserError(f"{out / others[0]} is not of an earlier report and would be replaced; move it elsewhere")
    write_lines(listed, sorted({*earlier, *files}))
    for name, text in files.items():
        write_file(out / name, text)
    for name in earlier - set(files):
        if (path := out / name).resolve().is_relative_to(out.resolve()):
            path.unlink(missing_ok=True)
    write_lines(listed, sorted(files))


def keep_times(runs: Iterable[str], scores: Path, times: Path, results: Path) -> None:
    """Write the times of the runs trained on this machine into results/times/, with the digests of their trainings.

    The stage `result` cannot write them: DVC does not run it if an equal result, made elsewhere, is in git.
    """
    for run in runs:
        files = {"training": scores / run / "training.json", "decoding": scores / run / "translations/translations.json"}
        known = {part: read_times(times / run / f"{part}.json", file) for part, file in files.items()}
        if known["training"]:
            of = {"training_sha256": digest(read_json(files["training"]))}
            write_json(results / "times" / f"{run}.json", of | known)


def main(arguments: argparse.Namespace) -> None:
    params = with_studies(load(), arguments.studies)
    keep_times(params["runs"], arguments.scores, arguments.times, arguments.results)
    results = load_results(params, arguments.results)
    publish(files_of(params, results, arguments.scores, arguments.results, arguments.sets), arguments.out)
    own = results.of(results.selected)
    print(f"{arguments.out / PAGE} written: {count(len(own.runs), 'run')}, {len(own.scored)} with scores")


if __name__ == "__main__":
    stage.script(main, "report", __doc__, "results scores sets times studies out")
