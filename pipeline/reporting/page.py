"""The report's pages as HTML: all that is known of the runs of params.yaml, and of all runs by study.

The pages embed their pictures, and need no network and no script. They also show times, hardware and commits, which the
report's other files leave out.
"""

import bz2
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from pipeline.reporting import attention, changes, claims, figures, paper_tables, run_tables, scales, studies, warned
from pipeline.reporting.results import Results
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import FORMULA, Table, escaped, markdown
from pipeline.settings.blocks import described
from pipeline.settings.languages import right_to_left, tag
from pipeline.settings.params import text_corpus
from pipeline.settings.registry import parts
from pipeline.settings.scoring import scoring
from pipeline.text.evaluation import EvaluationSet

TEMPLATES = Path(__file__).parent / "templates"
MODULES = figures, paper_tables, run_tables, studies  # for the templates
Line = tuple[str, str, str]  # a label, a language and a text in it


def page(template: str, **content: Any) -> str:
    """Return a page. `content` has the views, and the `runs` to which tables link."""
    loader, escape = FileSystemLoader(TEMPLATES), select_autoescape()
    jinja = Environment(loader=loader, autoescape=escape, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters |= {"order": order, "prose": prose, "tag": tag, "markdown": markdown, "escaped": escaped}
    jinja.tests["right_to_left"] = right_to_left
    jinja.globals |= {module.__name__.rpartition(".")[2]: module for module in MODULES}
    jinja.globals |= {"described": described, "count": count, "of_extras": of_extras}
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


def views(params: Mapping[str, Any], results: Results, scores: Path, folder: Path, sets: Path) -> dict[str, Any]:
    """All that a report shows, by the names in its templates.

    `scores` is the folder of the score files, `folder` is results/, and `sets` is the folder of the evaluation sets.
    """
    known, own, settings = studies.studies(params, results), results.of(results.selected), scoring(params)
    selection = own_studies(params, own)
    compared, at_scales = changes.comparison(known, results, settings), scales.measured(known, results)
    found = [studies.headline(params, study) for study in known]
    if compared:
        found = [claims.headline(compared, each) if each.study == compared.study.name else each for each in found]
    several = [study for study in selection if len(own.curves.keys() & set(study.runs)) > 1]
    translations = {str(run): scores / str(run) / "translations" for run in own.runs.index}
    return {
        "params": params,
        "results": results,
        "own": own,
        "warned": warned.of_stages(params, scores),
        "recorded": known,
        "selection": [(each, claims.against_first(changes.tested(changes.of_study(each), settings))) for each in selection],
        "headlines": [*found, *studies.not_done(params, results)],
        "own_headlines": [studies.headline(params, study) for study in selection if study.results.scored],
        "table1": paper_tables.table1(folder / "layers/layers.json"),
        "table2": paper_tables.table2(results),
        "table3": paper_tables.table3(results),
        "toolkits": paper_tables.toolkits(results),
        "claims": claims.claims_table(compared) if compared else None,
        "smoothing": claims.smoothing(compared) if compared else None,
        "example": next(filter(None, (attention.example(*each) for each in translations.items())), None),
        "changes": figures.changes(compared) if compared else None,
        "scales": scales.tables(at_scales),
        "scales_plot": figures.at_scales(at_scales),
        "training_curves": [*map(figures.dev_losses, several), *figures.losses(own)],
        "translations": kept_translations(results, folder, sets),
        "attention": {run: attention.of_run(run, path) for run, path in translations.items()},
    }


def own_studies(params: Mapping[str, Any], own: Results) -> list[Study]:
    """The runs of params.yaml as studies, one for each text."""
    texts = own.runs["corpus"].map(lambda corpus: text_corpus(params, corpus))
    groups = own.runs.groupby(texts, sort=False).groups.items()
    return [Study(text, own.of(names), list(names), {}, {}) for text, names in groups]


def of_extras(params: Mapping[str, Any], results: Results, selected: bool) -> Iterator[tuple[str, str, list[Table]]]:
    """The folder, the title and the tables of each extra with a section: of the entries of params.yaml, or the others."""
    for section in parts("pipeline.extras.*.section"):
        names, files = {name for block in section.BLOCKS for name in params[block]}, results.extras[section.FOLDER]
        if shown := {name: each for name, each in files.items() if (name in names) == selected}:
            yield section.FOLDER, section.TITLE, section.tables(shown)


def kept_translations(results: Results, folder: Path, sets: Path) -> dict[str, list[list[Line]]]:
    """Each sentence of the test sets in `sets`, by corpus: source, reference and the translations that `folder` keeps.

    A run counts if a run of params.yaml has equal training data, and if the set has as many lines as its translation.
    """
    found: dict[str, list[list[Line]]] = {}
    used = results.runs.loc[results.selected, "data"].dropna()
    for run, corpus in results.runs.loc[results.runs["data"].isin(used), "corpus"].items():
        kept, chosen = folder / f"translations/{run}.txt.bz2", sets / f"{corpus}-test"
        if kept.is_file() and chosen.is_dir():
            lines, test = bz2.decompress(kept.read_bytes()).decode("utf-8").split("\n")[:-1], EvaluationSet.open(chosen)
            labels = list(zip(("source", "reference"), test.languages))
            rows = [[(*label, line) for label, line in zip(labels, pair)] for pair in zip(*test.lines("raw"))]
            if len(rows) == len(lines):
                for row, line in zip(found.setdefault(corpus, rows), lines):
                    row.append((str(run), test.languages[1], line))
    return found
