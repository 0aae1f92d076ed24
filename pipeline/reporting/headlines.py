"""The headlines of studies: the result of a study, or the number of its runs that have been trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from pipeline.reporting import claims
from pipeline.reporting.deltas import Comparison
from pipeline.reporting.evidence import Evidence, alike, over_seeds, text_entry
from pipeline.reporting.lines import common_name
from pipeline.reporting.published import TOOLKITS
from pipeline.reporting.studies import Study, catalogue
from pipeline.reporting.tables import Column, Table, interval
from pipeline.settings.addresses import DEMONSTRATION
from pipeline.settings.studies import described


@dataclass(frozen=True)
class Headline:
    """The text of a card of the report. `figure` is printed large, `says` explains it, and `note` adds details."""

    study: str
    trained: int
    runs: int
    figure: str
    says: str
    note: str = ""
    origin: Literal["selected", "recorded", "not done"] = "selected"

    @property
    def progress(self) -> str:
        return f"{self.trained} of {self.runs}"


def headlines(params: Mapping[str, Any], studies: Sequence[Study], compared: Comparison) -> list[Headline]:
    """Return the headlines of the studies with results, then those of the studies of params.yaml that are not done.

    A study without results is `not done` if one of its runs has no scores. It gets no headline if a larger study that is
    `not done` contains all its runs.
    """
    found, known = {}, catalogue(params)
    every = [run for study in studies for run in study.runs]
    trained, selected = {run.run for run in every if run.scores}, {run.run for run in every if not run.recorded}
    # In a study that params.yaml selects, a record does not count for a selected run of its name.
    current = trained - selected | {run.run for run in every if run.scores and not run.recorded}
    for study in studies:
        if any(run.scores for run in study.runs):
            runs = {run.run for run in study.runs} | set(known.get(study.name, ()))  # also its runs on other corpora
            counted = (trained if study.recorded else current) & runs
            found[study.name] = headline(params, study, len(counted), len(runs), compared)
    missing = {name: runs for name, runs in known.items() if name not in found and not set(runs) <= trained}
    whole = [name for name, runs in missing.items() if not any(set(runs) < set(others) for others in missing.values())]
    whole.sort(key=lambda name: -len(missing[name]))
    return [
        *found.values(),
        *(not_done(params, name, len(trained & set(missing[name])), len(missing[name])) for name in whole),
    ]


def not_done(params: Mapping[str, Any], name: str, trained: int, runs: int) -> Headline:
    says = f"training{'s' * (runs > 1)} done ({described(params, name) or name})"
    return Headline(name, trained, runs, f"{trained} of {runs}", says, origin="not done")


def headline(params: Mapping[str, Any], study: Study, trained: int, runs: int, compared: Comparison) -> Headline:
    scored = [run for run in study.best_first() if run.scores]
    figure, says, note = best(scored, study.corpus)
    if DEMONSTRATION in str(text_entry(params, study.corpus)):
        says += ", whose sentences a grammar generates"
    seeds = "One seed per run. " if all(len(same) == 1 for same in alike(scored)) else ""
    decided = of_table3(compared) if compared.study and study.name == compared.study.name else []
    if any(found.p is not None for found in decided):
        others = [found for found in decided if found.result != claims.HOLDS]
        figure = f"{len(decided) - len(others)} of {len(decided)}"
        says = "changes of Table 3 are found to have the effect on BLEU that the paper claims"
        rest = [f"{found.own.change}: {found.result}." for found in others]
        note = " ".join([*rest, f"Models on {study.corpus}; {compared.sample()}. Failed trainings are not counted."])
    elif study.claim():
        figure, says = perplexities(scored) or (figure, says)
        note = f"{seeds}Published: {study.claim()}"
    elif len({run.corpus for run in scored if run.measure("bleu-13a")}) > 1:  # training texts, as for back-translation
        high, *_, low = ((run.run, score.score) for run in scored if (score := run.measure("bleu-13a")))
        figure, note = f"{low[1]:.1f} to {high[1]:.1f}", seeds.strip()
        says = f"BLEU on the same test set, from {low[0]} to {high[0]}"
    return Headline(study.name, trained, runs, figure, says, note, origin="recorded" if study.recorded else "selected")


def of_table3(compared: Comparison) -> list[claims.Finding]:
    """The findings about changes of Table 3, without failed trainings, which say nothing about their setting."""
    of_rows = [own for delta in compared.deltas for own in delta.ours]
    found = claims.findings(compared)
    return [each for each in found if each.own in of_rows and each.result != claims.THE_TRAINING_FAILED]


def best(scored: Sequence[Evidence], corpus: str) -> tuple[str, str, str]:
    first, metric = scored[0], "bleu-13a"
    of_others = [other for other in TOOLKITS if first.is_model_of(other.like, other.corpus)]
    says, note = f"BLEU on the test set of {corpus}", ""
    if of_others:
        other = max((each for each in of_others if each.metric == of_others[-1].metric), key=lambda each: each.bleu)
        metric, says = other.metric, f"BLEU, {other.measure}, on {other.test_set}"
        note = f" Published: {other.bleu} ({other.name}, {other.source.split(',')[0]})."
    scores = {run.name: score for run in scored if (score := run.measure(metric))}
    groups = alike(run for run in scored if run.name in scores)
    if not groups:
        return "–", says, note
    seeds = max(groups, key=lambda runs: fmean(scores[run.name].score for run in runs))
    highest = f"Highest of {len(groups)}: " if len(groups) > 1 else ""
    if mean := over_seeds(seeds, metric):
        of = f"{highest}{common_name(seeds)}, {mean}" if highest else str(mean).capitalize()
        return f"{mean.score:.1f}", says, f"{of}.{note}"
    score = scores[seeds[0].name]
    bounds = interval(score, 1)
    of = f"{highest}{seeds[0].run}, one seed{f', 95% interval {bounds}' if bounds else ''}"
    return f"{score.score:.1f}", says, f"{of}.{note}"


def perplexities(scored: Sequence[Evidence]) -> tuple[str, str] | None:
    """Return the `figure` and `says` of a headline that states the dev perplexities, or None if none is known.

    Studies of a published claim use it, because their BLEU says little about the claim.
    """
    of_run = {run.run: run.at("translations", "dev", "last", "perplexity") for run in scored}
    known = sorted((value, run) for run, value in of_run.items() if value)
    if not known:
        return None
    each = ", ".join(f"{run} {value:,.1f}" for value, run in known)
    return f"{known[0][0]:,.1f} to {known[-1][0]:,.1f}", f"dev perplexity of the last checkpoint: {each}"


def table(found: Sequence[Headline]) -> Table:
    columns = [Column("study"), Column("trained"), Column("result", "given"), Column("what it is"), Column("runs")]
    rows = []
    for each in found:
        figure = None if each.origin == "not done" else each.figure
        rows.append([each.study, each.progress, figure, f"{each.says}. {each.note}".strip(), each.origin])
    return Table("studies", "Studies", columns, rows)
