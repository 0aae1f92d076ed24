"""Attention maps of a few sentences of a run, as in the paper's appendix: every layer, head and weight.

A figure is an SVG with one small image of all its maps, one pixel per weight, and the pieces as text beside it.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from zipfile import BadZipFile

import numpy as np

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.lines import COLOURS, INK
from pipeline.reporting.plots import INK_ON_DARK, Figure, opacity, png
from pipeline.settings.score_files import entry
from transformer.config.reading import UserError
from transformer.files import read_json

# Pixels on the page.
CELL = 12
LETTER = 6.2  # width of a letter of a piece, at most
HALF_A_NAME = 24  # half the width of "layer 12"
OUTSIDE = 30  # for the numbers of layers and heads

GAP = 2  # cells between two maps
LONGEST = 14  # letters of a piece that are shown
ATTENTION = {
    "encoder": ("encoder self-attention", "source", "source"),
    "decoder": ("decoder self-attention", "target", "target"),
    "cross": ("encoder-decoder attention", "target", "source"),
}
STYLE = (
    f"text{{font:10px system-ui,'DejaVu Sans',sans-serif;fill:{INK}}}.b{{font-weight:600;font-size:11px}}"
    f"@media (prefers-color-scheme:dark){{text{{fill:{INK_ON_DARK}}}}}image{{image-rendering:pixelated}}"
    "path{fill:none;stroke:#8a919c;stroke-width:.6}"
)


@dataclass(frozen=True)
class Sentence:
    """An entry of attention.json: its line in the test set, and the pieces of the source and of the translation."""

    line: int
    source: tuple[str, ...]
    target: tuple[str, ...]


def mosaic(weights_LHQK: np.ndarray) -> np.ndarray:
    """Join all maps into one array, with a row per layer, a column per head, and zeros between the maps."""
    layers, heads, queries, keys = weights_LHQK.shape
    padded = np.pad(weights_LHQK.astype(float), [(0, 0), (0, 0), (0, GAP), (0, GAP)])
    joined = padded.transpose(0, 2, 1, 3).reshape(layers * (queries + GAP), heads * (keys + GAP))
    return joined[:-GAP, :-GAP]


def attention_map(weights_LHQK: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Return the maps of every layer and head as SVG, with the keys above them and the queries to their left."""
    layers, heads = weights_LHQK.shape[:2]
    pixels = opacity(mosaic(weights_LHQK), COLOURS[0])
    left, above = margin(queries), margin(keys)
    high, wide = CELL * pixels.shape[0], CELL * pixels.shape[1]
    across = [left + CELL * (len(keys) + GAP) * head for head in range(heads)]
    down = [above + CELL * (len(queries) + GAP) * layer for layer in range(layers)]
    frames = "".join(
        f"M{x} {y}h{CELL * len(keys)}v{CELL * len(queries)}h{-CELL * len(keys)}z" for x in across for y in down
    )
    image = base64.b64encode(png(pixels)).decode()
    width, height = left + wide + overhang(keys), above + high + overhang(queries)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
            f"<style>{STYLE}</style>",
            f'<image x="{left}" y="{above}" width="{wide}" height="{high}" href="data:image/png;base64,{image}"/>',
            f'<path d="{frames}"/>',
            *columns(across, above, keys),
            *rows(down, left, queries),
            "</svg>\n",
        ]
    )


def margin(pieces: Sequence[str]) -> int:
    """Pixels beside the maps, for their labels."""
    return round(LETTER * max(len(shown(piece)) for piece in pieces)) + OUTSIDE


def overhang(pieces: Sequence[str]) -> int:
    """Pixels by which the name of the last head or layer extends beyond its map; at least one, for the frame."""
    return max(1, HALF_A_NAME - CELL * len(pieces) // 2)


def shown(piece: str) -> str:
    return piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "…"


def columns(across: list[int], above: int, keys: Sequence[str]) -> Iterator[str]:
    """The keys above each head, rotated, and the head's number above them."""
    for head, x in enumerate(across, 1):
        yield f'<text class="b" x="{x + CELL * len(keys) / 2}" y="12" text-anchor="middle">head {head}</text>'
        for number, key in enumerate(keys):
            place = f"translate({x + CELL * number + 9} {above - 4}) rotate(-90)"
            yield f'<text transform="{place}">{escape(shown(key))}</text>'


def rows(down: list[int], left: int, queries: Sequence[str]) -> Iterator[str]:
    """The queries beside each layer, and the layer's number beside them."""
    for layer, y in enumerate(down, 1):
        place = f"translate(12 {y + CELL * len(queries) / 2}) rotate(-90)"
        yield f'<text class="b" transform="{place}" text-anchor="middle">layer {layer}</text>'
        for number, query in enumerate(queries):
            yield f'<text x="{left - 4}" y="{y + CELL * number + 9}" text-anchor="end">{escape(shown(query))}</text>'


def attention(run: Evidence) -> list[Figure]:
    """The attention maps of a run: one of each kind for each sentence."""
    if run.attention is None:
        return []
    path = run.attention / "attention.npz"
    description = path.with_suffix(".json")
    sentences = entry(read_json(description), "sentences", tuple[Sentence, ...], str(description))
    try:
        with np.load(path) as arrays:  # refuses pickled objects
            kept = {name: arrays[name] for name in arrays.files}
    except (ValueError, AttributeError, TypeError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} is damaged: {error}; decode again") from None
    figures = []
    for number, sentence in enumerate(sentences):
        for kind in ATTENTION:
            weights_LHQK = kept.get(f"{number}.{kind}")
            if weights_LHQK is None or not fits(weights_LHQK, sentence, kind):
                raise UserError(f"{path}: {number}.{kind} has no weight for each piece in {description}; decode again")
            figures.append(attention_figure(run, number, sentence, kind, weights_LHQK))
    return figures


def fits(weights_LHQK: np.ndarray, sentence: Sentence, kind: str) -> bool:
    """Whether there is a weight for every pair of pieces."""
    _, queries, keys = ATTENTION[kind]
    pieces = (len(getattr(sentence, queries)), len(getattr(sentence, keys)))
    shape = weights_LHQK.shape
    return len(shape) == 4 and 0 not in shape and shape[2:] == pieces


def attention_figure(run: Evidence, number: int, sentence: Sentence, kind: str, weights_LHQK: np.ndarray) -> Figure:
    name, queries, keys = ATTENTION[kind]
    picture = attention_map(weights_LHQK, getattr(sentence, queries), getattr(sentence, keys))
    caption = f"{name.capitalize()}: a row is a piece of the {queries}, a column the piece of the {keys} it attends to."
    layers, heads = weights_LHQK.shape[:2]
    text = plain(sentence.source)
    alt = f"{name.capitalize()} of {run.name} in {layers} layers of {heads} heads, for “{text}”."
    file = f"attention-{run.slug}-{number + 1}-{kind}"
    return Figure(file, "attention", picture, caption, alt, run=run.name, text=text)


def plain(pieces: Sequence[str]) -> str:
    """The sentence that consists of these pieces."""
    return "".join(pieces).removesuffix("</s>").replace("▁", " ").strip()
