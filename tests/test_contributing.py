"""The recipes of CONTRIBUTING.md and README.md work: their settings pass the check, their commands exist."""

import copy
import importlib.util
import re

import pytest
from ruamel.yaml import YAML

from pipeline.settings.check import check
from tests.imports import ROOT

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "README.md")}
PAGES |= {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}


def recipes() -> dict[str, str]:
    """The sections of CONTRIBUTING.md by their titles."""
    parts = re.split(r"^## (.*)\n", PAGES["CONTRIBUTING.md"], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("title", recipes())
def test_a_recipe_has_at_most_ten_lines(title):
    lines = [line for line in recipes()[title].split("\n") if line and not line.startswith("```")]
    assert len(lines) <= 12, "ten lines and an introduction"


def test_the_settings_of_the_recipes_pass_the_check(params):
    """All recipes together, with the run that their decoding names."""
    params = copy.deepcopy(params)
    for block in re.findall(r"```yaml\n(.*?)```", PAGES["CONTRIBUTING.md"], re.DOTALL):
        for key, entries in YAML(typ="safe").load(block).items():
            params[key] = {**params[key], **entries}
    params["runs"]["mine-tiny"] = {"corpus": "mine", "model": "tiny"}
    params["corpora_in_use"] = list(dict.fromkeys(run["corpus"] for run in params["runs"].values()))
    check(params)
    assert params["runs"]["wmt14-en-de-h2"]["h"] == 2 and "mine-beam8" in params["decodings"]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_that_a_page_names_exist(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b(?= ?[`\n]| [A-Z]+=)", PAGES[page])) <= targets
    for module in re.findall(r"python -m ([a-z_.]+[a-z_])", PAGES[page]):
        if module != "pipeline.commands.NAME":
            assert importlib.util.find_spec(module), f"{page}: {module}"


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_links_to_exist(page):
    folder = ROOT if page in ("README.md", "CONTRIBUTING.md") else ROOT / "docs"
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGES[page])
    assert [link for link in links if not (folder / link).exists()] == []
