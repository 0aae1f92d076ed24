"""The search tree of one sentence, with the hypotheses of beam search above it, from the file search.json of a decoding.

A branch is a hypothesis: the index of its parent (-1 for the root, which is first), its piece and log-probability, whether
it was chosen and, in a tree search, its visits and value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.figures.style import COLOURS, INK, Figure, drawn

MOST = 40  # nodes of a tree that are drawn; the least visited are left out
ROW, COLUMN = 0.27, 0.85  # inches: the height of a leaf, the width of a token
BESIDE = 0.42  # distance from the middle of a piece to the line beside it, in columns
LONGEST = 9  # letters of a piece that are shown

Branch = Mapping[str, Any]


def figure(name: str, search: Mapping[str, Any]) -> Figure:
    """The hypotheses of the beam above the tree, both from left to right."""
    tree, beam = most_visited(search["tree"]), search["beam"]
    heights = [max(3, *(row + 1 for row in rows(part))) * ROW + 0.5 for part in (beam, tree)]
    tokens = max(map(max, map(depths, (beam, tree))))
    canvas = Canvas(figsize=(COLUMN * (tokens + 1.2), sum(heights)), layout="constrained")
    above, below = canvas.subplots(2, 1, height_ratios=heights)
    draw(above, beam, tokens, f"beam search, {search['beam_size']} hypotheses: log-probability")
    objective = search["objective"].replace("_", " ")
    draw(below, tree, tokens, f"tree search for {objective}, {search['simulations']} simulations: visits · mean value")
    caption = (
        f"{name}: what beam search and tree search looked at for “{search['source']}”. The translations are coloured. Of "
        f"the tree, the {len(tree)} most visited of {len(search['tree'])} hypotheses are drawn."
    )
    alt = f"Two trees of pieces for “{search['source']}”: that of beam search and that of the decoding {name}."
    return drawn(f"search-{name}", canvas, caption, alt)


def most_visited(tree: Sequence[Branch]) -> list[Branch]:
    """The chosen path and the most visited other branches, at most MOST in all, with new indices."""
    # A chosen branch may have more visits than its parent, since visits are counted up to the root of the search at that
    # time. A path that is too long is therefore cut by place: a parent comes before its children.
    path = [place for place, branch in enumerate(tree) if branch["chosen"]]
    others = [place for place, branch in enumerate(tree) if not branch["chosen"]]
    kept = sorted([*path, *sorted(others, key=lambda place: -(tree[place]["visits"] or 0))][:MOST])
    places = {old: new for new, old in enumerate(kept)} | {-1: -1}
    return [{**tree[place], "parent": places[tree[place]["parent"]]} for place in kept]


def depths(branches: Sequence[Branch]) -> list[int]:
    found: list[int] = []
    for branch in branches:
        found.append(0 if branch["parent"] < 0 else found[branch["parent"]] + 1)
    return found


def rows(branches: Sequence[Branch]) -> list[int]:
    """The row of each branch, from the top. Each leaf has its own row; a parent is in the row of its first child."""
    ranks = [(not branch["chosen"], -branch["log_probability"]) for branch in branches]
    order = sorted(range(len(branches)), key=ranks.__getitem__)
    found, row, waiting = [0] * len(branches), 0, [0]
    while waiting:
        place = waiting.pop()
        found[place] = row
        children = [child for child in order if branches[child]["parent"] == place]
        waiting += reversed(children)
        row += not children
    return found


def draw(plot: Axes, branches: Sequence[Branch], tokens: int, title: str) -> None:
    """Draw one tree. The width of a line grows with the visits."""
    across, down = depths(branches), rows(branches)
    most = max((branch["visits"] or 1 for branch in branches), default=1)
    for branch, x, y in zip(branches, across, down):
        colour, visits = COLOURS[1] if branch["chosen"] else INK, branch["visits"]
        if branch["parent"] >= 0:
            width, from_y = 0.6 + 2.4 * (visits or 0) / most, down[branch["parent"]]
            places = [x - 1 + BESIDE, x - 0.5, x - 0.5, x - BESIDE], [from_y, from_y, y, y]
            plot.plot(*places, color=colour, linewidth=width, solid_joinstyle="miter")
        piece = branch["piece"].replace("▁", "_")
        piece = piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "…"
        number = f"{branch['log_probability']:.1f}" if visits is None else f"{visits} · {branch['value'] or 0:.2f}"
        plot.text(x, y - 0.02, piece, ha="center", va="bottom", fontsize=8, color=colour, parse_math=False)
        plot.text(x, y + 0.02, number, ha="center", va="top", fontsize=6.5, color=colour)
    plot.set_title(title, fontsize=9, loc="left", parse_math=False)
    plot.set(xlim=(-0.6, tokens + 0.6), ylim=(max(down) + 0.8, -0.8))
    plot.axis("off")
