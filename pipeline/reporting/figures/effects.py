"""The effects of Table 3's rows in the paper and in our trainings: on BLEU, and at several scales on the perplexity."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure as Canvas

from pipeline.reporting.changes import ROWS, Comparison
from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
from pipeline.reporting.scales import PAPER, Scale
from pipeline.scoring.intervals import MEASURES

THEIRS, OURS = "#7d8694", COLOURS[0]
MARKERS = ("o", "s", "^")
BESIDE = 0.0012  # between the marks of two scales for one row
GAP = 0.012  # between the names of two rows
LINE: dict[str, Any] = {"color": INK, "linewidth": 0.6, "alpha": 0.5}


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
