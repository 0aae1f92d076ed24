"""reports/index.html: the whole report on one page that embeds its pictures and needs no network and no script.

The page also shows times, hardware and commits, which the report's other files leave out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.page_style import STYLE
from pipeline.reporting.page_template import environment
from pipeline.reporting.run_tables import scores
from pipeline.reporting.tables import DASH, Column, Table
from pipeline.reporting.variations import described

if TYPE_CHECKING:
    from pipeline.reporting.plots import Figure

SECTIONS = {
    "curves": "Training curves",
    "layers": "Time of a layer",
    "schedules": "Learning rate and positional encoding",
    "attention": "Attention, every layer and head",
    "samples": "Translations of the test set",
    "runs": "Every run, and the origin of its numbers",
}


def page(runs: Sequence[Evidence], tables: Sequence[Table], figures: Sequence["Figure"]) -> str:
    """The whole page; tables and figures in their order on it."""
    of_section: dict[str, list[Figure]] = {key: [] for key in ("studies", "layers", "schedules", "attention", "runs")}
    for figure in figures:
        of_section[figure.section].append(figure)
    corpora = samples(runs)
    present = {**of_section, "curves": of_section["studies"] or of_section["runs"], "samples": corpora, "runs": [True]}
    contents = [(table.name, table.title) for table in tables]
    contents += [(key, title) for key, title in SECTIONS.items() if present[key]]
    return (
        environment()
        .get_template("page")
        .render(
            style=STYLE,
            lede=lede(runs),
            contents=contents,
            tables={table.name: table for table in tables},
            slugs={run.name: run.slug for run in runs},
            figures=of_section,
            corpora=corpora,
            origins=[origin(run) for run in runs],
        )
    )


def lede(runs: Sequence[Evidence]) -> str:
    recorded, scored = sum(run.recorded for run in runs), sum(bool(run.scores) for run in runs)
    return (
        f"{count(len(runs), 'run')}, {scored} of them scored, {recorded} recorded earlier. The end of the page gives the "
        "origin of each run's numbers: commit, data, settings, hardware and signatures."
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def samples(runs: Sequence[Evidence]) -> list[dict[str, Any]]:
    """The first sentences of each corpus's test set, with the translation of each of its runs."""
    corpora = []
    for corpus in dict.fromkeys(run.corpus for run in runs if run.samples):
        of_corpus = [run for run in runs if run.corpus == corpus]
        sentences: dict[tuple[str, str], dict[str, str]] = {}
        for run in of_corpus:
            for sample in run.samples:
                pair = (sample.get("source", ""), sample.get("reference", ""))
                sentences.setdefault(pair, {})[run.name] = sample.get("translation", "")
        languages = next((run.languages for run in of_corpus if run.languages), ("", ""))
        corpora.append({"name": corpus, "languages": languages, "sentences": sentences})
    return corpora


def origin(run: Evidence) -> dict[str, Any]:
    """The origin of a run's numbers, and all of its scores with their signatures."""
    table = dataclasses.replace(scores([run]).without("run"), title=f"Scores of {run.name}", grouped=False)
    timing = run.parts["timing"] or {}
    hashes = {
        "commit": timing.get("commit"),
        "data": run.at("training", "data_sum"),
        "settings": run.at("training", "settings_sha256"),
    }
    return {"run": run, "facts": facts(run, timing), "hashes": hashes, "scores": table}


def facts(run: Evidence, timing: Mapping[str, Any]) -> dict[str, str]:
    count = Column("", "count")
    time = ""
    if timing:
        time = f" in {Column('', 'duration').show(timing['seconds'])}, {count.show(timing.get('tokens_per_second'))} tokens/s"
    return {
        "corpus": run.corpus,
        "model": f"{run.model}, {described(run.differences)}" if run.differences else run.model,
        "trained": f"{count.show(run.at('training', 'steps'))} steps{time}" if run.parts["training"] else DASH,
        "hardware": Column("").show(timing.get("hardware")),
        "FLOPs": flops(run),
    }


def flops(run: Evidence) -> str:
    column = Column("", "power")
    counted, reason = run.at("flops", "analytic", "training_flops"), run.cost.reason
    return (
        f"{column.show(counted)} counted, {column.show(run.cost.flops)} by the paper's estimate"
        f"{f' ({reason})' if reason else ''}"
    )
