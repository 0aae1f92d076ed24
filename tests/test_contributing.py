"""The recipes of CONTRIBUTING.md and README.md work: their settings pass the check, their commands exist."""

import copy
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys

import dvc.cli
import pytest
import snakemake.cli
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
    """The check reads the settings of all recipes together, with the run that their decoding names."""
    params = copy.deepcopy(params)
    for block in re.findall(r"```yaml\n(.*?)```", PAGES["CONTRIBUTING.md"], re.DOTALL):
        for key, entries in YAML(typ="safe").load(block).items():
            params[key] = {**params[key], **entries}
    params["runs"] |= recipe_for_own_text()["runs"]
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


def test_the_example_above_the_corpora_is_that_of_the_recipe_and_its_files_are_those_of_the_readme():
    example = re.search(r"((?:^#   .*\n)+)corpora:$", (ROOT / "params.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    corpus = YAML(typ="safe").load(example[1].replace("#", " "))["mine"]
    assert YAML(typ="safe").load(re.search(r"```yaml\n(corpora:.*?)```", PAGES["CONTRIBUTING.md"], re.DOTALL)[1]) == {
        "corpora": {"mine": corpus}
    }
    files = [path.removeprefix("text/mine/") for path in corpus["download"]["train"][0].values()]
    assert "Put `{}` and `{}` into `text/mine/`.".format(*files) in PAGES["README.md"]


def recipe_for_own_text() -> dict:
    section = PAGES["README.md"].split("### Train on your own text")[1]
    return YAML(typ="safe").load(re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])


# The tests that do what a recipe of the README or a row of docs/commands.md says.
RECIPES = {
    "Add a row": "test_another_run_makes_no_other_stale_and_a_dry_run_changes_nothing",
    "Train on your own text": "test_the_recipe_for_own_text_trains_on_it",
    "Run a study": "test_make_runs_what_the_readme_names",
    "Use a GPU or a cluster": "test_the_profile_submits_a_training_that_is_told_before_its_limit_and_queued_again",
    "Translate": "test_make_runs_what_the_readme_names",
}
TRIED = {
    "see what would run, and what it would take": "test_the_whole_paper_is_planned_in_a_clone_without_data",
    "see what is done and running": "test_status_says_what_is_stale_and_why_and_what_waits",
    "change a number": "test_an_edit_to_a_setting_concerns_the_stages_that_use_it",
    "run another study": "test_make_runs_what_the_readme_names",
    "add a row, a corpus, a test set, a decoding or a stage": "test_the_settings_of_the_recipes_pass_the_check",
    "train on your own text": "test_own_text_is_two_files_in_text_and_four_lines",
    "run or force one stage": "test_one_stage_is_run_by_its_name_and_forced_by_dvc",
    "stop and go on": "test_a_signal_saves_says_so_and_is_resumed",
    "keep a training after an edit of the code": "test_a_change_of_code_is_accepted_by_the_users_word",
    "look at trainings": "test_a_store_rebuilt_from_the_files_equals_the_live_one",
    "compare two runs or decodings": "test_two_decodings_of_one_model_have_a_p_value_and_two_trainings_have_none",
    "keep a result in git": "test_a_record_shows_the_same_numbers_as_its_run",
    "translate, score any text, export or share a model": "test_ctranslate2_gives_the_same_translations",
    "share data and models": "test_pull_into_a_fresh_clone_leaves_nothing_to_do",
    "back-translate, search for settings": "test_an_entry_runs_its_stages_and_the_trainings_on_it_and_nothing_else",
    "use a GPU": None,  # docs/gpu.md says what a CPU can test
}


def test_each_recipe_of_the_readme_and_each_row_of_the_commands_is_tried():
    section = PAGES["README.md"].split("## Recipes\n")[1].split("\n## ")[0]
    titles = re.findall(r"^### (.*)$", section, re.MULTILINE)
    assert titles == list(RECIPES)
    for recipe in section.split("\n### ")[1:]:
        assert len(re.findall(r"^(?!```)\S", recipe, re.MULTILINE)) <= 11, "a title and ten lines"
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", PAGES["commands.md"], re.MULTILINE)
    assert rows[0] == "you want to" and rows[1:] == list(TRIED)
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py"))
    tried = {*RECIPES.values(), *TRIED.values()} - {None}
    assert [test for test in tried if f"def {test}(" not in tests] == []


def test_the_readme_has_at_most_1200_words():
    words = [word for word in PAGES["README.md"].split() if re.search(r"\w", word)]
    assert len(words) <= 1200


def commands() -> list[list[str]]:
    """The commands of the README and of docs/commands.md: those in the text, and those that begin a line of a block."""
    text = PAGES["README.md"] + PAGES["commands.md"]
    found = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found += [line.split("  ")[0] for line in re.findall(r"^(?:make|snakemake|dvc|python) .*", text, re.MULTILINE)]
    words = [shlex.split(command) for command in dict.fromkeys(found)]
    return [command for command in words if command[0] in ("make", "snakemake", "dvc", "python") and command[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_a_command_of_the_readme_or_the_commands_parses(command, tmp_path):
    tool, *words = command
    if tool == "dvc":
        assert dvc.cli.parse_args(words).func
    elif tool == "snakemake":
        assert snakemake.cli.parse_args(words)
    elif tool == "make":
        assert subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, check=False).returncode == 0
    else:  # argparse exits with 2 if it cannot parse; 1 means that no such run exists
        shutil.copy(ROOT / "params.yaml", tmp_path)
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == (words[-1] != "pipeline.commands"), done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_links_to_exist(page):
    folder = ROOT if page in ("README.md", "CONTRIBUTING.md") else ROOT / "docs"
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGES[page])
    assert [link for link in links if not (folder / link).exists()] == []


DECODER = """
from dataclasses import dataclass
from transformer.config.decoders import FirstConfig
from transformer.config.decoding import DecodingConfig
from transformer.decoders.steps import Batch, Translation

@dataclass(frozen=True)
class First:
    config: DecodingConfig
    own: FirstConfig

    def search(self, batch: Batch, n_best: int) -> list[list[Translation]]:
        return [[Translation([self.own.token], 0.0)] for _ in batch.limits]

    def width(self, n_best: int) -> int:
        return 1
"""
SETTINGS = """
@dataclass(frozen=True)
class FirstConfig(DecoderConfig):
    token: int


DECODERS"""
USE = """
from pipeline.settings.check import check
from pipeline.settings.decodings import decoding_run
from pipeline.settings.params import load
from transformer.decoders.registry import decoder_of
params = load()
params["decodings"] = {"line": {"model": "demo-tiny/average", "set": "demo-test", "decoder": "first", "token": 7}}
check(params)
print(decoder_of(decoding_run(params, "line").choice))
"""


@pytest.mark.slow
def test_the_recipe_for_a_decoder_adds_one(tmp_path):
    for name in ("transformer", "pipeline"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "transformer/decoders/first.py").write_text(DECODER)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    edits = {
        "transformer/config/decoders.py": [
            ("\nDECODERS", SETTINGS),
            ('"greedy": ', '"first": FirstConfig, "greedy": '),
        ],
        "transformer/decoders/registry.py": [
            ("SIMPLE:", "from transformer.decoders.first import First\nSIMPLE:"),
            ('"greedy": ', '"first": First, "greedy": '),
        ],
        "params.yaml": [("\n    greedy: {}\n", "\n    greedy: {}\n    first: {token: 5}\n")],
    }
    for name, pairs in edits.items():
        text = (tmp_path / name).read_text()
        for old, new in pairs:
            assert old in text, f"{name}: {old}"
            text = text.replace(old, new, 1)
        (tmp_path / name).write_text(text)
    done = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("First(") and "token=7" in done.stdout, done.stderr


STAGE = '''"""Write the names of the runs.

    python -m pipeline.names --out scores/names.json
"""

import argparse
from pathlib import Path

from pipeline.settings.params import load
from pipeline.workflow import stage
from transformer.files import write_json


def main(arguments: argparse.Namespace) -> None:
    write_json(arguments.out, list(load()["runs"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="names")
    parser.add_argument("--out", type=Path, required=True)
    stage.run(main, parser)
'''
IN_DVC = """\
  names:
    desc: Write the names of the runs
    cmd: python -m pipeline.names --out scores/names.json
    deps:
      - work/code/names
    params:
      - runs
    outs:
      - scores/names.json
    meta:
      snakemake: {threads: 1, gpu: 0, mem_mb: 1000, minutes: 5}

  report:
"""


def test_the_recipe_for_a_stage_adds_one(project):
    (project.root / "pipeline/names.py").write_text(STAGE)
    project.edit("dvc.yaml", "  report:\n", IN_DVC)
    assert project.snakemake() == ["report"], "which depends on scores/; the new stage is no stub"
    assert (project.root / "scores/names.json").read_text() == '[\n  "demo-tiny"\n]\n'
    assert project.planned() == [] and project.repro() == []
