"""The report's pictures: SVG that follows the reader's light or dark colour scheme. Equal data give equal bytes.

Backgrounds are transparent, and weights are drawn as the opacity of one colour. The same file therefore suits light and
dark pages. On a dark page, only the colour of text and axes changes.
"""

import base64
import contextlib
import io
import re
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

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
