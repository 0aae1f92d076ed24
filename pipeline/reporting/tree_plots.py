"""The search tree of one sentence, with the hypotheses of beam search above it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pipeline.reporting.evidence import read
from pipeline.reporting.lines import COLOURS, INK
from pipeline.reporting.plots import Figure, svg
from pipeline.settings.score_files import count, entry
from transformer.config.reading import UserError, convert

MOST = 40  # nodes of a tree that are drawn; the least visited are left out
ROW, COLUMN = 0.27, 0.85  # inches: the height of a leaf, the width of a token
BESIDE = 0.42  # distance from the middle of a piece to the line beside it, in columns
LONGEST = 9  # letters of a piece that are shown


@dataclass(frozen=True)
class Branch:
    """A hypothesis. `parent` is the index of its parent in the list, -1 for the root, which is first."""

    parent: int
    piece: str
    log_probability: float
    chosen: bool
    visits: int | None
    value: float | None


@dataclass(frozen=True)
class Trees:
    """The content of search.json: the search tree and the beam search of one sentence."""

    name: str
    objective: str
    simulations: int
    beam_size: int
    source: str
    tree: tuple[Branch, ...]
    beam: tuple[Branch, ...]


def selected(params: Mapping[str, Any], scores: Path) -> list[Trees]:
    """Return the trees of the decodings of params.yaml whose search.json exists and is not empty."""
    paths = {name: scores / "decodings" / name / "search.json" for name in params["decodings"]}
    return [of_file(name, path) for name, path in paths.items() if read(path)]


def of_file(name: str, path: Path) -> Trees:
    content, where = read(path), str(path)
    return Trees(
        name=name,
        objective=entry(content, "objective", str, where),
        simulations=count(content, "simulations", where),
        beam_size=count(content, "beam_size", where),
        source=entry(content, "source", str, where),
        **{key: branches(content.get(key), f"{where}: {key}") for key in ("tree", "beam")},
    )


def branches(content: Any, where: str) -> tuple[Branch, ...]:
    """Return the branches. Raises UserError if a branch does not follow its parent."""
    found = convert(tuple[Branch, ...], content, where)
    for place, branch in enumerate(found):
        if not (branch.parent == -1 if place == 0 else 0 <= branch.parent < place):
            raise UserError(f"{where}[{place}].parent: {branch.parent} is not possible; an earlier place is expected")
    return found


def figure(trees: Trees) -> Figure:
    """The hypotheses of the beam above the tree, both from left to right."""
    tree = most_visited(trees.tree)
    heights = [max(3, leaves(part)) * ROW + 0.5 for part in (trees.beam, tree)]
    tokens = max(map(max, map(depths, (trees.beam, tree))))
    canvas = Canvas(figsize=(COLUMN * (tokens + 1.2), sum(heights)), layout="constrained")
    above, below = canvas.subplots(2, 1, height_ratios=heights)
    draw(above, trees.beam, tokens, f"beam search, {trees.beam_size} hypotheses: log-probability")
    what = f"tree search for {trees.objective.replace('_', ' ')}, {trees.simulations} simulations: visits · mean value"
    draw(below, tree, tokens, what)
    caption = (
        f"{trees.name}: what beam search and tree search looked at for “{trees.source}”. The translations are coloured. "
        f"Of the tree, the {len(tree)} most visited of {len(trees.tree)} hypotheses are drawn."
    )
    alt = f"Two trees of pieces for “{trees.source}”: that of beam search and that of the decoding {trees.name}."
    return Figure(f"search-{trees.name}", "search", svg(canvas), caption, alt)


def most_visited(tree: Sequence[Branch]) -> list[Branch]:
    """Return the chosen path and the most visited other branches, at most MOST in all, with new indices."""
    # A chosen branch may have more visits than its parent, since visits are counted up to the root of the search at that
    # time. A path that is too long is therefore cut by place: a parent comes before its children.
    path = [place for place, branch in enumerate(tree) if branch.chosen]
    others = [place for place, branch in enumerate(tree) if not branch.chosen]
    kept = sorted([*path, *sorted(others, key=lambda place: -(tree[place].visits or 0))][:MOST])
    places = {old: new for new, old in enumerate(kept)} | {-1: -1}
    return [Branch(places[branch.parent], *list(vars(branch).values())[1:]) for branch in (tree[place] for place in kept)]


def depths(branches: Sequence[Branch]) -> list[int]:
    found: list[int] = []
    for branch in branches:
        found.append(0 if branch.parent < 0 else found[branch.parent] + 1)
    return found


def leaves(branches: Sequence[Branch]) -> int:
    return len(branches) - len({branch.parent for branch in branches if branch.parent >= 0})


def rows(branches: Sequence[Branch]) -> list[float]:
    """Return the row of each branch, from the top. Each leaf has its own row; a parent is in the row of its first child."""
    children: list[list[int]] = [[] for _ in branches]
    for place, branch in enumerate(branches):
        if branch.parent >= 0:
            children[branch.parent].append(place)
    for places in children:
        places.sort(key=lambda place: (not branches[place].chosen, -branches[place].log_probability))
    found, row, waiting = [0.0] * len(branches), 0, [0]
    while waiting:
        place = waiting.pop()
        found[place] = row
        waiting += reversed(children[place])
        row += not children[place]
    return found


def draw(plot: Axes, branches: Sequence[Branch], tokens: int, title: str) -> None:
    """Draw one tree. The width of a line grows with the visits."""
    across, down = depths(branches), rows(branches)
    most = max((branch.visits or 1 for branch in branches), default=1)
    for branch, x, y in zip(branches, across, down):
        colour = COLOURS[1] if branch.chosen else INK
        if branch.parent >= 0:
            width, from_y = 0.6 + 2.4 * (branch.visits or 0) / most, down[branch.parent]
            places = [x - 1 + BESIDE, x - 0.5, x - 0.5, x - BESIDE], [from_y, from_y, y, y]
            plot.plot(*places, color=colour, linewidth=width, solid_joinstyle="miter")
        plot.text(x, y - 0.02, shown(branch.piece), ha="center", va="bottom", fontsize=8, color=colour, parse_math=False)
        plot.text(x, y + 0.02, number(branch), ha="center", va="top", fontsize=6.5, color=colour)
    plot.set_title(title, fontsize=9, loc="left")
    plot.set(xlim=(-0.6, tokens + 0.6), ylim=(max(down) + 0.8, -0.8))
    plot.axis("off")


def shown(piece: str) -> str:
    text = piece.replace("▁", "_")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def number(branch: Branch) -> str:
    if branch.visits is None or branch.value is None:
        return f"{branch.log_probability:.1f}"
    return f"{branch.visits} · {branch.value:.2f}"
