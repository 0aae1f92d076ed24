"""Lines of a plot, labelled at their ends. Their colours and dashes show the settings that a study varies."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.studies import Study

INK = "#2b2f36"
COLOURS = ("#3f7fd0", "#d97b29", "#2f9e6e", "#c9536b", "#8c6fd1", "#2b9fb3", "#a3872c", "#7d8694")
DASHES = ("-", "--", ":", "-.")
APART = 0.062  # distance of two labels, as a part of the height of a plot of 3.3 inches
LOGARITHMIC = 3.0  # the axis is logarithmic if the ratio of the largest to the smallest loss is above this


@dataclass(frozen=True)
class Line:
    name: str  # its label; without a name it has none
    steps: Sequence[float]
    values: Sequence[float]
    colour: str = COLOURS[0]
    dashes: str = "-"


def draw(plot: Axes, lines: Sequence[Line], logarithmic: bool = True) -> None:
    """Draw the lines and label them beside the plot. A label is as near to the line's end as other labels permit."""
    lines = [line for line in lines if line.values]
    for line in lines:
        plot.plot(line.steps, line.values, color=line.colour, linestyle=line.dashes)
    every = [value for line in lines for value in line.values]
    if every and logarithmic and min(every) > 0 and max(every) / min(every) > LOGARITHMIC:
        plot.set_yscale("log")
        ticks = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 2, 3, 5, 7)]
        plot.set_yticks([tick for tick in ticks if min(every) * 0.9 <= tick <= max(every) * 1.1])
        plot.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        plot.yaxis.set_minor_locator(NullLocator())
        plot.yaxis.set_minor_formatter(NullFormatter())
    plot.set_ylim(plot.get_ylim())  # fixed, so that labels do not change it
    apart = APART * 3.3 / plot.figure.figure.get_figheight()
    named = [line for line in lines if line.name]
    heights = [height(plot, line.values[-1]) for line in named]
    for line, place in zip(named, spread(heights, apart)):
        plot.annotate(
            line.name,
            xy=(line.steps[-1], line.values[-1]),
            xytext=(1.03, place),
            textcoords="axes fraction",
            color=line.colour,
            fontsize=9,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": line.colour,
                "linewidth": 0.6,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def height(plot: Axes, value: float) -> float:
    """Return the height of a value in the plot, from 0 at the bottom to 1 at the top."""
    return float((plot.transData + plot.transAxes.inverted()).transform((plot.get_xlim()[0], value))[1])


def spread(places: Sequence[float], apart: float) -> list[float]:
    """Move places to a distance of at least `apart`. They keep their order, and if possible stay between 0 and 1."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, place in pairwise(order):
        moved[place] = max(moved[place], moved[before] + apart)
    if order and moved[order[-1]] > 1:
        moved[order[-1]] = 1.0
        for place, after in zip(order[-2::-1], order[::-1]):
            moved[place] = min(moved[place], moved[after] - apart)
    return moved


def looks(study: Study, runs: Sequence[Evidence]) -> list[tuple[str, str]]:
    """Colour and dashes of each run.

    With two factors, such as normalisation and schedule, the colour shows the value of the first, the dashes that of the
    second. Otherwise, runs that differ from the base in the same factors have the same colour and different dashes. The
    seed is no factor.
    """
    factors = factors_of(study)
    if len(factors) == 2:
        values = [list(dict.fromkeys(value(run, factor) for run in runs)) for factor in factors]
        places = [[known.index(value(run, factor)) for known, factor in zip(values, factors)] for run in runs]
    else:
        changed = [tuple(factor for factor in factors if value(run, factor) != value(study.base, factor)) for run in runs]
        kinds = list(dict.fromkeys(changed))
        places = [[kinds.index(kind), changed[:number].count(kind)] for number, kind in enumerate(changed)]
    number = len(COLOURS)  # the colours repeat with other dashes
    return [(COLOURS[colour % number], DASHES[(dash + colour // number) % len(DASHES)]) for colour, dash in places]


def factors_of(study: Study) -> list[tuple[str, ...]]:
    """Return the factors: groups of settings that vary only together."""
    together: dict[tuple, list[str]] = {}
    for key in study.varied():
        if key == "seed":
            continue
        seen = list(dict.fromkeys(str(run.settings.get(key)) for run in study.runs))
        pattern = tuple(seen.index(str(run.settings.get(key))) for run in study.runs)
        together.setdefault(pattern, []).append(key)
    return [tuple(keys) for keys in together.values()]


def value(run: Evidence, factor: Sequence[str]) -> tuple:
    return tuple(str(run.settings.get(key)) for key in factor)


def shared(names: Sequence[str]) -> list[str]:
    """Return the first words that all names share. Words are separated by hyphens."""
    words = zip(*(name.split("-") for name in names))
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, words)]


def common_name(runs: Sequence[Evidence]) -> str:
    """Return the words that the names of the runs share, or the first name if they share none."""
    return "-".join(shared([run.run for run in runs])) or runs[0].run


def short(names: Sequence[str]) -> list[str]:
    """Return the names without their common first words. A name without other words becomes `base`."""
    start = len(shared(names)) if len(names) > 1 else 0
    return ["-".join(name.split("-")[start:]) or "base" for name in names]
