"""A table of the report: a data frame with a title and notes, and its renderings as text, CSV, Markdown and LaTeX.

CSV holds the frame itself. The other renderings round numbers, show a score with its interval (the columns `LABEL low` and
`LABEL high` beside `LABEL`), and show a missing value as a dash.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from pipeline.scoring.intervals import Score
from pipeline.settings.score_files import rounded

DASH = "–"
DIGITS = 10  # significant digits of a number: versions of Python and numpy differ in the last of 17 digits of a sum
ENDS = re.compile(" (low|high)$")  # of the labels of columns with the ends of intervals
FORMULA = re.compile(r"O\(.*\)|n\^\S+ d\^\S+")  # an order of growth: O(n^2 d), n^1.98 d^1.02
MOST_DIGITS = 1e9  # a larger number is shown as a power of ten

MATHEMATICS = {"d_model": r"d_{\text{model}}", "d_ff": r"d_{\text{ff}}", "P_drop": r"P_{\text{drop}}"}
MATHEMATICS |= {"eps_ls": r"\epsilon_{ls}", "N": "N", "h": "h", "d_k": "d_k", "d_v": "d_v"}
SPECIAL = {character: f"\\{character}" for character in "&%$#_{}"}
SPECIAL |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", DASH: "--"}


@dataclass(frozen=True)
class Table:
    """`name` is the name of its file. `places` has the decimals of columns with other than two.

    Columns in `given` hold numbers as someone else states them, with all their digits. The rows with a value in a column of
    `ours` are marked. `grouped` puts a rule where the first cell changes.
    """

    name: str
    title: str
    frame: pd.DataFrame
    notes: Sequence[str] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    given: Sequence[str] = ()
    ours: Sequence[str] = ()
    grouped: bool = False

    @cached_property
    def labels(self) -> list[str]:
        """The shown columns: all but the ends of intervals."""
        return [label for label in self.frame if not ENDS.search(label)]

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of numbers; an empty column is one, unless it is one of names of runs."""
        known = {label: self.frame[label].dropna() for label in self.labels if not label.endswith("run")}
        return [label for label in known if known[label].map(is_number).all() or label in self.given]

    @cached_property
    def cells(self) -> list[dict[str, tuple[str, str]]]:
        """The rows by label: each cell as text, and its interval or an empty text."""
        return [{label: self.shown(row, label) for label in self.labels} for row in self.rows()]

    def shown(self, row: Mapping[str, Any], label: str) -> tuple[str, str]:
        if pd.isna(value := row[label]):
            return DASH, ""
        text = self.number(value, label) if is_number(value) else str(value)
        return text, interval(row.get(f"{label} low"), row.get(f"{label} high"), self.places.get(label, 2))

    def number(self, value: float, label: str) -> str:
        if label in self.given:
            return str(value)
        if abs(value) >= MOST_DIGITS:
            return re.sub(r"e\+?0*(\d+)$", r"e\1", f"{value:.1e}")
        places = self.places.get(label, 2)
        if 0 < value < 10**-places / 2:  # a p-value is not 0
            return f"< {10**-places:.{places}f}"
        return f"{value:,}" if isinstance(value, int) else rounded(value, places, ",")

    @cached_property
    def marked(self) -> list[bool]:
        return list(self.frame[list(self.ours)].notna().any(axis=1))

    def rows(self) -> list[dict[str, Any]]:
        return self.frame.to_dict("records")

    def starts_group(self, place: int) -> bool:
        """Whether there is a rule above row `place`."""
        return self.grouped and place > 0 and self.frame.iloc[place, 0] != self.frame.iloc[place - 1, 0]

    @property
    def csv(self) -> str:
        return self.frame.to_csv(index=False, lineterminator="\n")


def table(
    name: str, title: str, rows: Sequence[Mapping[str, Any]] | pd.DataFrame, notes: Sequence[str] = (), **look: Any
) -> Table:
    """The table of these rows, whose numbers are rounded to DIGITS significant digits. `look` are entries of Table."""
    frame = pd.DataFrame(rows, dtype=object)
    for label in frame:
        values = [float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for value in frame[label]]
        frame[label] = pd.Series(values, frame.index, dtype=object)
    return Table(name, title, frame, notes, **look)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def with_ends(label: str, score: Score | None) -> dict[str, Any]:
    """The cells of a score and of the ends of its interval."""
    return dict(zip((label, f"{label} low", f"{label} high"), score or (None, None, None)))


def interval(low: float | None, high: float | None, places: int = 2) -> str:
    """An interval, `26.51–28.02` or `-1.20 to 0.31`: a dash beside a minus sign is hard to read. Empty if not known."""
    if low is None or high is None or pd.isna(low):
        return ""
    return f"{rounded(low, places)}{' to ' if low < 0 else DASH}{rounded(high, places)}"


def texts(table: Table) -> list[list[str]]:
    """The cells of the table as text."""
    return [[f"{text} ({between})" if between else text for text, between in row.values()] for row in table.cells]


def markdown(table: Table) -> str:
    """The table under a heading, readable on GitHub and as text."""
    lines = [[escaped(label) for label in table.labels]]
    lines.append(["---:" if label in table.numbers else "---" for label in table.labels])
    lines += [[escaped(cell) for cell in row] for row in texts(table)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([f"## {table.title}", "", body, *(f"\n{escaped(note)}" for note in table.notes)]) + "\n"


def escaped(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", " ".join(text.split()))


def latex(table: Table) -> str:
    """A tabular for \\input. It needs the packages booktabs and amsmath, and a Unicode engine for Unicode text."""
    head = [f"${MATHEMATICS[label]}$" if label in MATHEMATICS else latex_text(label) for label in table.labels]
    cells = [list(map(latex_cell, row)) for row in texts(table)]
    for place, row in enumerate(cells):
        row[0] = rf"\midrule{chr(10)}{row[0]}" if table.starts_group(place) else row[0]
    form = "".join("r" if label in table.numbers else "l" for label in table.labels)
    body = pd.DataFrame(cells, columns=head).to_latex(index=False, escape=False, column_format=form)
    return "".join(f"% {line}\n" for line in (table.title, *table.notes)) + body


def latex_cell(text: str) -> str:
    if re.fullmatch(r"\d\.\de\d+", text):
        return "${}\\cdot10^{{{}}}$".format(*text.split("e"))
    if FORMULA.fullmatch(text):
        raised = re.sub(r"\^(-?[\d.]+)", r"^{\1}", text)
        return f"${raised.replace('log', chr(92) + 'log')}$"
    return latex_text(text)


def latex_text(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
