"""Links, names and commands in the documents exist, recipes pass the check, and results.md has the report's numbers."""

import copy
import csv
import importlib.util
import re
import sys
from types import ModuleType

import pytest
from ruamel.yaml import YAML

from pipeline.settings.check import check
from tests.support.projects import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_and_the_commands_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+)\b(?= ?[`\n]| [A-Z]+=)", text)) <= set(targets)
    for module in set(re.findall(r"python -m ([a-z_.]+[a-z_])", text)) - {"pipeline.commands.NAME"}:
        assert importlib.util.find_spec(module), module


def test_the_settings_of_the_recipes_pass_the_check_and_have_the_example_of_params_yaml(params):
    """The check reads the settings of all recipes together, with the run that their decoding names."""
    params, text = copy.deepcopy(params), "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    example = re.search(r"((?:^#   .*\n)+)corpora:$", (ROOT / "params.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    mine = YAML(typ="safe").load(example[1].replace("#", " "))["mine"]
    params["corpora"] |= {"news": mine, "mine-reverse": {**mine, "languages": mine["languages"][::-1]}}
    for key, entries in [item for block in blocks for item in YAML(typ="safe").load(block).items()]:
        if key not in ("corpora_in_use", "train"):  # `train` is a part of a corpus
            params[key] = {**params[key], **entries}
        assert key != "corpora" or entries["mine"] == mine
    used = (entry["corpus"] for block in ("runs", "back_translations", "warm_starts") for entry in params[block].values())
    params["corpora_in_use"] = [name for name in dict.fromkeys(used) if name in params["corpora"]]
    check(params)
    assert params["runs"]["wmt14-en-de-h2"]["h"] == 2 and "mine-beam8" in params["decodings"]


def test_a_model_setting_that_is_added_as_contributing_says_leaves_the_papers_models_as_they_are(monkeypatch):
    text = (ROOT / "transformer/config/model.py").read_text(encoding="utf-8")
    text = re.sub(r"(ABSENT: .* = \{)", r'\1"added": 3, ', text).replace(
        "    N: Count\n", "    N: Count\n    added: Count\n"
    )
    module = ModuleType("with_a_setting")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text, "model.py", "exec"), vars(module))
    assert [(made.added, made.N, made.d_model) for made in (module.base(), module.big())] == [(3, 6, 512), (3, 6, 1024)]


def test_the_tree_of_the_readme_names_what_is_there():
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## What is where")[1].split("```")[1]
    assert [name for name in re.findall(r"^(\S+)", tree, re.MULTILINE) if not (ROOT / name).exists()] == []


def test_the_differences_of_the_results_are_those_of_the_report():
    text = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    with open(ROOT / "reports/claims.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["the paper's change"] and row["BLEU, ours low"]]
    shown = [
        "{:+.1f} ({:+.1f} to {:+.1f})".format(*(float(row[f"BLEU, ours{end}"]) for end in ("", " low", " high")))
        for row in rows
    ]
    assert len(rows) >= 9 and [cell for cell in shown if cell not in text] == []
