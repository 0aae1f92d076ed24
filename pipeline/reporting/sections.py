"""The content of the report's two pages: all that is known of the runs of params.yaml, and of all runs by study."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.reporting import changes as changes_of
from pipeline.reporting import claims, decodings, pairs, paper_tables, run_tables, searches
from pipeline.reporting import studies as studies_of
from pipeline.reporting.figures import attention, curves, reliability, trees
from pipeline.reporting.figures import changes as changes_plot
from pipeline.reporting.figures import searches as search_plots
from pipeline.reporting.figures.positions import positional_encoding
from pipeline.reporting.figures.style import Figure
from pipeline.reporting.page import Cards, Fold, Pictures, Sample, Section, origin
from pipeline.reporting.results import Results
from pipeline.reporting.seeds import alike
from pipeline.reporting.studies import Study, study_table, succeeded
from pipeline.reporting.tables import Table
from pipeline.settings.params import text_corpus
from pipeline.settings.score_files import within
from pipeline.settings.scoring import scoring
from pipeline.settings.studies import described
from transformer.files import read_json


@dataclass(frozen=True)
class Report:
    """All that a report shows. `files` is the folder of the score files, `sets` that of the evaluation sets."""

    params: Mapping[str, Any]
    results: Results
    files: Path
    sets: Path
    folder: Path  # results/

    @cached_property
    def studies(self) -> list[Study]:
        return studies_of.studies(self.params, self.results)

    @cached_property
    def compared(self) -> changes_of.Comparison | None:
        return changes_of.comparison(self.studies, scoring(self.params))

    @cached_property
    def selection(self) -> list[Study]:
        """The runs of params.yaml: one study if studies.yaml has one with all of them, else one for each text."""
        runs = self.results.selected
        for name, entry in self.params["studies"].items():
            if set(runs) <= set(entry.get("runs", ())):
                return [Study(name, self.results.of(runs), runs, {}, {})]
        texts: dict[str, list[str]] = {}
        for run in runs:
            texts.setdefault(text_corpus(self.params, self.results.runs.at[run, "corpus"]), []).append(run)
        return [Study(text, self.results.of(names), names, {}, {}) for text, names in texts.items()]

    @cached_property
    def headlines(self) -> list[studies_of.Headline]:
        """Those of the studies with results, then those of the studies that are not done."""
        found = [studies_of.headline(self.params, study) for study in self.studies]
        if compared := self.compared:
            found = [claims.headline(compared, each) if each.study == compared.study.name else each for each in found]
        return found + studies_of.not_done(self.params, self.results)

    @cached_property
    def paper(self) -> list[Table]:
        shown = succeeded(self.results)
        layers = paper_tables.table1(self.folder / "layers/layers.json")
        return [layers, paper_tables.table2(shown), paper_tables.table3(shown)]

    def chosen(self, *blocks: str) -> list[str]:
        """The names in these blocks of params.yaml."""
        return [name for block in blocks for name in self.params[block]]

    def pictures(self) -> list[Figure]:
        """The pictures of README.md."""
        examples = (attention.example(run, self.files / run / "translations") for run in self.results.selected)
        found = [example for example in [next(filter(None, examples), None)] if example]
        return [*found, *([changes_plot.figure(self.compared)] if self.compared else []), positional_encoding()]


def of_kinds(report: Report, selected: bool) -> Iterator[Section]:
    """The sections of decodings, values and searches: those of params.yaml, or the others."""

    def of(kind: str, *blocks: str) -> dict[str, Any]:
        names, known = report.chosen(*blocks), vars(report.results)[kind]
        return {name: known[name] for name in known if (name in names) == selected}

    decoded, values, tuned = (
        of("decodings", "decodings"),
        of("values", "values", "reverse_values"),
        of("searches", "searches"),
    )
    yield Section("decodings", "Decodings", decodings.tables(report.params, decoded))
    tables = [searches.value_table(values)] if values else []
    drawn = [reliability.value(name, content) for name, content in values.items()]
    paths = {name: report.files / "decodings" / name / "search.json" for name in decoded if selected}
    drawn += [trees.figure(name, found) for name, path in paths.items() if path.exists() and (found := read_json(path))]
    yield Section("values", "Values and search trees", [*tables, *([Pictures(drawn)] if drawn else [])])
    items: list[Any] = []
    for content in tuned.values():
        items += [searches.search_table(content), Pictures(search_plots.figures(content))]
    yield Section("searches", "Searches for settings", items)


def costs(results: Results) -> list[Fold]:
    tables = [run_tables.means(results), *run_tables.scored_tables(results)]
    return [Fold(table.title, [table], id=table.name) for table in tables if table]


def own_sections(report: Report) -> Iterator[Section]:
    """The sections of the page about the runs of params.yaml."""
    results, settings = report.results.of(report.results.selected), scoring(report.params)
    scored = [study for study in report.selection if study.results.scored]
    unfinished = [each for each in report.headlines if not each.trained and each.study in ("paper", "europarl")]
    yield Section(
        "summary", "At a glance", [Cards([*(studies_of.headline(report.params, each) for each in scored), *unfinished])]
    )
    items: list[Any] = []
    for study in report.selection:
        table = study_table(study)
        items.append(replace(table, notes=[*table.notes, *recorded_before(study.results, report.folder)]))
        if found := pairs.pairs(study, report.files, report.sets, settings):
            items += [pairs.table(found), *(differing(pair) for pair in found if pair.sentences)]
    yield Section("selected", "Runs of params.yaml", items)
    yield from of_kinds(report, selected=True)
    others = paper_tables.toolkits(report.results)
    tables: list[Any] = [*report.paper[:2], paper_tables.merged(report.paper[2])]
    for place, table in enumerate(tables):
        if table.ours and table.frame[table.ours].isna().all():
            tables[place] = Fold(table.title, [table], "published only: no run of ours fills a row", id=table.name)
    yield Section("paper", "The paper's tables", [*tables, Fold(others.title, [others], id=others.name)])
    losses = [curves.loss(results, seeds) for seeds in alike(results.runs) if set(seeds) & set(results.curves)]
    together = [
        curves.dev_losses(study) for study in report.selection if len(study.results.curves.keys() & set(study.runs)) > 1
    ]
    drawn = [*together, *losses, *([curves.learning_rates(results)] if losses else [])]
    yield Section("curves", "Training curves", [Pictures(drawn)] if drawn else [])
    believed = reliability.tokens(results)
    yield Section("reliability", "Reliability", [Pictures(believed)] if believed else [])
    yield Section("costs", "Measures and costs", costs(results))
    yield Section("positions", "Positions", [Pictures([positional_encoding()])])
    yield Section("samples", "Translations", list(samples(report, results)))
    maps = {run: attention.of_run(run, report.files / run / "translations") for run in results.runs.index}
    yield Section(
        "attention",
        "Attention",
        [
            Fold(text, [Pictures(figures, maps=True)], about=run)
            for run, sentences in maps.items()
            for text, figures in sentences.items()
        ],
    )
    yield Section("runs", "Origin of the numbers", [origin(results, run) for run in results.runs.index])


def recorded_sections(report: Report) -> Iterator[Section]:
    """The sections of the page about all runs, by study."""
    yield Section("summary", "Studies at a glance", [Cards(report.headlines)])
    if compared := report.compared:
        items = [Pictures([changes_plot.figure(compared)]), claims.table(compared), *claims.of_smoothing(compared)]
        yield Section("changes", "Ours beside the paper", items)
    for study in report.studies:
        known = study.name in report.params["studies"]
        about = [described(report.params, study.name)] if known else []
        groups = alike(study.results.runs)
        losses = Pictures([curves.loss(study.results, seeds) for seeds in groups])
        items = [*about, study_table(study), Pictures([curves.dev_losses(study), *reliability.tokens(study.results)])]
        yield Section(f"of-{study.name}", study.name, [*items, Fold("Each run by itself, with all of its seeds", [losses])])
    yield from of_kinds(report, selected=False)
    shown, others = succeeded(report.results), paper_tables.toolkits(report.results)
    tables = [*costs(shown), Fold(others.title, [others], id=others.name)]
    yield Section("costs", "Measures and costs", tables)
    yield Section("rates", "Learning rates", [Pictures([curves.learning_rates(shown)])])
    yield Section("runs", "Origin of the numbers", [origin(report.results, run) for run in report.results.runs.index])


def differing(pair: pairs.Pair) -> Fold:
    """The sentences in which a run and the base of its study differ most."""
    source, target = pair.languages
    found = [
        Sample(
            [
                ("source", source, each.source),
                ("reference", target, each.reference),
                (pair.base, target, each.of_base),
                (f"{pair.run} {each.difference:+.1f} chrF", target, each.of_run),
            ]
        )
        for each in pair.sentences
    ]
    return Fold(f"{pair.run} against {pair.base}: the sentences that differ most", found)


def samples(report: Report, results: Results) -> Iterator[str | Sample]:
    """The first sentences of each test set, with the translations by the runs on it."""
    found: dict[tuple[str, str, str], list[tuple[str, str, str]]] = {}
    for run, row in results.runs.iterrows():
        path = report.files / str(run) / "translations/samples.json"
        for each in read_json(path) if path.exists() and row["languages"] else []:
            source, target = row["languages"]
            lines = [("source", source, each["source"]), ("reference", target, each["reference"])]
            place = (row["corpus"], each["source"], each["reference"])
            found.setdefault(place, lines).append((str(run), target, each["translation"]))
    corpora = dict.fromkeys(corpus for corpus, *_ in found)
    for corpus in corpora:
        yield corpus
        yield from (Sample(lines) for place, lines in found.items() if place[0] == corpus)


def recorded_before(results: Results, folder: Path) -> list[str]:
    """A note on the runs whose sacreBLEU differs from that in the last commit."""
    changed = []
    for run in results.scored:
        shown = subprocess.run(["git", "show", f"HEAD:./{folder / run}.json"], capture_output=True, check=False)
        before = (
            within(json.loads(shown.stdout), "score", "test", "average", "metrics", "bleu-13a", "score")
            if not shown.returncode
            else None
        )
        now = results.score(run, "bleu-13a", "test", "average")
        if before and now and f"{before:.2f}" != f"{now.score:.2f}":
            changed.append(f"{run} {before:.2f}")
    return [f"sacreBLEU in the last commit: {', '.join(changed)}."] if changed else []
