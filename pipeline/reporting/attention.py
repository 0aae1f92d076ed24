"""Attention maps of a few sentences of a run, as in the paper's appendix: every layer, head and weight."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pipeline.reporting.figures import COLOURS, Figure, axes, drawn, opacity
from transformer.config.reading import UserError
from transformer.files import read_json

GAP = 2  # cells between two maps
CELL = 0.155  # inches
LONGEST = 14  # letters of a piece that are shown
WORDY = 20  # pieces of the sentence in the picture of reports/README.md, if there is one
KINDS = {
    "encoder": ("encoder self-attention", "source", "source"),
    "decoder": ("decoder self-attention", "target", "target"),
    "cross": ("encoder-decoder attention", "translation", "source"),
}


def maps(folder: Path) -> Iterator[tuple[Mapping[str, Any], dict[str, np.ndarray]]]:
    """Yield the sentences in attention.json, each with its weights by kind: one layer, head, query and key an axis.

    Without weights, there is none.
    """
    path, description = folder / "attention.npz", folder / "attention.json"
    if not path.exists():
        return
    try:
        with np.load(path) as arrays:  # refuses pickled objects
            for number, sentence in enumerate(read_json(description)["sentences"]):
                sentence["translation"] = [*sentence["target"][1:], "</s>"]  # the position of a piece predicts the next one
                weights = {kind: arrays[f"{number}.{kind}"] for kind in KINDS}
                for kind, (_, queries, keys) in KINDS.items():
                    if weights[kind].shape[2:] != (len(sentence[queries]), len(sentence[keys])):
                        raise ValueError(f"{number}.{kind} has no weight for each piece in {description.name}")
                yield sentence, weights
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} is damaged: {error}; decode again") from None


def mosaic(weights_LHQK: np.ndarray) -> np.ndarray:
    """Join all maps into one array, with a row per layer, a column per head, and zeros between the maps."""
    layers, heads, queries, keys = weights_LHQK.shape
    padded = np.pad(weights_LHQK.astype(float), [(0, 0), (0, 0), (0, GAP), (0, GAP)])
    joined = padded.transpose(0, 2, 1, 3).reshape(layers * (queries + GAP), heads * (keys + GAP))
    return joined[:-GAP, :-GAP]


def attention_map(sentence: Mapping[str, Any], kind: str, weights_LHQK: np.ndarray) -> Canvas:
    """The maps of every layer and head, with the keys above them and the queries to their left."""
    _, rows, columns = KINDS[kind]
    queries, keys = sentence[rows], sentence[columns]
    layers, heads = weights_LHQK.shape[:2]
    pixels = opacity(mosaic(weights_LHQK), COLOURS[0])
    high, wide = pixels.shape[:2]
    canvas, plot = axes(CELL * wide + 1.6, CELL * high + 1.6)
    plot.imshow(pixels, aspect="equal", interpolation="none")
    across, down = range(0, wide, len(keys) + GAP), range(0, high, len(queries) + GAP)
    plot.set_xticks([x + place for x in across for place in range(len(keys))], shown(keys) * heads, rotation=90)
    plot.set_yticks([y + place for y in down for place in range(len(queries))], shown(queries) * layers)
    plot.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=7, length=0, pad=2)
    plot.grid(False)
    plot.spines[:].set_visible(False)
    for x, y in product(across, down):
        plot.add_patch(Rectangle((x - 0.5, y - 0.5), len(keys), len(queries), fill=False, edgecolor="#8a919c", lw=0.5))
    for head, x in enumerate(across if layers * heads > 1 else (), 1):
        plot.text(x + len(keys) / 2 - 0.5, high + 0.6, f"head {head}", ha="center", va="top", fontsize=8, weight="bold")
    for layer, y in enumerate(down if layers * heads > 1 else (), 1):
        place = wide + 0.2, y + len(queries) / 2 - 0.5
        plot.text(*place, f"layer {layer}", va="center", rotation=270, fontsize=8, weight="bold")
    return canvas


def shown(pieces: Sequence[str]) -> list[str]:
    cut = [piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "…" for piece in pieces]
    return [piece.replace("$", r"\$").replace("▁", "_") for piece in cut]


def plain(pieces: Sequence[str]) -> str:
    """The sentence that consists of these pieces."""
    return "".join(pieces).removesuffix("</s>").replace("▁", " ").strip()


def of_run(run: str, folder: Path) -> dict[str, list[Figure]]:
    """The attention maps of a run by sentence, one of each kind. Empty without weights."""
    found: dict[str, list[Figure]] = {}
    for number, (sentence, weights) in enumerate(maps(folder), 1):
        text = plain(sentence["source"])
        for kind, (what, rows, columns) in KINDS.items():
            layers, heads = weights[kind].shape[:2]
            caption = f"{what.capitalize()}: a row is a piece of the {rows}, a column one of the {columns} it attends to."
            alt = f"{what.capitalize()} of {run} in {layers} layers of {heads} heads, for “{text}”."
            canvas = attention_map(sentence, kind, weights[kind])
            found.setdefault(text, []).append(drawn(f"attention-{run}-{number}-{kind}", canvas, caption, alt))
    return found


def example(run: str, folder: Path) -> Figure | None:
    """One map for reports/README.md: encoder-decoder attention of the last layer, the mean of its heads."""
    fitting = sorted(maps(folder), key=lambda each: abs(len(each[0]["source"]) - WORDY))
    if not fitting:
        return None
    sentence, weights = fitting[0]
    canvas = attention_map(sentence, "cross", weights["cross"][-1:].astype(float).mean(axis=1, keepdims=True))
    text = f"Attention of the decoder to the source in {run}, for “{plain(sentence['source'])}”"
    caption = f"{text}: the last layer, mean of its heads. A row is a piece of the translation, a column one of the source."
    return drawn("attention", canvas, caption, f"{text}: the darker a cell, the larger the weight.")
