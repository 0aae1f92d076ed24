"""What the templates of the report's pages show: all that is known of the runs of params.yaml, and of all runs by study."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.reporting import changes, claims, decodings, pairs, paper_tables, run_tables, studies
from pipeline.reporting.figures import attention, curves, reliability
from pipeline.reporting.figures import changes as changes_plot
from pipeline.reporting.figures.positions import positional_encoding
from pipeline.reporting.figures.style import Figure
from pipeline.reporting.results import Results
from pipeline.reporting.studies import Headline, Study
from pipeline.reporting.tables import Table
from pipeline.settings.params import text_corpus
from pipeline.settings.score_files import content
from pipeline.settings.scoring import scoring
from pipeline.workflow.times import duration

ORIGIN = ["corpus", "model", "trained", "tokens/s", "hardware", "commit", "FLOPs, counted"]  # the facts about a run
ORIGIN += ["FLOPs, by the paper's estimate", "data", "settings"]
Line = tuple[str, str, str]  # a label, a language and a text in it


@dataclass(frozen=True)
class Report:
    """All that a report shows. `files` is the folder of the score files, `sets` that of the evaluation sets."""

    params: Mapping[str, Any]
    results: Results
    files: Path
    sets: Path
    folder: Path  # results/

    @cached_property
    def own(self) -> Results:
        """The results of the runs of params.yaml."""
        return self.results.of(self.results.selected)

    @cached_property
    def studies(self) -> list[Study]:
        return studies.studies(self.params, self.results)

    @cached_property
    def compared(self) -> changes.Comparison | None:
        return changes.comparison(self.studies, self.results, scoring(self.params))

    @cached_property
    def selection(self) -> list[Study]:
        """The runs of params.yaml as studies, one for each text."""
        texts = self.own.runs["corpus"].map(lambda corpus: text_corpus(self.params, corpus))
        groups = self.own.runs.groupby(texts, sort=False).groups.items()
        return [Study(text, self.results.of(names), list(names), {}, {}) for text, names in groups]

    @cached_property
    def headlines(self) -> list[Headline]:
        """Those of the studies with results, then those of the studies that are not done."""
        found = [studies.headline(self.params, study) for study in self.studies]
        if compared := self.compared:
            found = [claims.headline(compared, each) if each.study == compared.study.name else each for each in found]
        return found + studies.not_done(self.params, self.results)

    def own_headlines(self) -> list[Headline]:
        return [studies.headline(self.params, study) for study in self.selection if study.results.scored]

    @cached_property
    def paper(self) -> list[Table]:
        layers = paper_tables.table1(self.folder / "layers/layers.json")
        return [layers, paper_tables.table2(self.results), paper_tables.table3(self.results)]

    def pictures(self) -> list[Figure]:
        """The pictures of README.md."""
        examples = (attention.example(run, self.files / run / "translations") for run in self.results.selected)
        return [*filter(None, [next(filter(None, examples), None), self.changes]), self.positions]

    @cached_property
    def changes(self) -> Figure | None:
        return changes_plot.figure(self.compared) if self.compared else None

    @cached_property
    def positions(self) -> Figure:
        return positional_encoding()

    def against_first(self, study: Study) -> Table | None:
        return pairs.pairs_table(study, self.files, self.sets, scoring(self.params))

    def of_kind(self, kind: str, selected: bool) -> dict[str, Any]:
        """The decodings, values or searches of params.yaml, or the others."""
        names = {*self.params[kind], *self.params["reverse_values"]}  # these are among the values
        return {name: each for name, each in getattr(self.results, kind).items() if (name in names) == selected}

    def decodings(self, selected: bool) -> Iterator[Table]:
        return decodings.decodings_tables(self.params, self.of_kind("decodings", selected))

    def curves(self) -> list[Figure]:
        known = self.own.curves.keys()
        together = [curves.dev_losses(study) for study in self.selection if len(known & set(study.runs)) > 1]
        return [*together, *curves.losses(self.own)]

    def samples(self) -> dict[tuple[str, str, str], list[Line]]:
        """The first sentences of each test set by corpus, source and reference, with the translations by our runs."""
        found: dict[tuple[str, str, str], list[Line]] = {}
        for run in self.own.scored:
            corpus, (source, target) = self.own.runs.loc[run, ["corpus", "languages"]]
            for each in content(self.files / run / "translations/samples.json") or []:
                lines = [("source", source, each["source"]), ("reference", target, each["reference"])]
                lines = found.setdefault((corpus, each["source"], each["reference"]), lines)
                lines.append((run, target, each["translation"]))
        return found

    def attention(self) -> Iterator[tuple[str, str, Sequence[Figure]]]:
        """The run, the sentence and the maps of each sentence with attention weights."""
        for run in self.own.runs.index:
            for text, figures in attention.of_run(run, self.files / run / "translations").items():
                yield run, text, figures

    def smoothing(self) -> tuple[Table, list[Figure]] | None:
        """What label smoothing does, and how far the token probabilities with and without it can be believed."""
        if not (compared := self.compared) or not (table := claims.of_smoothing(compared)):
            return None
        sides = claims.smoothing(compared) or ()
        return table, reliability.tokens(compared.study.results.of([run for side in sides for run in side]), "smoothing")


def origins(results: Results) -> Iterator[tuple[str, str, dict[str, Any], Table | None]]:
    """The origin of the numbers of each run: its name, a line, the facts by label, and its scores with their signatures."""
    every = run_tables.all_scores(results)
    scores = {run: frame.drop(columns="run") for run, frame in every.frame.groupby("run")}
    for name, run in results.runs.iterrows():
        trained, own = "not trained", None
        if steps := run["trained steps"]:
            trained = f"{steps:,} steps" + (f" in {duration(run['seconds'])}" if run["seconds"] else "")
            own = replace(every, name=f"scores-{name}", title=f"Scores of {name}", frame=scores[name])
        model = ", ".join(filter(None, (run["model"], run_tables.described(run["differences"]))))
        flops = run["cost flops"] or run["cost reason"]
        known = {**run, "model": model, "trained": trained, "FLOPs, by the paper's estimate": flops}
        line = " · ".join(filter(None, (run["corpus"], trained, run["hardware"], (run["commit"] or "")[:10])))
        yield name, line, {key: "–" if pd.isna(known[key]) else known[key] for key in ORIGIN}, own
