"""Curves against training steps: losses of a run with its seeds, dev losses of a study, and learning rates."""

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from pipeline.reporting.figures.style import COLOURS, Figure, axes, drawn
from pipeline.reporting.results import Results
from pipeline.reporting.seeds import alike, shared
from pipeline.reporting.studies import Study

DASHES = ("-", "--", ":", "-.")
LOGARITHMIC = 3.0  # the axis is logarithmic if the ratio of the largest to the smallest loss is above this


class Line(NamedTuple):
    name: str  # its label; without a name it has none
    points: Sequence[tuple[float, float]]  # steps and values
    colour: str = COLOURS[0]
    dashes: str = "-"


def points(results: Results, run: str, key: str) -> list[tuple[float, float]]:
    """The steps and the values of a curve of a run."""
    curve = results.curves.get(run, pd.DataFrame()).reindex(columns=["step", key]).dropna()
    return list(curve.itertuples(index=False, name=None))


def draw(plot: Axes, lines: Sequence[Line]) -> None:
    """Draw the lines, with a legend beside the plot."""
    lines = [line for line in lines if line.points]
    for line in lines:
        plot.plot(*zip(*line.points), color=line.colour, linestyle=line.dashes, label=line.name or None)
    every = [value for line in lines for _, value in line.points]
    if every and min(every) > 0 and max(every) / min(every) > LOGARITHMIC:
        plot.set_yscale("log")
        ticks = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 2, 3, 5, 7)]
        plot.set_yticks([tick for tick in ticks if min(every) * 0.9 <= tick <= max(every) * 1.1])
        plot.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        plot.yaxis.set_minor_locator(NullLocator())
        plot.yaxis.set_minor_formatter(NullFormatter())
    if any(line.name for line in lines):
        plot.figure.figure.legend(loc="outside right upper")


def loss(results: Results, seeds: Sequence[str]) -> Figure:
    """Training and dev losses of runs that differ only in the seed. Each seed has its own dashes."""
    canvas, plot = axes()
    lines = []
    for run, dashes in zip(seeds, cycle(DASHES)):
        for key, label, colour in (("loss", "training", COLOURS[0]), ("dev_loss", "dev", COLOURS[1])):
            lines.append(Line(label if run == seeds[-1] else "", points(results, run, key), colour, dashes))
    draw(plot, lines)
    plot.set(xlabel="step", ylabel="loss per piece (nats)")
    names = ", ".join(seeds)
    terms = {"label_smoothing": "label smoothing", "r_drop": "the divergence of R-Drop"}
    parts = " and ".join(term for key, term in terms.items() if results.runs.at[seeds[0], key])
    ends = ", ".join(f"{line.points[-1][1]:.3f}" for line in lines[1::2] if line.points)
    alt = f"Loss of {names} against steps" + (f"; the dev loss ends at {ends}" if ends else "")
    caption = f"{names}: loss on the training set{parts and f' (with {parts})'} and on the dev set."
    return drawn(f"loss-{seeds[0]}", canvas, caption, f"{alt}.")


def losses(results: Results) -> list[Figure]:
    """The losses of all runs with curves."""
    return [loss(results, seeds) for seeds in alike(results.runs) if results.curves.keys() & set(seeds)]


def dev_losses(study: Study) -> Figure:
    """The dev losses of a study's runs. Runs of `alike` share a label and a look."""
    runs = [run for run in study.runs if run in study.results.curves]
    groups = alike(study.results.runs, runs)
    canvas, plot = axes(7.0, 3.3 + 0.1 * len(groups))
    names = [shared(seeds) for seeds in groups]
    first = len(shared(names)) + 1 if len(names) > 1 and all(name.startswith(shared(names)) for name in names) else 0
    lines = []
    for number, (seeds, name) in enumerate(zip(groups, names)):
        look = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        label = (name[first:] or "base") + (f", {len(seeds)} seeds" if len(seeds) > 1 else "")
        for run in seeds:
            lines.append(Line(label if run == seeds[-1] else "", points(study.results, run, "dev_loss"), *look))
    draw(plot, lines)
    plot.set(xlabel="step", ylabel="dev loss per piece (nats)")
    alt = f"Dev loss against steps of {len(runs)} runs: {', '.join(runs)}."
    return drawn(f"study-{study.name}", canvas, f"{study.name}: dev loss. {study.caveat()}".strip(), alt)
