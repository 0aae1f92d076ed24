"""A table as rows of values, and its renderings as Markdown, CSV and LaTeX.

CSV holds unrounded values; the other renderings round them. None becomes a dash, and in CSV an empty field.
"""

import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Score
from pipeline.workflow.times import duration

DASH = "–"
FORMULA = re.compile(r"O\(.*\)|n\^\S+ d\^\S+")  # an order of growth: O(n^2 d), n^1.98 d^1.02


@dataclass(frozen=True)
class Column:
    """`kind`: text, run (a run's name), hash, signature, given (a number as it was given), count (1,234), number (with
    `places` decimals), power (3.3e18), duration (of seconds), or score.

    A score shows its 95% interval if it has one; in CSV the bounds are columns of their own. A `measured` column holds
    times, hardware or what follows from them, which differ between two runs with equal results. The page also draws the
    intervals of a `drawn` column.
    """

    label: str
    kind: str = "text"
    places: int = 2
    measured: bool = False
    drawn: bool = False

    @property
    def is_number(self) -> bool:
        return self.kind not in ("text", "run", "hash", "signature")

    def show(self, value: Any) -> str:
        """Return `value` as text, rounded and without mark-up."""
        if value is None:
            return DASH
        if self.kind == "count":
            return f"{value:,.0f}"
        if self.kind == "number":
            return f"{value:,.{self.places}f}"
        if self.kind == "power":
            return re.sub(r"e\+?0*(\d+)$", r"e\1", f"{value:.1e}")
        if self.kind == "score":
            between = interval(value, self.places)
            return f"{value.score:.{self.places}f}" + (f" ({between})" if between else "")
        if self.kind == "duration":
            return duration(value)
        if self.kind == "hash":  # its first digits; a suffix such as -edited stays
            return re.sub(r"^([0-9a-f]{10})[0-9a-f]*", r"\1", value)
        return str(value)


def interval(value: Score, places: int) -> str:
    """A score's interval, `26.51–28.02` or `-1.20 to 0.31`, or an empty text."""
    if value.low is None or value.high is None:
        return ""
    between = " to " if value.low < 0 else DASH  # a dash before or after a minus sign is hard to read
    return f"{value.low:.{places}f}{between}{value.high:.{places}f}"


@dataclass(frozen=True)
class Table:
    """`name` is the file's name; `grouped` puts a rule where the first cell changes; notes follow the table.

    `measured_notes` hold times or hardware, as measured columns do.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    grouped: bool = False
    measured_notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.name

    def shown(self) -> list[list[str]]:
        return [[column.show(value) for column, value in zip(self.columns, row)] for row in self.rows]

    def without(self, *labels: str) -> "Table":
        """The table without these columns."""
        kept = [place for place, column in enumerate(self.columns) if column.label not in labels]
        rows = [[row[place] for place in kept] for row in self.rows]
        return dataclasses.replace(self, columns=[self.columns[place] for place in kept], rows=rows)

    def without_empty(self, *labels: str) -> "Table":
        """The table without those of the named columns (default: all) that have no value in any row."""
        among = labels or [column.label for column in self.columns]
        return self.without(*(label for label in among if not self.values(label) - {None, ""}))

    def reproducible(self) -> "Table":
        """The table without measured columns and notes, which is equal whenever the results are equal."""
        kept = self.without(*(column.label for column in self.columns if column.measured))
        return dataclasses.replace(kept, measured_notes=())

    def with_measured_notes(self, notes: Iterable[str]) -> "Table":
        return dataclasses.replace(self, measured_notes=tuple(notes))

    def values(self, label: str) -> set[Any]:
        """The different values of a column."""
        (place,) = [place for place, column in enumerate(self.columns) if column.label == label]
        return {row[place] for row in self.rows}

    def scale(self, place: int) -> tuple[float, float] | None:
        """The range of a column's intervals; None if the column is not drawn or has fewer than two intervals."""
        drawn = [row[place] for row in self.rows if self.columns[place].drawn and row[place]]
        scores = [score for score in drawn if score.low is not None]
        low, high = min((one.low for one in scores), default=0), max((one.high for one in scores), default=0)
        return (low, high) if len(scores) > 1 and low < high else None

    @property
    def has_ours(self) -> bool:
        return any(map(self.is_ours, self.rows))

    @property
    def has_papers(self) -> bool:
        """Whether the table has numbers of the paper."""
        return any(re.search(r", paper(?!')", column.label) for column in self.columns)

    def is_ours(self, row: Sequence[Any]) -> bool:
        """Whether a row of a table with the paper's numbers has a score of ours."""
        return self.has_papers and any(isinstance(value, Score) for value in row)

    @property
    def all_notes(self) -> list[str]:
        return [*self.notes, *self.measured_notes]

    def starts_group(self, place: int) -> bool:
        """Whether there is a rule above row `place`."""
        return self.grouped and place > 0 and self.rows[place][0] != self.rows[place - 1][0]


def markdown(table: Table) -> str:
    """The table under a heading, readable on GitHub and as text."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    ruler = ["---:" if column.is_number else "---" for column in table.columns]
    body = [line([escape_markdown(cell) for cell in row]) for row in table.shown()]
    head = line([escape_markdown(column.label) for column in table.columns])
    notes = [f"\n{escape_markdown(note)}" for note in table.notes]
    return "\n".join([f"## {table.title}", "", head, line(ruler), *body, *notes]) + "\n"


def escape_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", " ".join(text.split()))


def comma_separated(table: Table) -> str:
    """The full values below one line of labels; `LABEL low` and `LABEL high` follow a score."""
    labels: list[str] = []
    rows: list[list[Any]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        is_score = column.kind == "score"
        labels += [column.label, f"{column.label} low", f"{column.label} high"] if is_score else [column.label]
        for cells, row in zip(rows, table.rows):
            cells += [getattr(row[place], end, None) for end in ("score", "low", "high")] if is_score else [row[place]]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([labels, *rows])
    return text.getvalue()


MATHEMATICS = {
    "N": "$N$",
    "h": "$h$",
    "d_model": r"$d_{\text{model}}$",
    "d_ff": r"$d_{\text{ff}}$",
    "d_k": "$d_k$",
    "d_v": "$d_v$",
    "P_drop": r"$P_{\text{drop}}$",
    "eps_ls": r"$\epsilon_{ls}$",
    "R²": "$R^2$",
}
SPECIAL = {character: f"\\{character}" for character in "&%$#_{}"}
SPECIAL |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", DASH: "--"}


def latex(table: Table) -> str:
    """A tabular for \\input. It needs the packages booktabs and amsmath, and a Unicode engine for Unicode text."""
    body = []
    for place, row in enumerate(table.shown()):
        body += [r"\midrule"] if table.starts_group(place) else []
        body.append(" & ".join(map(latex_cell, row, table.columns)) + r" \\")
    head = " & ".join(MATHEMATICS.get(c.label) or escape_latex(c.label) for c in table.columns) + r" \\"
    form = "".join("r" if column.is_number else "l" for column in table.columns)
    lines = [f"% {line}" for line in (table.title, *table.notes)]
    lines += [f"\\begin{{tabular}}{{{form}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def latex_cell(text: str, column: Column) -> str:
    if column.kind == "power" and text != DASH:
        return "${}\\cdot10^{{{}}}$".format(*text.split("e"))
    if column.kind == "text" and FORMULA.fullmatch(text):
        raised = re.sub(r"\^(-?[\d.]+)", r"^{\1}", text)
        return f"${raised.replace('log', chr(92) + 'log')}$"
    return escape_latex(text)


def escape_latex(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
