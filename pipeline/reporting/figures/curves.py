"""Curves: losses of runs against training steps, and how far the token probabilities of runs can be believed."""

from collections.abc import Sequence
from itertools import cycle, product
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator

from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
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
    for seeds, name, (dashes, colour) in zip(groups, names, cycle(product(DASHES, COLOURS))):
        label = name.removeprefix(f"{shared(names)}-") + (f", {len(seeds)} seeds" if len(seeds) > 1 else "")
        for run in seeds:
            look = {"color": colour, "linestyle": dashes, "label": label if run == seeds[-1] else None}
            draw(plot, study.results, run, "dev_loss", **look)
    finish(canvas, plot, "dev loss per piece (nats)")
    alt = f"Dev loss against steps of {len(runs)} runs: {', '.join(runs)}."
    return drawn(f"study-{study.name}", canvas, f"{study.name}: dev loss. {study.caveat()}".strip(), alt)


def reliability(results: Results, of: str = "") -> list[Figure]:
    """How often the most probable token is right, by its probability, for each training. Seeds are shown by the first.

    The area of a point grows with its share of the tokens.
    """
    known = [name for name in results.runs.index if results.runs.at[name, "reliability"]]
    if not known:
        return []
    canvas, plot = axes(5.2, 4.2)
    plot.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    plot.set(xlabel="probability of the most probable token", ylabel="share in which it is right", xlim=(0, 1), ylim=(0, 1))
    shown = []
    for number, (name, *_) in enumerate(results.alike(known)):
        run, colour = results.runs.loc[name], COLOURS[number % len(COLOURS)]
        bins = pd.DataFrame(run["reliability"])
        plot.plot(bins["probability"], bins["accuracy"], color=colour, label=name)
        areas = 12 + 150 * bins["tokens"] / bins["tokens"].sum()
        plot.scatter(bins["probability"], bins["accuracy"], s=areas, color=colour, alpha=0.5, linewidths=0)
        shown.append(f"{name} {run['calibration error']:.3f}")
    canvas.legend(loc="outside lower center", ncols=2)
    caption = (
        "Token probabilities on dev, last checkpoint: below the dotted line the model is over-confident, which label "
        f"smoothing is meant to prevent (5.4). Calibration errors: {', '.join(shown)}."
    )
    name = f"reliability-{of}" if of else "reliability"
    return [drawn(name, canvas, caption, f"Reliability curves of {len(shown)} trainings beside the diagonal.")]
