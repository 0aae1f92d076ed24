"""The effects of Table 3's rows on the dev perplexity at several scales, against the paper's."""

from collections.abc import Sequence
from typing import Any

from pipeline.reporting.changes import ROWS, described
from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
from pipeline.reporting.published import BASE
from pipeline.reporting.scales import PAPER, Scale

MARKERS = ("o", "s", "^")
BESIDE = 0.0012  # between the marks of two scales for one row
GAP = 0.012  # between the names of two rows
LINE: dict[str, Any] = {"color": INK, "linewidth": 0.6, "alpha": 0.5}


def figure(scales: Sequence[Scale]) -> Figure | None:
    """A mark for each row and scale, with its interval; effects as large as the paper's are on the diagonal."""
    rows = sorted((row for row in ROWS if any(row in scale.planned for scale in scales[:2])), key=lambda row: PAPER[row])
    if not rows:
        return None
    canvas, plot = axes(8.4, 5.6)
    plot.grid(visible=False, axis="x")
    plot.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle=":")
    across, place = plot.get_xaxis_transform(), float("-inf")
    for row in rows:
        place, name = max(PAPER[row], place + GAP), described(ROWS[row].settings, BASE)
        plot.axvline(PAPER[row], **LINE)
        look: dict[str, Any] = {"xycoords": across, "textcoords": across, "rotation": 45, "fontsize": 9}
        look |= {"rotation_mode": "anchor", "arrowprops": {"arrowstyle": "-", **LINE}}
        plot.annotate(f"{ROWS[row].group}  {name}", (PAPER[row], 1), (place, 1.04), **look)
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
