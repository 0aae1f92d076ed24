"""Studies of studies.yaml as sections of the report: a table of the runs, a headline, and what the literature says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean
from typing import Any

from pipeline.reporting.paper_tables import as_published
from pipeline.reporting.published import BASE, LOWER_CASED, SETTINGS, TOKENISED, TOOLKITS
from pipeline.reporting.results import LAST, TEST, Mean, Results
from pipeline.reporting.tables import Table, interval, table
from pipeline.scoring.bleu import HEADLINE
from pipeline.settings.addresses import DEMONSTRATION
from pipeline.settings.blocks import described
from pipeline.settings.score_files import rounded

COMPARED = ("corpus", "model", *BASE, "seed")  # the settings that a table of runs has if they differ
FIRST = {HEADLINE: "sacreBLEU", TOKENISED: "BLEU of lower-cased text"}  # the first measure of a run, by its text


@dataclass(frozen=True)
class Study:
    """The runs of a study that have results, in its order. The others are compared with the first.

    `planned` has the names of all runs of the study. `rows` maps a run to the key of its row of Table 3, and `against` a
    run to the run with which it is compared, if this is not the first. Both may name runs of other studies.
    """

    name: str
    results: Results
    planned: Collection[str]
    rows: Mapping[str, str]
    against: Mapping[str, str]

    @property
    def runs(self) -> list[str]:
        return list(self.results.runs.index)

    @property
    def corpus(self) -> str:
        """The corpus of the first run."""
        return self.results.runs["corpus"].iloc[0]

    def seeds(self, run: str) -> list[str]:
        """The run, and the runs that differ from it in the seed only."""
        return next((same for same in self.results.groups if run in same), [run])

    def caveat(self) -> str:
        """A warning if the runs were trained on different data, or an empty text."""
        if self.results.runs["corpus"].nunique() > 1:
            return "Perplexities can be compared only between models with equal vocabularies."
        several = self.results.runs["data"].nunique() > 1
        return "Not all runs were trained on the same data, which also affects their scores." if several else ""

    @property
    def measure(self) -> str:
        """The first measure of the first run."""
        return TOKENISED if self.corpus == LOWER_CASED else HEADLINE

    def best_first(self) -> list[str]:
        """The runs by falling BLEU on the test set; runs without a score come last."""
        scores = self.results.at(self.measure, *TEST)["score"]
        return sorted(self.runs, key=lambda run: -scores.get(run, -1))


def studies(params: Mapping[str, Any], results: Results) -> list[Study]:
    """The studies with results, without those whose results a larger one has. Runs of no study form the study `others`."""
    planned = {run for study in params["studies"].values() for run in study.get("runs", ())}
    entries = {**params["studies"], "others": {"runs": [run for run in results.scored if run not in planned]}}
    known = {name: [run for run in study.get("runs", ()) if run in results.scored] for name, study in entries.items()}
    # Of studies with the same results, the one with the fewest planned runs comes first and is kept.
    kept = largest({name: known[name] for name in sorted(known, key=lambda name: len(entries[name].get("runs", ())))})
    return [
        Study(name, results.of(known[name]), *(entry.get(key) or {} for key in ("runs", "rows", "against")))
        for name, entry in entries.items()
        if name in kept
    ]


def largest(studies: Mapping[str, Sequence[str]]) -> list[str]:
    """The studies with runs that are not all in a larger one, or in an earlier one of the same size; the largest first."""
    kept: list[str] = []
    for name in sorted(filter(studies.get, studies), key=lambda name: -len(studies[name])):
        if not any(set(studies[name]) <= set(studies[other]) for other in kept):
            kept.append(name)
    return kept


def study_table(study: Study) -> Table:
    """The runs of a study, best first, with the settings in which they differ."""
    results, runs = study.results, study.results.runs
    measures = {name: label for name, label in FIRST.items() if len(results.at(name, *TEST))} or {HEADLINE: FIRST[HEADLINE]}
    varied = [key for key in COMPARED if runs[key].nunique(dropna=False) > 1]
    settings = runs[varied].rename(columns={key: label for label, key in SETTINGS.items()}).astype(str)
    settings[1:] = settings[1:].mask(settings[1:] == settings.iloc[0], "")
    frame = results.columns({f"test {label}": (name, *TEST) for name, label in measures.items()}).join(settings)
    frame = frame.join(results.columns({f"dev {label}, last": (name, *LAST) for name, label in measures.items()}))
    frame = frame.join(runs[["dev PPL, last", "accuracy", "calibration error", "parameters"]])
    note = (
        f"Corpus {study.corpus}, model {runs['model'].iloc[0]}; an empty setting is that of {study.runs[0]}. Test set: "
        "averaged checkpoint. Dev set: last checkpoint, as in Table 3. 95% intervals by bootstrap; perplexity per piece."
    )
    frame, places = frame.loc[study.best_first()].reset_index(), {"accuracy": 3, "calibration error": 3}
    notes = [note, *filter(None, [study.caveat()])]
    return table(f"study-{study.name}", f"Runs of {study.name}", frame, notes, places=places, given=list(settings))


@dataclass(frozen=True)
class Headline:
    """The text of a card. `figure` is printed large, `says` explains it, and `note` adds details."""

    study: str
    trained: int
    runs: int
    figure: str
    says: str
    note: str = ""


def headline(params: Mapping[str, Any], study: Study) -> Headline:
    """The headline of a study: dev perplexities for a claim about them, else BLEU of its best run, with several seeds."""
    results, scored = study.results, [run for run in study.best_first() if run in study.results.scored]
    if params["studies"].get(study.name, {}).get("perplexity"):
        known = results.runs["dev PPL, last"].dropna().astype(float).sort_values()
        figure = f"{known.iloc[0]:,.1f} to {known.iloc[-1]:,.1f}"
        says = f"dev perplexity of the last checkpoint: {', '.join(f'{run} {value:,.1f}' for run, value in known.items())}"
        alone = "One seed per run. " if all(len(same) == 1 for same in results.alike(scored)) else ""
        note = f"{alone}Published: {described(params, study.name)}."
    else:
        languages = results.runs["languages"].map(repr)  # scores of two target languages are not compared
        first = next(run for run in study.runs if run in scored)
        figure, says, note = best(study, [run for run in scored if languages[run] == languages[first]])
    if DEMONSTRATION in repr(params["corpora"].get(study.corpus)):
        note = f"A grammar generated the sentences of {study.corpus}. {note}".strip()
    return Headline(study.name, len(scored), len(study.planned), figure, says, note)


def best(study: Study, scored: Sequence[str]) -> tuple[str, str, str]:
    """The figure of the best run, what it is, and its seeds; beside a published result by the measure of that result."""
    results, metric, note = study.results, study.measure, ""
    says = f"{FIRST[metric].replace('sacre', '')} on the test set of {results.runs.at[scored[0], 'corpus']}"
    if others := [other for other in TOOLKITS if scored[0] in as_published(results, other.like, other.corpus)]:
        other = others[-1]  # as in the table of toolkits
        metric, says = other.metric, f"BLEU, {other.measure}, on {other.test_set}"
        note = f" Published: {other.bleu} ({other.name}, {other.source.split(',')[0]})."
    scores = results.at(metric, *TEST)
    groups = results.alike([run for run in scored if run in scores.index])
    if not groups:
        return "–", says, note
    seeds = max(groups, key=lambda runs: fmean(scores["score"][runs]))
    found = results.over_seeds(seeds, metric, *TEST)
    if not found:
        score, low, high = scores.loc[seeds[0], ["score", "low", "high"]]
        bounds = f", 95% interval {interval(low, high, 1)}" if low is not None else ""
        found = Mean(score, f"one seed{bounds}")
    highest = f"Highest of {len(groups)}: " if len(groups) > 1 else ""
    return rounded(found.score, 1), says, f"{highest}{shared(seeds)}, {found.text}.{note}"


def not_done(params: Mapping[str, Any], results: Results) -> list[Headline]:
    """Headlines of the largest studies of which no run has been trained."""
    runs = {name: list(study.get("runs", ())) for name, study in params["studies"].items()}
    missing = largest({name: of for name, of in runs.items() if not set(of) & set(results.scored)})
    return [
        Headline(name, 0, len(runs[name]), f"0 of {len(runs[name])}", f"trainings done ({described(params, name) or name})")
        for name in missing
    ]


def headline_table(found: Sequence[Headline]) -> Table:
    """A row for each study. Its figure is of another kind in each row, so it stands in a sentence, not in a column."""
    rows = [
        {
            "study": each.study,
            "trained": f"{each.trained} of {each.runs}",
            "result": f"{f'{each.figure} ' if each.trained else ''}{each.says}. {each.note}".strip(),
        }
        for each in found
    ]
    return table("studies", "Studies", rows)


def shared(names: Sequence[str]) -> str:
    """The first words that all names share, or the first name if they share none. Words are separated by hyphens."""
    words = zip(*(name.split("-") for name in names))
    return "-".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, words)) or names[0]
