"""The Jinja2 templates of the page. They escape every value except the style sheet.

The macro `cell` shows a value by the kind of its column, `box` shows a table and `picture` a figure. The style sheet is
in page_style.py.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from pipeline.reporting.tables import FORMULA, interval

SUBSCRIPTS = {"d_model": "model", "d_ff": "ff", "d_k": "k", "d_v": "v", "P_drop": "drop", "eps_ls": "ls"}
LONG = 40  # characters; a cell with a longer text wraps

MACROS = """
{%- macro cell(value, column, slugs, scale) -%}
  {%- if value is none -%}–
  {%- elif column.kind == "score" -%}
    {{ "%.*f" | format(column.places, value.score) }}
    {%- if value.low is not none %} <small>{{ interval(value, column.places) }}</small>
      {%- if scale -%}
        {%- set percent = 100 / (scale[1] - scale[0]) -%}
        <span class="interval" aria-hidden="true"><i style="left:{{ ((value.low - scale[0]) * percent) | round(1) }}%;right:
        {{- ((scale[1] - value.high) * percent) | round(1) }}%"></i><b style="left:
        {{- ((value.score - scale[0]) * percent) | round(1) }}%"></b></span>
      {%- endif -%}
    {%- endif -%}
  {%- elif column.kind == "power" -%}
    {%- set digits, exponent = column.show(value).split("e") -%}{{ digits }} × 10<sup>{{ exponent }}</sup>
  {%- elif column.kind == "run" and value in slugs -%}<a href="#run-{{ slugs[value] }}">{{ value }}</a>
  {%- elif column.kind in ("hash", "signature") -%}<code>{{ column.show(value) }}</code>
  {%- else -%}{{ column.show(value) | order }}
  {%- endif -%}
{%- endmacro -%}

{%- macro mark(column, text="") -%}
  {%- if column.is_number %} class="n"{% elif text | length > long %} class="t"{% endif -%}
{%- endmacro -%}

{%- macro tables(of, slugs) -%}
{%- for table in of %}<h3 id="{{ table.name }}">{{ table.title }}</h3>{{ box(table, slugs) }}{% endfor -%}
{%- endmacro -%}

{%- macro box(table, slugs) -%}
<div class="scroll" tabindex="0" role="region" aria-label="{{ table.title }}"><table>
<thead><tr>{% for column in table.columns %}<th{{ mark(column) }} scope=col>{{ column.label | heading }}</th>
{%- endfor %}</tr></thead><tbody>
{% for row in table.rows -%}
<tr class="{{ "group " if table.starts_group(loop.index0) }}{{ "ours" if table.is_ours(row) }}">
{%- for value in row -%}
{%- set column = table.columns[loop.index0] -%}
<td{{ mark(column, column.show(value)) }}{% if column.kind == "score" %} data-score{% endif %}>
{{- cell(value, column, slugs, table.scale(loop.index0)) }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{%- for note in table.all_notes %}<p class="note">{{ note | prose }}</p>{% endfor -%}
{%- endmacro -%}

{%- macro picture(figure) -%}
<figure{% if figure.wide %} class="wide"{% endif %}><figcaption>{{ figure.caption | prose }}</figcaption>
{%- if figure.section == "attention" -%}
<div class="scroll" tabindex="0" role="region" aria-label="{{ figure.alt }}">{{ image(figure) }}</div>
{%- else -%}{{ image(figure) }}{%- endif -%}
</figure>
{%- endmacro -%}

{%- macro image(figure) -%}
<img data-name="{{ figure.name }}" src="data:image/svg+xml;base64,{{ figure.svg | base64 }}" alt="{{ figure.alt }}">
{%- endmacro -%}

{%- macro pictures(figures) -%}
{%- if figures -%}<div class="pictures">{% for figure in figures %}{{ picture(figure) }}{% endfor %}</div>{%- endif -%}
{%- endmacro -%}
"""

SECTIONS = """
{%- from "macros" import box, picture, pictures with context -%}

{%- macro curves(of) -%}
  {{ pictures(of.studies) }}
  {%- if of.studies and of.runs -%}
    <details><summary>Each run by itself, with all of its seeds</summary>{{ pictures(of.runs) }}</details>
  {%- else -%}{{ pictures(of.runs) }}{%- endif -%}
{%- endmacro -%}

{%- macro attention(figures) -%}
  {%- for run, of_run in figures | in_groups("run") -%}
    {%- set first = loop.first -%}<h3>{{ run }}</h3>
    {%- for text, maps in of_run | in_groups("text") -%}
      <details{{ " open" if first and loop.first }}><summary>{{ text }}</summary><div class="maps">
      {%- for figure in maps %}{{ picture(figure) }}{% endfor %}</div></details>
    {%- endfor -%}
  {%- endfor -%}
{%- endmacro -%}

{%- macro samples(corpora) -%}
  {%- for corpus in corpora -%}<h3>{{ corpus.name }}</h3>
    {%- for (source, reference), translations in corpus.sentences.items() -%}
      <div class="sample"><dl><dt>source</dt><dd lang="{{ corpus.languages[0] }}">{{ source }}</dd>
      <dt>reference</dt><dd lang="{{ corpus.languages[1] }}">{{ reference }}</dd>
      {%- for run, text in translations.items() -%}
        <dt>{{ run }}</dt><dd class="translation" lang="{{ corpus.languages[1] }}">{{ text }}</dd>
      {%- endfor -%}</dl></div>
    {%- endfor -%}
  {%- endfor -%}
{%- endmacro -%}

{%- macro differing(pairs) -%}
  {%- for pair in pairs if pair.sentences -%}
    <details><summary>{{ pair.run }} against {{ pair.base }}: the sentences that differ most</summary>
    {%- for each in pair.sentences -%}
      <div class="sample"><dl><dt>source</dt><dd lang="{{ pair.languages[0] }}">{{ each.source }}</dd>
      <dt>reference</dt><dd lang="{{ pair.languages[1] }}">{{ each.reference }}</dd>
      <dt>{{ pair.base }}</dt><dd lang="{{ pair.languages[1] }}">{{ each.of_base }}</dd>
      <dt>{{ pair.run }} <small>{{ "%+.1f" | format(each.difference) }} chrF</small></dt>
      <dd class="translation" lang="{{ pair.languages[1] }}">{{ each.of_run }}</dd></dl></div>
    {%- endfor -%}</details>
  {%- endfor -%}
{%- endmacro -%}

{%- macro cards(headlines) -%}
  <div class="cards">{% for each in headlines -%}
    <div class="card {{ each.origin | replace(" ", "-") }}"><p class="study">{{ each.study }}
      {%- if each.origin == "recorded" %} <span class="tag">recorded</span>{% endif %}</p>
    <p class="figure">{{ each.figure }}</p><p class="says">{{ each.says }}</p>
    {%- if each.note %}<p class="about">{{ each.note | prose }}</p>{% endif -%}
    {%- if each.origin != "not done" %}<p class="about">{{ each.progress }} trained</p>{% endif %}</div>
  {%- endfor %}</div>
{%- endmacro -%}

{%- macro of_paper(tables, slugs) -%}
  {%- for table in tables -%}
    {%- if table.has_papers and not table.has_ours -%}
      <details id="{{ table.name }}"><summary>{{ table.title }} <span class="tag">published only: no run of ours fills a row</span>
      </summary>{{ box(table.without_empty(), slugs) }}</details>
    {%- else -%}<h3 id="{{ table.name }}">{{ table.title }}</h3>{{ box(table, slugs) }}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro -%}

{%- macro folded(of, slugs) -%}
  {%- for table in of %}<details id="{{ table.name }}"><summary>{{ table.title }}</summary>{{ box(table, slugs) }}</details>
  {%- endfor -%}
{%- endmacro -%}

{%- macro origin(part) -%}
  <details id="run-{{ part.run.slug }}"><summary><b>{{ part.run.run }}</b>
  {%- if part.run.recorded %} <span class="tag">recorded</span>{% endif %} <small>{{ part.line }}</small></summary>
  <dl>{% for label, value in part.facts.items() -%}
    <dt>{{ label }}</dt><dd>{{ value }}</dd>{% endfor %}
  {%- for label, value in part.hashes.items() -%}
    <dt>{{ label }}</dt><dd>{% if value %}<code>{{ value }}</code>{% else %}–{% endif %}</dd>{% endfor %}</dl>
  {%- if part.run.scores -%}{{ box(part.scores, {}) }}{%- endif -%}</details>
{%- endmacro -%}
"""

PAGE = """
{%- from "macros" import box, pictures, tables with context -%}
{%- from "sections" import attention, cards, curves, differing, folded, of_paper, origin, samples with context -%}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="results" content="{{ digest }}">
<title>Attention Is All You Need, reproduced</title>
<link rel="icon" href="data:,">
<style>{{ style | safe }}</style>
</head>
<body>
<nav aria-label="Contents"><ul>{% for key, title in contents %}<li><a href="#{{ key }}">{{ title }}</a></li>
{%- endfor %}</ul></nav>
<div class="page">
<header>
<h1>Attention Is All You Need, reproduced</h1>
<p class="lede">{{ lede }}</p>
</header>
<main>
{% for key, title in contents %}<section id="{{ key }}"><h2>{{ title }}</h2>
  {%- if key == "summary" -%}{{ cards(content.headlines) }}
  {%- elif key == "selected" -%}{{ tables(content.selected, slugs) }}
  {%- elif key == "deltas" -%}{{ pictures(figures.deltas) }}
    {{- tables(content.claims, slugs) }}{{ folded([content.deltas], slugs) }}
  {%- elif key == "compared" -%}{{ tables(content.compared, slugs) }}{{ differing(content.pairs) }}
  {%- elif key == "decodings" -%}{{ tables(content.decodings, slugs) }}
  {%- elif key == "searches" -%}{{ tables(content.searches, slugs) }}{{ pictures(figures.searches) }}
  {%- elif key == "recorded" -%}
    {%- if content.recorded %}<details><summary>{{ content.recorded | length }} studies, from results/</summary>
    {{- tables(content.recorded, slugs) }}</details>{% endif %}
    {%- if content.recorded_decodings %}<details><summary>Decodings, from results/decodings/</summary>
    {{- tables(content.recorded_decodings, slugs) }}</details>{% endif %}
  {%- elif key == "paper" -%}{{ of_paper(paper, slugs) }}
  {%- elif key == "costs" -%}{{ folded(content.costs, slugs) }}
  {%- elif key == "curves" -%}{{ curves(figures) }}
  {%- elif key == "attention" -%}{{ attention(figures.attention) }}
  {%- elif key == "samples" -%}{{ samples(corpora) }}
  {%- elif key == "runs" -%}{% for part in origins %}{{ origin(part) }}{% endfor %}
  {%- else -%}{{ pictures(figures[key]) }}
  {%- endif -%}
</section>
{% endfor %}</main>
<footer>Written by pipeline/report.py from the score files of the selected runs and from the records in results/. A dash
is a number that is not known.</footer>
</div>
</body>
</html>
"""


def order(text: str) -> str:
    """Mark exponents as superscripts and bases of logarithms as subscripts: O(n^2 d), n^1.98 d^1.02, O(log_k n)."""
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


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def in_groups(items: Iterable, attribute: str) -> Iterator[tuple[str, list]]:
    """Group adjacent items with equal values of the attribute. Yields each value with its items."""
    for value, group in groupby(items, key=attrgetter(attribute)):
        yield value, list(group)


def environment() -> Environment:
    templates = DictLoader({"macros": MACROS, "sections": SECTIONS, "page": PAGE})
    jinja = Environment(loader=templates, autoescape=True, undefined=StrictUndefined)
    jinja.globals |= {"interval": interval, "long": LONG}
    jinja.filters |= {"order": order, "prose": prose, "heading": heading, "base64": in_base64, "in_groups": in_groups}
    return jinja
