"""The report's pictures: SVG that follows the reader's light or dark colour scheme. Equal data give equal bytes.

Backgrounds are transparent, and weights are drawn as the opacity of one colour. The same file therefore suits light and
dark pages. On a dark page, only the colour of text and axes changes.
"""

import base64
import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator

from pipeline.reporting.changes import ROWS, Comparison
from pipeline.reporting.results import Results
from pipeline.reporting.scales import PAPER, Scale
from pipeline.reporting.studies import Study, shared
from pipeline.scoring.intervals import MEASURES

INK, INK_ON_DARK = "#2b2f36", "#d5d9e0"
COLOURS = ("#3f7fd0", "#d97b29", "#2f9e6e", "#c9536b", "#8c6fd1", "#2b9fb3", "#a3872c", "#7d8694")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "report",
    "svg.fonttype": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#8a919c",
    "grid.alpha": 0.28,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
WIDE = 7.0  # inches; a wider picture takes both columns of the page
SCHEME = (  # cells of a matrix keep their edges; ink is light on dark pages
    f"<style>image{{image-rendering:pixelated}}"
    f'@media (prefers-color-scheme:dark){{[style*="fill: {INK}"]{{fill:{INK_ON_DARK}!important}}'
    f'[style*="stroke: {INK}"]{{stroke:{INK_ON_DARK}!important}}}}</style>'
)
DASHES = ("-", "--", ":", "-.")
LOGARITHMIC = 3.0  # the axis is logarithmic if the ratio of the largest to the smallest loss is above this
THEIRS, OURS = "#7d8694", COLOURS[0]
MARKERS = ("o", "s", "^")
BESIDE = 0.0012  # between the marks of two scales for one row
GAP = 0.012  # between the names of two rows
LINE: dict[str, Any] = {"color": INK, "linewidth": 0.6, "alpha": 0.5}


@dataclass(frozen=True)
class Figure:
    """A picture. `name` is the file name without its suffix, and `alt` describes the picture in words."""

    name: str
    svg: str
    caption: str
    alt: str
    wide: bool

    @property
    def base64(self) -> str:
        return base64.b64encode(self.svg.encode()).decode()


def style() -> contextlib.AbstractContextManager:
    """Return a context manager in which figures are drawn in the report's style."""
    return matplotlib.rc_context(STYLE)


def axes(width: float = 5.2, height: float = 3.3) -> tuple[Canvas, Axes]:
    canvas = Canvas(figsize=(width, height), layout="constrained")
    return canvas, canvas.add_subplot()


def drawn(name: str, canvas: Canvas, caption: str, alt: str) -> Figure:
    """The picture of a canvas. Its text has CSS rules for dark pages and states no date."""
    text = io.StringIO()
    FigureCanvasSVG(canvas).print_svg(text, metadata={"Date": None, "Creator": None})
    svg = re.sub(r"(<svg [^>]*>)", rf"\1{SCHEME}", text.getvalue(), count=1)
    return Figure(name, svg, caption, alt, canvas.get_figwidth() >= WIDE)


def opacity(weights: np.ndarray, colour: str) -> np.ndarray:
    """RGBA pixels of one colour. The weights (0 to 1) are their opacity, and NaN is transparent."""
    pixels = np.empty((*weights.shape, 4), np.uint8)
    pixels[..., :3] = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    pixels[..., 3] = np.round(255 * np.clip(np.nan_to_num(weights), 0, 1))
    return pixels


def draw_curve(plot: Axes, results: Results, run: str, key: str, **look: Any) -> None:
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
            draw_curve(plot, results, run, key, color=colour, linestyle=dashes, label=label if run == seeds[-1] else None)
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
            draw_curve(plot, study.results, run, "dev_loss", **look)
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


def changes(compared: Comparison) -> Figure | None:
    """The rows of Table 3 with a successful change of ours, if there is one. Failed trainings are named in the caption.

    The two panels have axes of their own, because the effects of a change in a small model on other data have another size.
    """
    shown = [(change, change.row) for change in compared.changes if change.row and not change.failed]
    if not shown:
        return None
    failed = ", ".join(change.text for change in compared.changes if change.row and change.failed)
    paper = [row.effect[0] for _, row in shown]
    canvas = Canvas(figsize=(8.4, 1.5 + 0.36 * len(shown)), layout="constrained")
    theirs, own = canvas.subplots(1, 2)
    theirs.plot(paper, range(len(shown)), "o", color=THEIRS)
    theirs.set_yticks(range(len(shown)), [f"{row.group}  {row.change}" for _, row in shown])
    theirs.set_title("the paper, on WMT14", fontsize=10, color=THEIRS, loc="left")
    for place, (change, _) in enumerate(shown):
        own.plot(change.bleu.score, place, "o", color=OURS)
        if change.bleu.low is not None:
            own.plot([change.bleu.low, change.bleu.high], [place] * 2, color=OURS, linewidth=1.4)
    own.set_yticks(range(len(shown)), [change.text + " *" * (not change.same_ratio) for change, _ in shown])
    own.set_title(f"ours, on {compared.study.corpus}", fontsize=10, color=OURS, loc="left")
    for panel in (theirs, own):
        panel.axvline(0, color=INK, linewidth=0.8)
        panel.invert_yaxis()
    canvas.supxlabel("effect on dev BLEU of changing the base model: left of 0 is worse, right of 0 better", fontsize=10)
    caption = (
        "Table 3 beside ours: the effect on BLEU of each change that both made. Last checkpoints on the dev sets, "
        f"{MEASURES[compared.measure]}; {compared.sample()}. Lines are 95% intervals, over seeds and sentences. The panels "
        "have different scales. * The setting changes by another ratio than in the paper."
        + (f" Not drawn, because the training failed: {failed}." if failed else "")
    )
    alt = "; ".join(
        f"{change.text}: {theirs:+.1f} in the paper, {change.bleu.score:+.1f} here"
        for (change, _), theirs in zip(shown, paper)
    )
    return drawn("changes", canvas, caption, f"A dot for each change of Table 3. {alt}.")


def at_scales(scales: Sequence[Scale]) -> Figure | None:
    """A mark for each row and scale, with its interval; effects as large as the paper's are on the diagonal."""
    rows = sorted((row for row in ROWS if any(row in scale.planned for scale in scales[:2])), key=lambda row: PAPER[row])
    if not rows:
        return None
    canvas, plot = axes(8.4, 5.6)
    plot.grid(visible=False, axis="x")
    plot.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle=":")
    across, place = plot.get_xaxis_transform(), float("-inf")
    for row in rows:
        place = max(PAPER[row], place + GAP)
        plot.axvline(PAPER[row], **LINE)
        look: dict[str, Any] = {"xycoords": across, "textcoords": across, "rotation": 45, "fontsize": 9}
        look |= {"rotation_mode": "anchor", "arrowprops": {"arrowstyle": "-", **LINE}}
        plot.annotate(f"{ROWS[row].group}  {ROWS[row].change}", (PAPER[row], 1), (place, 1.04), **look)
    told = []
    for number, (scale, colour, marker) in enumerate(zip(scales, COLOURS, MARKERS)):
        found = scale.rows.loc[[row for row in rows if row in scale.rows.index]]
        places = found["paper"] + (number - 1) * BESIDE
        plot.vlines(places, found["low"], found["high"], color=colour, linewidth=1.4)  # none without an interval
        if len(found):
            plot.plot(places, found["effect"], marker, color=colour, markersize=5, label=scale.name)
        told += [f"{scale.name} {key} {row['effect']:+.3f} ({row['paper']:+.3f})" for key, row in found.iterrows()]
    plot.margins(x=0.12)  # the name of the last change is on the picture
    plot.set(xlabel="effect on ln dev perplexity in the paper, on WMT14", ylabel="in our trainings")
    plot.legend(loc="lower right")
    caption = (
        "Table 3 at several scales: the effect of each change on ln dev perplexity, last checkpoint, beside the paper's. "
        "On the dotted line both are equal; above 0 is worse than the base. The lines of marks are 95% intervals over the "
        "seeds. The marks of a change stand a little apart."
    )
    return drawn("scales", canvas, caption, f"Effects, with the paper's in brackets: {', '.join(told)}.")
