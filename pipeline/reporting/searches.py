"""Searches for settings: a table of the trials, and figures of the history, the settings and their importance."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from pipeline.reporting.evidence import read
from pipeline.reporting.lines import COLOURS
from pipeline.reporting.plots import Figure, axes, svg
from pipeline.reporting.tables import Column, Table
from pipeline.settings.score_files import entry, mapping, within
from pipeline.settings.searches import line
from transformer.config.reading import UserError, convert, shown

METRICS = {"dev_loss": "dev loss", "dev_bleu": "dev BLEU"}
LOGARITHMIC = 20.0  # an axis is logarithmic if the ratio of its largest to its smallest number is above this


@dataclass(frozen=True)
class Result:
    """A trial. `value` is its metric, or None if the trial did not complete. `loss` is its last dev loss."""

    number: int
    state: str
    why: str
    settings: Mapping[str, Any]
    steps: int
    value: float | None
    loss: float | None


@dataclass(frozen=True)
class Tuning:
    """A finished search."""

    name: str
    recorded: bool
    metric: str
    budget: str
    trials: tuple[Result, ...]
    importance: Mapping[str, float]
    best: int  # the number of the best trial
    run: Mapping[str, Any]  # the best trial as an entry of `runs`

    @property
    def id(self) -> str:
        """The name of the table, and the prefix of the names of the figures."""
        return f"search-{self.name}{'-recorded' if self.recorded else ''}"

    @property
    def varied(self) -> list[str]:
        """The settings that differ between trials."""
        return [key for key in self.run if len({repr(trial.settings.get(key)) for trial in self.trials}) > 1]

    def completed(self) -> list[Result]:
        """The trials with a value, best first."""
        sign = 1 if self.metric == "dev_loss" else -1
        return sorted((one for one in self.trials if one.value is not None), key=lambda one: sign * (one.value or 0))


def selected(params: Mapping[str, Any], scores: Path) -> list[Tuning]:
    """The searches of params.yaml that are finished, in its order."""
    paths = [scores / "searches" / f"{name}.json" for name in params["searches"]]
    return [of_file(path, recorded=False) for path in paths if path.exists()]


def records(results: Path) -> list[Tuning]:
    """The recorded searches, by name."""
    return [of_file(path, recorded=True) for path in sorted((results / "searches").glob("*.json"))]


def of_file(path: Path, recorded: bool) -> Tuning:
    value, where = read(path), str(path)
    if entry(value, "name", str, where) != path.stem:
        raise UserError(f"{path}: the result of the search {path.stem!r} is expected")
    metric, steps = entry(value, "search.metric", str, where), entry(value, "search.steps", int | None, where)
    if metric not in METRICS:
        raise UserError(f"{path}: search.metric: {metric!r} is not possible; one of {', '.join(METRICS)} is expected")
    trials = within(value, "trials")
    if not isinstance(trials, list):
        raise UserError(f"{path}: trials: {shown(trials)} is of the wrong type; a list is expected")
    return Tuning(
        name=path.stem,
        recorded=recorded,
        metric=metric,
        budget=f"{steps:,} steps" if steps else f"{entry(value, 'search.minutes', float, where):g} minutes",
        trials=tuple(of_trial(trial, f"{where}: trials[{place}]") for place, trial in enumerate(trials)),
        importance=entry(value, "importance", dict[str, float], where),
        best=entry(value, "best.trial", int, where),
        run=mapping(within(value, "best", "run"), f"{where}: best.run"),
    )


def of_trial(trial: Any, where: str) -> Result:
    losses = convert(tuple[tuple[int, float], ...], within(trial, "dev_losses"), f"{where}: dev_losses")
    return Result(
        number=entry(trial, "trial", int, where),
        state=entry(trial, "state", str, where),
        why=entry(trial, "why", str, where),
        settings=mapping(within(trial, "settings"), f"{where}: settings"),
        steps=entry(trial, "steps", int, where),
        value=entry(trial, "value", float | None, where),
        loss=losses[-1][1] if losses else None,
    )


def table(search: Tuning) -> Table:
    """Return a table with one row for each trial: first the completed trials, best first, then the others."""
    rows_of = [*search.completed(), *(trial for trial in search.trials if trial.value is None)]
    varied, metric = search.varied, METRICS[search.metric]
    columns = [Column("trial", "given"), *(Column(key, "given") for key in varied), Column("steps", "count")]
    columns += [Column(metric, "number", 4)] + ([Column("dev loss", "number", 4)] if metric != "dev loss" else [])
    columns += [Column("state"), Column("why")]
    rows = []
    for trial in rows_of:
        values = [trial.value, trial.loss][: 1 + (metric != "dev loss")]
        rows.append([trial.number, *map(trial.settings.get, varied), trial.steps, *values, trial.state, trial.why])
    pruned = sum(trial.state == "pruned" for trial in search.trials)
    shares = ", ".join(f"{key} {share:.2f}" for key, share in search.importance.items())
    notes = [
        f"{len(search.trials)} trials of at most {search.budget} by TPE, one seed each; {pruned} were pruned.",
        f"The best as a line of params.yaml: {line(f'{search.name}-best', search.run)}",
    ]
    notes += [f"Importance by PED-ANOVA (the values add up to 1): {shares}."] if shares else []
    title = f"Search {search.name}" + (" (recorded)" if search.recorded else "")
    return Table(search.id, title, columns, rows, notes).without_empty("why")


def figures(search: Tuning) -> list[Figure]:
    """The history, parallel coordinates and importance. Empty if fewer than two trials have a value."""
    if len(search.completed()) < 2:
        return []
    drawn = [history(search)] + ([coordinates(search)] if search.varied else [])
    return drawn + ([importance(search)] if search.importance else [])


def history(search: Tuning) -> Figure:
    """Plot the value of each completed trial against its number, and the best value so far."""
    canvas, plot = axes()
    trials = sorted(search.completed(), key=lambda trial: trial.number)
    numbers, values = [trial.number for trial in trials], [trial.value or 0.0 for trial in trials]
    better = min if search.metric == "dev_loss" else max
    plot.plot(numbers, values, "o", color=COLOURS[0], markersize=4, label="trial")
    plot.step(numbers, list(accumulate(values, better)), color=COLOURS[1], where="post", label="best so far")
    plot.set(xlabel="trial", ylabel=METRICS[search.metric])
    canvas.legend(loc="outside lower center", ncols=2)
    pruned = len(search.trials) - len(trials)
    caption = f"{search.name}: the {METRICS[search.metric]} of each completed trial; {pruned} trials were pruned."
    alt = f"{len(trials)} points and a line of the best so far, which ends at {better(values):.4g}."
    return Figure(f"{search.id}-history", "searches", svg(canvas), caption, alt)


def importance(search: Tuning) -> Figure:
    canvas, plot = axes(height=1.2 + 0.3 * len(search.importance))
    ordered = sorted(search.importance.items(), key=lambda item: item[1])
    plot.barh([name for name, _ in ordered], [share for _, share in ordered], height=0.6, color=COLOURS[0])
    plot.set(xlabel="importance (PED-ANOVA)", xlim=(0, None))
    caption = f"{search.name}: how much each setting of the space decides whether a trial is among the best."
    alt = "Bars: " + ", ".join(f"{name} {share:.2f}" for name, share in reversed(ordered)) + "."
    return Figure(f"{search.id}-importance", "searches", svg(canvas), caption, alt)


def coordinates(search: Tuning) -> Figure:
    """A line per trial through its settings, to its value. The better the trial, the more opaque is its line."""
    trials = search.completed()
    names = [*search.varied, METRICS[search.metric]]
    columns = [[trial.settings.get(key) for trial in trials] for key in search.varied]
    columns.append([trial.value for trial in trials])
    canvas, plot = axes(max(5.2, 1.3 * len(names)), 3.6)
    heights = [axis(plot, place, column) for place, column in enumerate(columns)]
    for rank, across in reversed(list(enumerate(zip(*heights)))):
        colour = COLOURS[1] if rank == 0 else COLOURS[0]
        opacity = 1 - 0.85 * rank / len(trials)
        plot.plot(range(len(names)), across, color=colour, alpha=opacity, linewidth=2.2 if rank == 0 else 1.2)
    plot.set_xticks(range(len(names)), names)
    plot.set(xlim=(-0.3, len(names) - 0.7), ylim=(-0.12, 1.1), yticks=[])
    plot.spines["left"].set_visible(False)
    plot.grid(True, axis="x")
    caption = f"{search.name}: settings and {names[-1]} of the completed trials; the best one is orange."
    alt = f"Parallel coordinates of {len(trials)} trials over {', '.join(names)}."
    return Figure(f"{search.id}-settings", "searches", svg(canvas), caption, alt)


def axis(plot: Axes, place: int, values: Sequence[Any]) -> list[float]:
    """Draw the labels of a vertical axis at `place`. Returns the height of each value, from 0 to 1.

    Numbers are spread by their size, on a logarithmic scale if they differ widely, and other values evenly.
    """
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = min(values), max(values)
        scale = math.log if low > 0 and high / low > LOGARITHMIC else float
        ends = {f"{high:.4g}": float(high > low), f"{low:.4g}": 0.0}
        heights = [(scale(value) - scale(low)) / ((scale(high) - scale(low)) or 1.0) for value in values]
    else:
        known = list(dict.fromkeys(map(str, values)))
        ends = {value: number / max(1, len(known) - 1) for number, value in enumerate(known)}
        heights = [ends[str(value)] for value in values]
    for text, height in ends.items():
        below = height < 0.5
        align: dict[str, Any] = {"ha": "center", "va": "top" if below else "bottom", "fontsize": 8}
        plot.annotate(text, (place, height), xytext=(0, -4 if below else 4), textcoords="offset points", **align)
    return heights
