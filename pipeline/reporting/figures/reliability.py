"""How far the token probabilities of runs can be believed."""

from pipeline.reporting.figures.style import COLOURS, INK, Figure, axes, drawn
from pipeline.reporting.results import Results


def tokens(results: Results, of: str = "") -> list[Figure]:
    """How often the most probable token is right, by its probability, for each training. Seeds are shown by the first.

    The area of a point grows with its share of the tokens.
    """
    known = [name for name in results.runs.index if results.runs.at[name, "reliability"]]
    if not known:
        return []
    canvas, plot = axes(5.2, 4.2)
    plot.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    plot.set(xlabel="probability of the most probable token", ylabel="share in which it is right", xlim=(0, 1), ylim=(0, 1))
    shown = []
    for number, (name, *_) in enumerate(results.alike(known)):
        run, colour = results.runs.loc[name], COLOURS[number % len(COLOURS)]
        believed, right, counts = zip(
            *((each["probability"], each["accuracy"], each["tokens"]) for each in run["reliability"])
        )
        plot.plot(believed, right, color=colour, label=name)
        areas = [12 + 150 * count / sum(counts) for count in counts]
        plot.scatter(believed, right, s=areas, color=colour, alpha=0.5, linewidths=0)
        shown.append(f"{name} {run['calibration error']:.3f}")
    canvas.legend(loc="outside lower center", ncols=2)
    caption = (
        "Token probabilities on dev, last checkpoint: below the dotted line the model is over-confident, which label "
        f"smoothing is meant to prevent (5.4). Calibration errors: {', '.join(shown)}."
    )
    name = f"reliability-{of}" if of else "reliability"
    return [drawn(name, canvas, caption, f"Reliability curves of {len(shown)} trainings beside the diagonal.")]
