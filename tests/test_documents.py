"""Links and names in the documents exist, and the README has the numbers of the report."""

import csv
import re

import pytest

from tests.projects import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_files_that_a_page_links_to_exist(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_tree_of_the_readme_names_what_is_there():
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## What is where")[1].split("```")[1]
    assert [name for name in re.findall(r"^(\S+)", tree, re.MULTILINE) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_the_differences_of_a_page_are_those_of_the_report(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    with open(ROOT / "reports/claims.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["the paper's change"] and row["difference, BLEU low"]]
    shown = [
        "{:+.1f} ({:+.1f} to {:+.1f})".format(*(float(row[f"difference, BLEU{end}"]) for end in ("", " low", " high")))
        for row in rows
    ]
    assert len(rows) >= 9 and [cell for cell in shown if cell not in text] == []
