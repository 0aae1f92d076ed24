"""reports/index.html: the whole report on one page that embeds its pictures and needs no network and no script.

The page also shows times, hardware and commits, which the report's other files leave out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.headlines import Headline
from pipeline.reporting.page_style import STYLE
from pipeline.reporting.page_template import environment
from pipeline.reporting.pairs import Pair
from pipeline.reporting.plots import Figure
from pipeline.reporting.run_tables import scores
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import DASH, Column, Table
from pipeline.reporting.variations import described, merged

SECTIONS = {
    "summary": "At a glance",
    "deltas": "Ours beside the paper",
    "selected": "Runs of params.yaml",
    "compared": "Side by side",
    "decodings": "Decodings",
    "searches": "Searches for settings",
    "recorded": "Recorded runs",
    "paper": "The paper's tables",
    "curves": "Training curves",
    "costs": "Measures and costs",
    "schedules": "Schedule and positions",
    "search": "Values and search trees",
    "samples": "Translations",
    "attention": "Attention",
    "runs": "Origin of the numbers",
}


@dataclass(frozen=True)
class Content:
    """The content of the page. The page folds Tables 2 and 3 while they have no score of ours."""

    runs: Sequence[Evidence]
    studies: Sequence[Study]
    headlines: Sequence[Headline]
    selected: Sequence[Table]
    compared: Sequence[Table]
    claims: Sequence[Table]
    deltas: Table
    decodings: Sequence[Table]
    pairs: Sequence[Pair]
    searches: Sequence[Table]
    recorded: Sequence[Table]
    recorded_decodings: Sequence[Table]
    paper: Sequence[Table]
    costs: Sequence[Table]
    figures: Sequence[Figure]


def page(content: Content, digest: str = "") -> str:
    """Return the page as HTML. `digest` identifies the results that it shows."""
    figures: dict[str, list[Figure]] = {
        key: [] for key in ("deltas", "studies", "searches", "schedules", "search", "attention", "runs")
    }
    for figure in content.figures:
        figures[figure.section].append(figure)
    corpora = samples(content.runs)
    present = {**vars(content), **figures, "curves": figures["studies"] or figures["runs"], "samples": corpora}
    present["summary"], present["searches"] = content.headlines, content.searches
    present["runs"], present["recorded"] = content.runs, content.recorded or content.recorded_decodings
    return (
        environment()
        .get_template("page")
        .render(
            style=STYLE,
            lede=lede(content.runs, content.headlines),
            contents=[(key, title) for key, title in SECTIONS.items() if present[key]],
            content=content,
            digest=digest,
            paper=[merged(table) if table.name == "table3" else table for table in content.paper],
            slugs={run.name: run.slug for run in content.runs},
            figures=figures,
            corpora=corpora,
            origins=[origin(run) for run in content.runs],
        )
    )


def lede(runs: Sequence[Evidence], headlines: Sequence[Headline]) -> str:
    """Return the introduction of the page: the number of runs and, until they are done, of the paper's trainings."""
    own, recorded = ([run for run in runs if run.recorded == kept] for kept in (False, True))
    of_paper = [f" {each.figure} {each.says}." for each in headlines if (each.study, each.origin) == ("paper", "not done")]
    return (
        f"{count(len(own), 'run')} of params.yaml, {sum(bool(run.scores) for run in own)} of them scored; "
        f"{len(recorded)} recorded earlier.{''.join(of_paper)}"
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def samples(runs: Sequence[Evidence]) -> list[dict[str, Any]]:
    """The first sentences of each corpus's test set, with the translations by the runs on that corpus."""
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
    line = [run.corpus, trained(run, timing), timing.get("hardware"), (timing.get("commit") or "")[:10]]
    return {
        "run": run,
        "line": " · ".join(filter(None, line)),
        "facts": facts(run, timing),
        "hashes": hashes,
        "scores": table,
    }


def trained(run: Evidence, timing: Mapping[str, Any]) -> str:
    if not run.parts["training"]:
        return "not trained"
    steps = Column("", "count").show(run.at("training", "steps"))
    return f"{steps} steps" + (f" in {Column('', 'duration').show(timing['seconds'])}" if timing else "")


def facts(run: Evidence, timing: Mapping[str, Any]) -> dict[str, str]:
    return {
        "corpus": run.corpus,
        "model": f"{run.model}, {described(run.differences)}" if run.differences else run.model,
        "trained": trained(run, timing) if run.parts["training"] else DASH,
        "tokens/s": Column("", "count").show(timing.get("tokens_per_second")),
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
