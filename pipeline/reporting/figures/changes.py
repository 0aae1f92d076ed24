"""A dot plot of Table 3: the effect of each change in the paper and, where a run of ours makes it, in ours.

The two panels have axes of their own, because the effects of a change in a small model on other data have another size.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.changes import Change, Comparison, described, published_difference
from pipeline.reporting.figures.style import COLOURS, INK, Figure, drawn
from pipeline.reporting.published import BASE

PAPER, OURS = "#7d8694", COLOURS[0]


def figure(compared: Comparison) -> Figure:
    """The rows of Table 3 with a successful change of ours. Failed trainings are named in the caption."""
    ours = [change for change in compared.changes if change.row]
    shown = [change for change in ours if not change.failed]
    failed = ", ".join(change.text for change in ours if change.failed)
    canvas = Canvas(figsize=(8.4, 1.5 + 0.36 * len(shown)), layout="constrained")
    theirs, own = canvas.subplots(1, 2)
    paper = [published_difference(change.row)[0] for change in shown if change.row]
    panel(theirs, "the paper, on WMT14", paper, PAPER)
    corpus = compared.study.results.runs["corpus"].iloc[0]
    panel(own, f"ours, on {corpus}", [change.bleu.score for change in shown], OURS)
    for place, change in enumerate(shown):
        if change.bleu.low is not None:
            own.plot([change.bleu.low, change.bleu.high], [place] * 2, color=OURS, linewidth=1.4)
    rows = [change.row for change in shown if change.row]
    theirs.set_yticks(range(len(rows)), [f"{row.group}  {described(row.settings, BASE)}" for row in rows])
    own.set_yticks(range(len(shown)), [label(change) for change in shown])
    canvas.supxlabel("effect on dev BLEU of changing the base model: left of 0 is worse, right of 0 better", fontsize=10)
    caption = (
        "Table 3 beside ours: the effect on BLEU of each change that both made. Last checkpoints on the dev sets; "
        f"{compared.sample()}. Lines are 95% intervals, over seeds and sentences. The panels have different scales. * The "
        "setting changes by another ratio than in the paper."
        + (f" Not drawn, because the training failed: {failed}." if failed else "")
    )
    alt = "; ".join(
        f"{change.text}: {theirs:+.1f} in the paper, {change.bleu.score:+.1f} here" for change, theirs in zip(shown, paper)
    )
    return drawn("changes", canvas, caption, f"A dot for each change of Table 3. {alt}.")


def label(change: Change) -> str:
    """Our change, for example `N 3 → 1 *`, and the number of its seeds if it is not three."""
    few = "" if len(change.runs) >= 3 else f", {len(change.runs)} seed{'s' * (len(change.runs) > 1)}"
    return described(change.new, change.old) + ("" if change.same_ratio else " *") + few


def panel(plot: Axes, title: str, values: Sequence[float], colour: str) -> None:
    plot.plot(values, range(len(values)), "o", color=colour, markersize=6)
    plot.axvline(0, color=INK, linewidth=0.8)
    plot.set_title(title, fontsize=10, color=colour, loc="left")
    plot.set_ylim(len(values) - 0.5, -0.5)
    plot.tick_params(axis="y", length=0)
