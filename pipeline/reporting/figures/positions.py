"""The sinusoidal positional encoding as a picture (3.5)."""

import numpy as np

from pipeline.reporting.figures.style import COLOURS, Figure, axes, drawn, opacity
from transformer.layers import sinusoids

POSITIONS, D_MODEL = 50, 512


def positional_encoding(positions: int = POSITIONS, d_model: int = D_MODEL) -> Figure:
    table = sinusoids(positions, d_model).numpy()
    pixels = np.where((table > 0)[..., None], opacity(table, COLOURS[0]), opacity(-table, COLOURS[1]))
    canvas, plot = axes(7.2, 3.0)
    plot.imshow(pixels, aspect="auto", interpolation="none", extent=(0, d_model, positions, 0))
    plot.grid(False)
    plot.set(xlabel="dimension", ylabel="position")
    caption = (
        f"Sinusoidal positional encoding (3.5) of {positions} positions in {d_model} dimensions: blue from 0 to 1, orange "
        "from 0 to −1. Even dimensions are sines, odd ones cosines; the wavelength grows with the dimension."
    )
    alt = "Waves along the positions in the first dimensions, and columns of nearly one colour in the last."
    return drawn("positions", canvas, caption, alt)
