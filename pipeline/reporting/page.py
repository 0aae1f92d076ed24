"""The report's pages as HTML. They embed their pictures, and need no network and no script.

The pages also show times, hardware and commits, which the report's other files leave out.
"""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.reporting import decodings, figures, paper_tables, run_tables, studies, views
from pipeline.reporting.figures import reliability
from pipeline.reporting.tables import FORMULA
from pipeline.settings.studies import described

TEMPLATES = Path(__file__).parent / "templates"
MODULES = decodings, figures, paper_tables, reliability, run_tables, studies, views  # for the templates


def page(template: str, **content: Any) -> str:
    """Return a page. `content` has the views, and the `runs` to which tables link."""
    loader = FileSystemLoader(TEMPLATES)
    jinja = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters |= {"order": order, "prose": prose}
    jinja.globals |= {module.__name__.rpartition(".")[2]: module for module in MODULES}
    jinja.globals |= {"described": described, "count": count}
    return jinja.get_template(template).render(**content, contents=[])  # the sections that are not empty


def count(number: int, noun: str, several: str = "") -> str:
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


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
