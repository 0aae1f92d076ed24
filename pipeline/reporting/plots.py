"""The report's plots, as SVG that follows the reader's light or dark colour scheme. Equal data give equal bytes.

Backgrounds are transparent, and attention weights are drawn as the opacity of one colour. The same file therefore suits
light and dark pages. On a dark page, only the colour of text and axes changes.
"""

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.image import imsave

from pipeline.reporting.evidence import Evidence, alike
from pipeline.reporting.lines import COLOURS, DASHES, INK, Line, common_name, draw, looks, short
from pipeline.reporting.studies import Study, expected_to_fail
from transformer.layers import sinusoids

INK_ON_DARK = "#d5d9e0"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "report",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": "#8a919c",
    "grid.alpha": 0.28,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
WIDE = 500  # points
SCHEDULE = ("schedule", "warmup", "lr_scale", "d_model", "steps")  # what the learning rates depend on
SCHEME = (
    f'<style>@media (prefers-color-scheme:dark){{[style*="fill: {INK}"]{{fill:{INK_ON_DARK}!important}}'
    f'[style*="stroke: {INK}"]{{stroke:{INK_ON_DARK}!important}}}}</style>'
)


@dataclass(frozen=True)
class Figure:
    """A picture of the report.

    `name` is the file name without its suffix. `section` is the part of the page that shows the picture. `alt`
    describes the picture in words.
    """

    name: str
    section: Literal["deltas", "studies", "searches", "runs", "schedules", "search", "attention"]
    svg: str
    caption: str
    alt: str
    run: str = ""  # of an attention map: the name of the run
    text: str = ""  # of an attention map: the sentence

    @property
    def wide(self) -> bool:
        """Whether the picture is too wide for one of two columns of the page."""
        width = re.search(r'<svg [^>]*\bwidth="([\d.]+)pt"', self.svg)
        return width is not None and float(width[1]) > WIDE


def style() -> contextlib.AbstractContextManager:
    """Return a context manager in which figures are drawn in the report's style."""
    return matplotlib.rc_context(STYLE)


def svg(canvas: Canvas) -> str:
    """Return the picture as SVG text. The text has CSS rules for dark pages and states no date."""
    text = io.StringIO()
    FigureCanvasSVG(canvas).print_svg(text, metadata={"Date": None, "Creator": None})
    return re.sub(r"(<svg [^>]*>)", rf"\1{SCHEME}", text.getvalue(), count=1)


def axes(width: float = 5.2, height: float = 3.3) -> tuple[Canvas, Axes]:
    canvas = Canvas(figsize=(width, height), layout="constrained")
    return canvas, canvas.add_subplot()


def values(run: Evidence, key: str) -> tuple[list[float], list[float]]:
    """Return the steps and the values of the curve `key` of a run."""
    records = [record for record in run.curve if key in record]
    return [record["step"] for record in records], [record[key] for record in records]


def loss(seeds: Sequence[Evidence]) -> Figure:
    """Training and dev losses of runs that differ only in the seed. Each seed has its own dashes."""
    canvas, plot = axes()
    lines = []
    for run, dashes in zip(seeds, cycle(DASHES)):
        last = run is seeds[-1]
        lines.append(Line("training" if last else "", *values(run, "loss"), COLOURS[0], dashes))
        lines.append(Line("dev" if last else "", *values(run, "dev_loss"), COLOURS[1], dashes))
    draw(plot, lines)
    plot.set(xlabel="step", ylabel="loss per piece (nats)")
    names = ", ".join(run.name for run in seeds)
    terms = {"label_smoothing": "label smoothing", "r_drop": "the divergence of R-Drop"}
    named = " and ".join(term for key, term in terms.items() if seeds[0].settings.get(key))
    ends = ", ".join(f"{line.values[-1]:.3f}" for line in lines[1::2] if line.values)
    alt = f"Loss of {names} against steps" + (f"; the dev loss ends at {ends}" if ends else "")
    return Figure(
        f"loss-{seeds[0].slug}",
        "runs",
        svg(canvas),
        f"{names}: loss on the training set{named and f' (with {named})'} and on the dev set.",
        f"{alt}.",
    )


def dev_losses(study: Study) -> Figure:
    """The dev losses of a study's runs. Runs of `alike` share a label and a look (see `looks`)."""
    runs = [run for run in study.runs if run.curve]
    groups = alike(runs)
    firsts = [seeds[0] for seeds in groups]
    canvas, plot = axes(height=3.3 + 0.1 * len(groups))
    lines = []
    for seeds, look, name in zip(groups, looks(study, firsts), short([common_name(seeds) for seeds in groups])):
        label = f"{name}, {len(seeds)} seeds" if len(seeds) > 1 else name
        lines += [Line(label if run is seeds[-1] else "", *values(run, "dev_loss"), *look) for run in seeds]
    draw(plot, lines)
    plot.set(xlabel="step", ylabel="dev loss per piece (nats)")
    on = f" on {study.corpus}" if len(study.corpora) == 1 else ""
    alt = f"Dev loss{on} against steps of {len(runs)} runs: {', '.join(run.name for run in runs)}."
    caption = f"{study.name}: dev loss{on}. {study.claim() or study.caveat()}".strip()
    return Figure(f"study-{study.name}", "studies", svg(canvas), caption, alt)


def learning_rates(runs: Sequence[Evidence]) -> Figure:
    """The learning rates that the runs logged. Runs with equal schedules share a line."""
    lines: dict[str, list[Evidence]] = {}
    for run in runs:  # not by the rates: a record has fewer points
        lines.setdefault(repr([run.settings.get(key) for key in SCHEDULE]), []).append(run)
    canvas, plot = axes(height=3.3 + 0.1 * len(lines))
    shown = []
    for number, same in enumerate(lines.values()):
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        steps, rates = max((values(run, "learning_rate") for run in same), key=lambda points: points[0][-1:])
        thousandths = [1000 * rate for rate in rates]
        shown.append(Line(same[0].run + more, steps, thousandths, COLOURS[number % len(COLOURS)]))
    draw(plot, shown, logarithmic=False)
    plot.set(xlabel="step", ylabel="learning rate, in thousandths")
    caption = (
        "Learning rates. The paper's (5.3) has a linear warm-up and then falls as the inverse square root of the step."
    )
    alt = f"Learning rates against steps of {len(runs)} runs: {', '.join(run.name for run in runs)}."
    return Figure("learning-rate", "schedules", svg(canvas), caption, alt)


def opacity(weights: np.ndarray, colour: str) -> np.ndarray:
    """Return RGBA pixels of one colour. The weights (0 to 1) are their opacity, and NaN is transparent."""
    pixels = np.empty((*weights.shape, 4), np.uint8)
    pixels[..., :3] = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    pixels[..., 3] = np.round(255 * np.clip(np.nan_to_num(weights), 0, 1))
    return pixels


def png(pixels: np.ndarray) -> bytes:
    """Return RGBA pixels as a PNG file. Its metadata do not name the software."""
    file = io.BytesIO()
    imsave(file, pixels, format="png", metadata={"Software": None})  # type: ignore[dict-item]  # None omits the entry
    return file.getvalue()


def positional_encoding(positions: int = 100, d_model: int = 128) -> Figure:
    """The sinusoidal encoding as a picture. It has few dimensions, so that each of them is visible."""
    table = sinusoids(positions, d_model).numpy()
    pixels = np.where((table > 0)[..., None], opacity(table, COLOURS[0]), opacity(-table, COLOURS[1]))
    canvas, plot = axes()
    plot.imshow(pixels, aspect="auto", interpolation="none", extent=(0, d_model, positions, 0))
    plot.grid(False)
    plot.set(xlabel="dimension", ylabel="position")
    caption = f"Sinusoidal positional encoding (3.5), here of {d_model} dimensions: blue from 0 to 1, orange from 0 to −1."
    alt = "Waves along the positions. Their wavelength increases with the dimension."
    return Figure("positions", "schedules", svg(canvas), caption, alt)


def curves(runs: Sequence[Evidence], studies: Sequence[Study]) -> list[Figure]:
    """Return plots of the loss of each run with all of its seeds, the dev losses of each study, and the learning rates.

    Only the plot of its study shows a control run (see `expected_to_fail`).
    """
    trained = [run for run in runs if run.curve and not expected_to_fail(run)]
    compared = [study for study in studies if sum(bool(run.curve) for run in study.runs) > 1]
    groups = [seeds for kept in (False, True) for seeds in alike(run for run in trained if run.recorded == kept)]
    figures = [*map(loss, groups), *map(dev_losses, compared)]
    return figures + ([learning_rates(trained)] if trained else [])
