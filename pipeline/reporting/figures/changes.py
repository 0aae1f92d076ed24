"""A dot plot of Table 3: the effect of each change in the paper and, where a run of ours makes it, in ours.

The two panels have axes of their own, because the effects of a change in a small model on other data have another size.
"""

from matplotlib.figure import Figure as Canvas

from pipeline.reporting.changes import Comparison, described, published_difference
from pipeline.reporting.figures.style import COLOURS, INK, Figure, drawn
from pipeline.reporting.published import BASE
from pipeline.scoring.intervals import MEASURES

PAPER, OURS = "#7d8694", COLOURS[0]


def figure(compared: Comparison) -> Figure | None:
    """The rows of Table 3 with a successful change of ours, if there is one. Failed trainings are named in the caption."""
    shown = [(change, change.row) for change in compared.changes if change.row and not change.failed]
    if not shown:
        return None
    failed = ", ".join(change.text for change in compared.changes if change.row and change.failed)
    paper = [published_difference(row)[0] for _, row in shown]
    canvas = Canvas(figsize=(8.4, 1.5 + 0.36 * len(shown)), layout="constrained")
    theirs, own = canvas.subplots(1, 2)
    theirs.plot(paper, range(len(shown)), "o", color=PAPER)
    theirs.set_yticks(range(len(shown)), [f"{row.group}  {described(row.settings, BASE)}" for _, row in shown])
    theirs.set_title("the paper, on WMT14", fontsize=10, color=PAPER, loc="left")
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
