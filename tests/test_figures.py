"""The report's pictures: what is drawn where on a canvas, before it becomes SVG."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import AxLine

from pipeline.reporting import attention, figures
from pipeline.reporting.figures import COLOURS
from pipeline.reporting.published import TABLE3
from pipeline.scoring.bleu import PUBLISHED
from pipeline.scoring.intervals import Score
from transformer.files import write_json

NAN = float("nan")


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """A picture is its canvas and its caption."""
    for module in (attention, figures):
        monkeypatch.setattr(module, "drawn", lambda name, canvas, caption, alt: (canvas, caption))


def points(line) -> list[list[float]]:
    return line.get_xydata().tolist()


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def test_each_curve_is_that_of_its_run():
    losses = {"a": 5.0, "a-2": 4.0, "b": 0.5}
    found = {
        run: pd.DataFrame({"step": [1, 2, 3], "loss": [loss, loss - 1, NAN], "dev_loss": [NAN, NAN, loss + 1]})
        for run, loss in losses.items()
    }
    runs = pd.DataFrame({"label_smoothing": 0.1, "r_drop": 0.0}, index=list(losses))
    results = SimpleNamespace(curves=found, runs=runs, alike=lambda runs: [["a", "a-2"], ["b"]])
    canvas, caption = figures.loss(results, ["a", "a-2"])
    (plot,) = canvas.axes
    blue, orange = COLOURS[:2]
    assert {(line.get_color(), line.get_linestyle()): points(line) for line in plot.lines} == {
        (blue, "-"): [[1, 5], [2, 4]],
        (orange, "-"): [[3, 6]],
        (blue, "--"): [[1, 4], [2, 3]],
        (orange, "--"): [[3, 5]],
    }
    named = {line.get_label(): line.get_color() for line in plot.lines if not line.get_label().startswith("_")}
    assert named == {"training": blue, "dev": orange} and plot.get_yscale() == "linear"
    assert "(with label smoothing)" in caption
    study = SimpleNamespace(runs=list(losses), results=results, name="study", caveat=lambda: "")
    (plot,) = figures.dev_losses(study)[0].axes
    assert [(line.get_color(), points(line)) for line in plot.lines] == [
        (blue, [[3, 6]]),
        (blue, [[3, 5]]),
        (orange, [[3, 1.5]]),
    ]
    assert plot.get_yscale() == "log", "the largest loss is more than three times the smallest"


def test_a_point_of_a_reliability_curve_is_at_the_probability_and_the_accuracy():
    bins = [{"probability": 0.25, "accuracy": 0.2, "tokens": 9}, {"probability": 0.75, "accuracy": 0.8, "tokens": 3}]
    runs = {"a": (bins, 0.25), "b": (bins[:1], 0.5), "c": (None, None)}
    frame = pd.DataFrame(runs.values(), index=list(runs), columns=["reliability", "calibration error"], dtype=object)
    ((canvas, caption),) = figures.reliability(SimpleNamespace(runs=frame, alike=lambda names: [[name] for name in names]))
    (plot,) = canvas.axes
    assert [points(line) for line in plot.lines] == [[[0, 0], [1, 1]], [[0.25, 0.2], [0.75, 0.8]], [[0.25, 0.2]]]
    assert plot.collections[0].get_sizes().tolist() == [12 + 150 * 0.75, 12 + 150 * 0.25]
    assert "Calibration errors: a 0.250, b 0.500." in caption


def test_a_row_of_the_changes_has_the_effect_in_the_paper_and_ours():
    heads, failed, deep = (
        next(row for row in TABLE3 if row.settings[key] == value) for key, value in (("h", 1), ("d_k", 16), ("N", 8))
    )
    compared = [
        SimpleNamespace(row=heads, failed=False, text="one", bleu=Score(-2.0, -3.0, -1.5), same_ratio=True),
        SimpleNamespace(row=failed, failed=True, text="two", bleu=Score(-9.0, None, None), same_ratio=True),
        SimpleNamespace(row=deep, failed=False, text="three", bleu=Score(0.5, None, None), same_ratio=False),
    ]
    of = SimpleNamespace(changes=compared, study=SimpleNamespace(corpus="demo"), measure=PUBLISHED, sample=lambda: "")
    canvas, caption = figures.changes(of)
    theirs, own = canvas.axes
    (paper,) = (points(line) for line in theirs.lines if len(points(line)) == 2 and line.get_marker() == "o")
    np.testing.assert_allclose(paper, [[24.9 - 25.8, 0], [25.5 - 25.8, 1]])
    ours = [points(line) for line in own.lines if points(line) != [[0, 0], [0, 1]]]
    assert ours == [[[-2, 0]], [[-3, 0], [-1.5, 0]], [[0.5, 1]]]
    assert labels(own.yaxis) == ["one", "three *"] and "failed: two." in caption
    assert theirs.yaxis_inverted() and own.yaxis_inverted(), "row 0 is above"


def test_each_scale_has_its_effects_beside_the_papers():
    def scale(name, **rows):
        frame = pd.DataFrame.from_dict(rows, "index", columns=["effect", "low", "high", "paper"])
        return SimpleNamespace(name=name, planned=("N2", "h1", "learned"), rows=frame)

    heads, shallow = np.log(5.29 / 4.92), np.log(6.11 / 4.92)
    small = scale("small", h1=(0.05, 0.03, 0.07, heads), N2=(0.2, 0.1, 0.3, shallow))
    (canvas, _), beside = (
        figures.at_scales([small, scale("large"), scale("beside", N2=(0.25, NAN, NAN, shallow))]),
        figures.BESIDE,
    )
    (plot,) = canvas.axes
    marks = {line.get_label(): line for line in plot.lines if line.get_marker() in figures.MARKERS}
    assert {name: (line.get_marker(), line.get_color()) for name, line in marks.items()} == {
        "small": ("o", COLOURS[0]),
        "beside": ("^", COLOURS[2]),
    }
    np.testing.assert_allclose(points(marks["small"]), [[heads - beside, 0.05], [shallow - beside, 0.2]])
    np.testing.assert_allclose(points(marks["beside"]), [[shallow + beside, 0.25]])
    intervals = [bars.get_segments()[0].tolist() for bars in plot.collections if np.isfinite(bars.get_segments()).any()]
    np.testing.assert_allclose(intervals, [[[heads - beside, 0.03], [heads - beside, 0.07]]])
    assert [text.get_text() for text in plot.texts] == ["E  positions learned", "A  h 8 → 1", "C  N 6 → 2"]
    (diagonal,) = (line for line in plot.lines if isinstance(line, AxLine))
    assert (diagonal.get_xy1(), diagonal.get_slope()) == ((0, 0), 1) and figures.at_scales([]) is None


def test_the_opacity_of_a_cell_is_its_weight_beside_its_pieces(tmp_path):
    random, many = np.random.default_rng(1), [f"▁{number}" for number in range(40)]
    sentences = [{"source": [*source, "</s>"], "target": ["<s>", "▁c"]} for source in (["▁a", "▁b"], many[:19], many)]
    shapes = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}
    arrays = {
        f"{number}.{kind}": random.random((2, 3, *(len(sentence[side]) for side in sides)))
        for number, sentence in enumerate(sentences)
        for kind, sides in shapes.items()
    }
    np.savez(tmp_path / "attention.npz", **arrays)
    write_json(tmp_path / "attention.json", {"sentences": sentences})
    (first, weights), (_, others), _ = attention.maps(tmp_path)
    for kind in shapes:
        np.testing.assert_array_equal(weights[kind], arrays[f"0.{kind}"])
        np.testing.assert_array_equal(others[kind], arrays[f"1.{kind}"])
    (plot,) = attention.attention_map(first, "cross", weights["cross"]).axes
    (image,) = plot.images
    assert labels(plot.xaxis) == ["_a", "_b", "</s>"] * 3 and labels(plot.yaxis) == ["_c", "</s>"] * 2
    places = np.ix_(plot.get_yticks().astype(int), plot.get_xticks().astype(int))
    cells = weights["cross"].transpose(0, 2, 1, 3).reshape(4, 9)
    np.testing.assert_allclose(image.get_array()[..., 3][places] / 255, cells, atol=0.003)
    (plot,) = attention.example("run", tmp_path)[0].axes  # of the sentence whose length is nearest to 20 pieces
    np.testing.assert_allclose(plot.images[0].get_array()[..., 3] / 255, others["cross"][1].mean(0), atol=0.003)
