"""The parts of the report's pages, and their HTML: pages that embed their pictures and need no network and no script.

The pages also show times, hardware and commits, which the report's other files leave out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.reporting.figures.style import Figure
from pipeline.reporting.results import Results
from pipeline.reporting.run_tables import all_scores, described
from pipeline.reporting.studies import Headline
from pipeline.reporting.tables import FORMULA
from pipeline.workflow.times import duration

TEMPLATES = Path(__file__).parent / "templates"
SUBSCRIPTS = {"d_model": "model", "d_ff": "ff", "d_k": "k", "d_v": "v", "P_drop": "drop", "eps_ls": "ls"}


@dataclass(frozen=True)
class Cards:
    headlines: Sequence[Headline]


@dataclass(frozen=True)
class Pictures:
    """`maps` are shown in their full size, beside each other."""

    figures: Sequence[Figure]
    maps: bool = False


@dataclass(frozen=True)
class Sample:
    """A source, its reference and translations: label, language and text of each."""

    lines: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Facts:
    entries: dict[str, Any]


@dataclass(frozen=True)
class Fold:
    """Items that are shown on demand."""

    title: str
    items: Sequence[Any]
    about: str = ""
    id: str = ""
    open: bool = False


@dataclass(frozen=True)
class Section:
    """`items` are tables and instances of the classes above. A text becomes a paragraph."""

    id: str
    title: str
    items: Sequence[Any] = field(default_factory=list)


def page(
    title: str, lede: str, sections: Sequence[Section], other: tuple[str, str], runs: Sequence[str], digest: str
) -> str:
    """Return a page as HTML. `other` is the file and the title of another page. `digest` identifies the results."""
    jinja = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    jinja.filters |= {"order": order, "prose": prose, "heading": heading, "kind": lambda item: type(item).__name__}
    return jinja.get_template("page.html").render(
        title=title,
        lede=lede,
        sections=[section for section in sections if section.items],
        other=other,
        runs=set(runs),
        digest=digest,
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
    )


def order(text: str) -> str:
    """Mark exponents as superscripts and bases of logarithms as subscripts: O(n^2 d), n^1.98 d^1.02, O(log_k n), 3.3e18."""
    if power := re.fullmatch(r"(\d\.\d)e(\d+)", text):
        return Markup("{} × 10<sup>{}</sup>").format(*power.groups())
    if not FORMULA.fullmatch(text):
        return text
    raised = re.sub(r"\^(-?[\d.]+)", r"<sup>\1</sup>", str(escape(text)))
    return Markup(re.sub(r"_(\w)", r"<sub>\1</sub>", raised))


def prose(text: str) -> str:
    """Mark names in backticks as code, and the exponents of n and d as superscripts."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\b([nd])\^(-?\d[\d.]*\d|\d)", r"\1<sup>\2</sup>", marked))


def heading(label: str) -> str:
    """Return the label of a column. Settings such as d_model have a subscript, as in the paper."""
    if label not in SUBSCRIPTS:
        return label.replace("-", "\N{NON-BREAKING HYPHEN}")
    letter = "ε" if label.startswith("eps") else label[0]
    return Markup("<i>{}</i><sub>{}</sub>").format(letter, SUBSCRIPTS[label])


def origin(results: Results, name: str) -> Fold:
    """The origin of a run's numbers, and all of its scores with their signatures."""
    run, scores = results.runs.loc[name], []
    trained = "not trained"
    if steps := run["trained steps"]:
        trained = f"{steps:,} steps" + (f" in {duration(run['seconds'])}" if run["seconds"] else "")
        table = all_scores(results.of([name]))
        scores = [replace(table, name=f"scores-{name}", title=f"Scores of {name}", frame=table.frame.drop(columns="run"))]
    reason = f" ({run['cost reason']})" if run["cost reason"] else ""
    model = ", ".join(filter(None, (run["model"], described(run["differences"]))))
    facts = {"corpus": run["corpus"], "model": model, "trained": trained}
    facts |= {"tokens/s": run["tokens/s"], "hardware": run["hardware"], "commit": run["commit"]}
    facts |= {
        "FLOPs, counted": run["FLOPs, counted"],
        "FLOPs, by the paper's estimate": f"{run['cost flops'] or '–'}{reason}",
    }
    facts |= {"data": run["data"], "settings": run["settings"]}
    line = filter(None, (run["corpus"], trained, run["hardware"], (run["commit"] or "")[:10]))
    known = {label: "–" if value is None or pd.isna(value) else value for label, value in facts.items()}
    return Fold(name, [Facts(known), *scores], " · ".join(line), id=f"run-{name}")
