"""reports/index.html: the whole report on one page that embeds its pictures and needs no network and no script.

The page also shows times, hardware and commits, which the report's other files leave out.
"""

import base64
import dataclasses
import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pipeline.reporting.evidence import Evidence, Score
from pipeline.reporting.page_style import STYLE
from pipeline.reporting.run_tables import scores
from pipeline.reporting.tables import DASH, FORMULA, Column, Table, interval
from pipeline.reporting.variations import described

if TYPE_CHECKING:
    from pipeline.reporting.plots import Figure

SUBSCRIPTS = {"d_model": "model", "d_ff": "ff", "d_k": "k", "d_v": "v", "P_drop": "drop", "eps_ls": "ls"}
LONG = 40  # characters of a cell that is not to wrap


def page(runs: Sequence[Evidence], tables: Sequence[Table], figures: Sequence["Figure"]) -> str:
    """The whole page; tables and figures in their order on it."""
    slugs = {run.name: run.slug for run in runs}
    sections = [(table.name, table.title, table_box(table, slugs)) for table in tables]
    sections += picture_sections(runs, figures)
    sections.append(("runs", "Every run, and the origin of its numbers", "".join(map(run_part, runs))))
    links = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title, _ in sections)
    body = "".join(f'<section id="{key}"><h2>{escape(title)}</h2>{text}</section>\n' for key, title, text in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention Is All You Need, reproduced</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>Attention Is All You Need, reproduced</h1>
<p class="lede">{escape(lede(runs))}</p>
<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<main>
{body}</main>
<footer>Written by pipeline/report.py from the score files of the selected runs and from the records in results/. A dash
is a number that is not known.</footer>
</body>
</html>
"""


def lede(runs: Sequence[Evidence]) -> str:
    recorded, scored = sum(run.recorded for run in runs), sum(bool(run.scores) for run in runs)
    return (
        f"{count(len(runs), 'run')}, {scored} of them scored, {recorded} recorded earlier. The end of the page gives "
        "the origin of each run's numbers: commit, data, settings, hardware and signatures."
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def picture_sections(runs: Sequence[Evidence], figures: Sequence["Figure"]) -> list[tuple[str, str, str]]:
    """The sections of the page that hold pictures and samples, those that have any."""

    def of(section: str) -> list["Figure"]:
        return [figure for figure in figures if figure.section == section]

    of_studies, by_itself = pictures(of("studies")), pictures(of("runs"))
    curves = of_studies + (folded("Each run by itself", by_itself) if of_studies else by_itself)
    sections = [
        ("curves", "Training curves", curves),
        ("layers", "Time of a layer", pictures(of("layers"))),
        ("schedules", "Learning rate and positional encoding", pictures(of("schedules"))),
        ("attention", "Attention, every layer and head", attention_maps(of("attention"))),
        ("samples", "Translations of the test set", samples(runs)),
    ]
    return [section for section in sections if section[2]]


def table_box(table: Table, slugs: Mapping[str, str]) -> str:
    """A table in a scrolling box, with its notes. In a table with the paper's numbers, rows with ours stand out."""
    head = "".join(f"<th{mark(column)} scope=col>{heading(column.label)}</th>" for column in table.columns)
    papers = any(column.label.endswith("paper") for column in table.columns)
    rows = []
    for place, row in enumerate(table.rows):
        ours = papers and any(isinstance(value, Score) for value in row)
        kinds = " ".join(["group"] * table.starts_group(place) + ["ours"] * ours)
        cells = "".join(map(cell, row, table.columns, [slugs] * len(row)))
        rows.append(f'<tr class="{kinds}">{cells}</tr>' if kinds else f"<tr>{cells}</tr>")
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    box = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
    body = "\n".join(rows)
    return f"{box}<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>{notes}"


def mark(column: Column, text: str = "") -> str:
    """Numbers are aligned to the right; long text wraps."""
    if column.is_number:
        return ' class="n"'
    return ' class="t"' if len(text) > LONG else ""


def heading(label: str) -> str:
    if label in SUBSCRIPTS:
        letter = "ε" if label.startswith("eps") else label[0]
        return f"<i>{letter}</i><sub>{SUBSCRIPTS[label]}</sub>"
    return escape(label.replace("-", "\N{NON-BREAKING HYPHEN}"))


def cell(value: Any, column: Column, slugs: Mapping[str, str]) -> str:
    return f"<td{mark(column, column.show(value))}>{shown(value, column, slugs)}</td>"


def shown(value: Any, column: Column, slugs: Mapping[str, str]) -> str:
    text = escape(column.show(value))
    if value is None:
        return DASH
    if isinstance(value, Score):
        bounds = interval(value, column.places)
        return f"{value.score:.{column.places}f}" + (f" <small>{bounds}</small>" if bounds else "")
    if column.kind == "power":
        return "{} × 10<sup>{}</sup>".format(*text.split("e"))
    if column.kind == "run" and value in slugs:
        return f'<a href="#run-{slugs[value]}">{text}</a>'
    if column.kind in ("hash", "signature"):
        return f"<code>{text}</code>"
    return order(text) if FORMULA.fullmatch(text) else text


def order(text: str) -> str:
    """O(n^2 d) and n^1.98 d^1.02 with their exponents raised, and O(log_k n) with its base lowered."""
    return re.sub(r"_(\w)", r"<sub>\1</sub>", re.sub(r"\^(-?[\d.]+)", r"<sup>\1</sup>", text))


def picture(figure: "Figure") -> str:
    """A figure with its caption; an attention map keeps its size and scrolls."""
    source, alt = base64.b64encode(figure.svg.encode()).decode(), escape(figure.alt)
    image = f'<img src="data:image/svg+xml;base64,{source}" alt="{alt}">'
    if figure.section == "attention":
        image = f'<div class="scroll" tabindex="0" role="region" aria-label="{alt}">{image}</div>'
    return f"<figure><figcaption>{escape(figure.caption)}</figcaption>{image}</figure>"


def pictures(figures: Sequence["Figure"]) -> str:
    return f'<div class="pictures">{"".join(map(picture, figures))}</div>' if figures else ""


def folded(title: str, body: str, opened: bool = False) -> str:
    return f"<details{' open' * opened}><summary>{escape(title)}</summary>{body}</details>" if body else ""


def attention_maps(figures: Sequence["Figure"]) -> str:
    """The maps of each run, folded by sentence; the first is open."""
    parts = []
    for name, of_run in groupby(figures, key=lambda figure: figure.run):
        parts.append(f"<h3>{escape(name)}</h3>")
        for text, maps in groupby(of_run, key=lambda figure: figure.text):
            opened = len(parts) == 1
            parts.append(folded(text, f'<div class="maps">{"".join(map(picture, maps))}</div>', opened))
    return "".join(parts)


def samples(runs: Sequence[Evidence]) -> str:
    """The first sentences of each corpus's test set, with the translation of each of its runs."""
    parts = []
    for corpus in dict.fromkeys(run.corpus for run in runs if run.samples):
        of_corpus = [run for run in runs if run.corpus == corpus]
        source, target = next((run.languages for run in of_corpus if run.languages), ("", ""))
        sentences: dict[tuple[str, str], dict[str, str]] = {}
        for run in of_corpus:
            for sample in run.samples:
                pair = (sample.get("source", ""), sample.get("reference", ""))
                sentences.setdefault(pair, {})[run.name] = sample.get("translation", "")
        parts.append(f"<h3>{escape(corpus)}</h3>")
        parts += [sample_part(pair, texts, (source, target)) for pair, texts in sentences.items()]
    return "".join(parts)


def sample_part(pair: tuple[str, str], translations: Mapping[str, str], languages: tuple[str, str]) -> str:
    """One sentence, its reference, and the translation of each run."""
    source, target = map(escape, languages)
    rows = [f'<dt>source</dt><dd lang="{source}">{escape(pair[0])}</dd>']
    rows.append(f'<dt>reference</dt><dd lang="{target}">{escape(pair[1])}</dd>')
    for name, text in translations.items():
        rows.append(f'<dt>{escape(name)}</dt><dd class="translation" lang="{target}">{escape(text)}</dd>')
    return f'<div class="sample"><dl>{"".join(rows)}</dl></div>'


def run_part(run: Evidence) -> str:
    """The origin of a run's numbers, and all of its scores with their signatures."""
    tag = ' <span class="tag">recorded</span>' if run.recorded else ""
    facts = "".join(f"<dt>{label}</dt><dd>{value}</dd>" for label, value in facts_of(run).items())
    table = dataclasses.replace(scores([run]).without("run"), title=f"Scores of {run.name}", grouped=False)
    box = folded("Every score and its signature", table_box(table, {}))
    return f'<h3 id="run-{run.slug}">{escape(run.run)}{tag}</h3><dl>{facts}</dl>{box if run.scores else ""}'


def facts_of(run: Evidence) -> dict[str, str]:
    """The facts as HTML, a dash for a missing one."""
    timing, plain = run.parts["timing"] or {}, Column("")
    model = f"{run.model}, {described(run.differences)}" if run.differences else run.model
    rate = Column("", "count").show(timing.get("tokens_per_second"))
    time = f" in {Column('', 'duration').show(timing['seconds'])}, {rate} tokens/s" if timing else ""
    steps = Column("", "count").show(run.at("training", "steps"))
    hashes = {
        "commit": timing.get("commit"),
        "data": run.at("training", "data_sum"),
        "settings": run.at("training", "settings_sha256"),
    }
    return {
        "corpus": escape(run.corpus),
        "model": escape(model),
        "trained": f"{steps} steps{time}" if run.parts["training"] else DASH,
        "hardware": escape(plain.show(timing.get("hardware"))),
        "FLOPs": flops(run),
        **{label: f"<code>{escape(value)}</code>" if value else DASH for label, value in hashes.items()},
    }


def flops(run: Evidence) -> str:
    column = Column("", "power")
    counted, reason = run.at("flops", "analytic", "training_flops"), run.cost.reason
    return (
        f"{shown(counted, column, {})} counted, {shown(run.cost.flops, column, {})} by the paper's estimate"
        f"{f' ({escape(reason)})' if reason else ''}"
    )
