"""Bar plots of the differences of Table 3's rows from the base model, with the paper's bar and ours in each row."""

import operator
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from pipeline.reporting.deltas import FAILED, Comparison, Delta
from pipeline.reporting.evidence import Score
from pipeline.reporting.lines import COLOURS, INK
from pipeline.reporting.paper_tables import EN_DE, on
from pipeline.reporting.plots import Figure, axes, svg

PAPER, OURS = "#7d8694", COLOURS[0]
HEIGHT = 0.3  # of the paper's bar, in rows
CUT = {"bleu": FAILED, "perplexity": 100.0}  # BLEU or per cent; a longer bar of ours is cut
OFFSET = 0.17  # in rows: the paper's bar lies this far above the middle of the row, ours below it


def figures(compared: Comparison) -> list[Figure]:
    return [figure(compared, "bleu", "BLEU", "BLEU"), figure(compared, "perplexity", "dev perplexity", "%")]


def figure(compared: Comparison, name: str, what: str, unit: str) -> Figure:
    """Draw bars for each row of Table 3. Our axis is above. Both share one zero and, on the paper's corpus, one scale."""
    canvas, plot = axes(5.2, 5.6)
    above = plot.twiny()
    published = [getattr(delta, name) for delta in compared.deltas]
    rows = [(number, delta.ours) for number, delta in enumerate(compared.deltas)]
    value_of = operator.attrgetter("bleu.score" if name == "bleu" else name)  # of one of our runs
    every = [(*bar, own, value_of(own)) for number, runs in rows for bar, own in zip(bars(number, len(runs)), runs)]
    ours = [(place, height, own, value) for place, height, own, value in every if value is not None]
    plot.barh([place - OFFSET for place in range(len(published))], published, height=HEIGHT, color=PAPER)
    above.barh(
        [place for place, *_ in ours],
        [value for *_, value in ours],
        height=[height for _, height, *_ in ours],
        color=OURS,
    )
    cut = {own.run.name: f" ({value:+.0f}, cut)" for *_, own, value in ours if abs(value) > CUT[name]}
    whole = [(place, own, value) for place, _, own, value in ours if own.run.name not in cut]
    extents = [value for *_, value in whole]
    if name == "bleu":
        extents += intervals(above, [(place, own.bleu) for place, own, _ in whole])
    same = compared.study is not None and on(compared.study.corpus, EN_DE)
    limits(plot, above, published, extents, same)
    labels(plot, compared.deltas, cut)
    plot.set_xlabel(f"the paper, WMT14 ({unit})", color=PAPER)
    above.set_xlabel(f"ours, {compared.study.name} ({unit})" if compared.study else "ours: none yet", color=OURS)
    above.grid(False)
    above.spines["top"].set_visible(True)
    above.tick_params(axis="x", colors=OURS)
    caption = f"Table 3, rows A to E: the difference that each change of the base model makes in {what}."
    alt = f"Bars of the difference in {what} for {len(published)} rows of Table 3; {len(ours)} have a bar of ours."
    return Figure(f"deltas-{name}", "deltas", svg(canvas), f"{caption} {legend(compared, name)}", alt)


def bars(number: int, runs: int) -> list[tuple[float, float]]:
    """The place and the height of our bars. They share the space below the paper's bar of row `number`."""
    return [(number + OFFSET + HEIGHT * ((bar + 0.5) / runs - 0.5), HEIGHT / runs) for bar in range(runs)]


def intervals(above: Axes, ours: Sequence[tuple[float, Score]]) -> list[float]:
    """Draw the intervals of our differences. Returns their ends."""
    ends: list[float] = []
    for place, score in ours:
        if score.low is not None and score.high is not None:
            above.plot([score.low, score.high], [place] * 2, color=INK, linewidth=1.1)
            ends += [score.low, score.high]
    return ends


def limits(plot: Axes, above: Axes, published: Sequence[float], ours: Sequence[float], same: bool) -> None:
    """Set the limits of both axes so that their zeros are at the same place. With `same`, the limits are equal."""
    sides = [
        (max(0.0, -min(values)) * 1.06, max(0.0, max(values)) * 1.06)
        for values in (published, ours if any(ours) else published)
    ]
    if same:
        sides = [tuple(map(max, *sides))] * 2
    left = max(below / (below + over) for below, over in sides if below + over)
    right = max(over / (below + over) for below, over in sides if below + over)
    for axis, (below, over) in zip((plot, above), sides):
        unit = max(below / left if left else 0, over / right if right else 0)
        axis.set_xlim(-unit * left, unit * right)


def labels(plot: Axes, deltas: Sequence[Delta], cut: Mapping[str, str]) -> None:
    """Label each row with the paper's change on the left and ours on the right, and draw a rule between groups.

    `cut` maps the name of each run whose bar is cut to the text that follows its label.
    """
    plot.set_yticks(range(len(deltas)), [f"{delta.row.group}  {delta.change}" for delta in deltas])
    plot.set_ylim(len(deltas) - 0.5, -0.5)
    plot.grid(False, axis="y")
    plot.tick_params(axis="y", length=0)
    plot.axvline(0, color=INK, linewidth=0.8)
    for place, delta in enumerate(deltas):
        if place and deltas[place - 1].row.group != delta.row.group:
            plot.axhline(place - 0.5, color="#8a919c", linewidth=0.6)
        text = ", ".join(own.change + cut.get(own.run.name, "") for own in delta.ours)
        plot.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), color=OURS, fontsize=9, va="center")


def legend(compared: Comparison, name: str) -> str:
    if compared.study is None:
        return "Grey: the paper. No run of ours corresponds to a row yet."
    lines = ""
    if name == "bleu" and compared.has_intervals:
        lines = "The lines are 95% intervals of the difference, over seeds and sentences."
    scale = "" if on(compared.study.corpus, EN_DE) else "The paper's axis and ours have different scales and a common zero."
    ours = f"Blue: {compared.study.name}, on {compared.study.corpus}; {compared.sample()}."
    caveat = compared.study.caveat() if name == "perplexity" else ""
    said = "Last checkpoints on the dev sets. Grey: the paper, on WMT14.", ours, lines, scale, caveat
    return " ".join(filter(None, said))
