"""Curves against training steps: losses of a run with its seeds, and the dev losses of a study."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator

from pipeline.reporting.figures.style import COLOURS, Figure, axes, drawn
from pipeline.reporting.results import Results
from pipeline.reporting.studies import Study, shared

DASHES = ("-", "--", ":", "-.")
LOGARITHMIC = 3.0  # the axis is logarithmic if the ratio of the largest to the smallest loss is above this


def draw(plot: Axes, results: Results, run: str, key: str, **look: Any) -> None:
    """Draw the curve `key` of a run, if there is one."""
    curve = results.curves.get(run, pd.DataFrame()).reindex(columns=["step", key]).dropna()
    if len(curve):
        plot.plot(curve["step"], curve[key], **look)


def finish(canvas: Canvas, plot: Axes, label: str) -> None:
    """Name the axes, and put a legend beside the plot."""
    low, high = plot.dataLim.intervaly
    if low > 0 and high / low > LOGARITHMIC:
        plot.set_yscale("log")
        plot.yaxis.set_major_formatter("{x:g}")
        plot.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
        plot.yaxis.set_minor_formatter("{x:g}")
    plot.set(xlabel="step", ylabel=label)
    canvas.legend(loc="outside right upper")


def loss(results: Results, seeds: Sequence[str]) -> Figure:
    """Training and dev losses of runs that differ only in the seed. Each seed has its own dashes."""
    canvas, plot = axes()
    for run, dashes in zip(seeds, cycle(DASHES)):
        for key, label, colour in (("loss", "training", COLOURS[0]), ("dev_loss", "dev", COLOURS[1])):
            draw(plot, results, run, key, color=colour, linestyle=dashes, label=label if run == seeds[-1] else None)
    finish(canvas, plot, "loss per piece (nats)")
    names = ", ".join(seeds)
    terms = {"label_smoothing": "label smoothing", "r_drop": "the divergence of R-Drop"}
    parts = " and ".join(term for key, term in terms.items() if results.runs.at[seeds[0], key])
    caption = f"{names}: loss on the training set{parts and f' (with {parts})'} and on the dev set."
    return drawn(f"loss-{seeds[0]}", canvas, caption, f"Loss of {names} against steps.")


def losses(results: Results) -> list[Figure]:
    """The losses of all runs with curves."""
    return [loss(results, seeds) for seeds in results.groups if results.curves.keys() & set(seeds)]


def dev_losses(study: Study) -> Figure:
    """The dev losses of a study's runs. Runs of `alike` share a label and a look."""
    runs = [run for run in study.runs if run in study.results.curves]
    groups = study.results.alike(runs)
    canvas, plot = axes(7.0, 3.3 + 0.1 * len(groups))
    names = [shared(seeds) for seeds in groups]
    for number, (seeds, name) in enumerate(zip(groups, names)):
        look = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}
        label = name.removeprefix(f"{shared(names)}-") + (f", {len(seeds)} seeds" if len(seeds) > 1 else "")
        for run in seeds:
            draw(plot, study.results, run, "dev_loss", **look, label=label if run == seeds[-1] else None)
    finish(canvas, plot, "dev loss per piece (nats)")
    alt = f"Dev loss against steps of {len(runs)} runs: {', '.join(runs)}."
    return drawn(f"study-{study.name}", canvas, f"{study.name}: dev loss. {study.caveat()}".strip(), alt)
