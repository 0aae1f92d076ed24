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
from tests.projects import ROOT

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "README.md")}
PAGES |= {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"}


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
    assert recipe_for_own_text()["corpora"] == {"mine": corpus}


def recipe_for_own_text() -> dict:
    page = (ROOT / "docs/how-to/own-text.md").read_text(encoding="utf-8")
    return YAML(typ="safe").load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])


def commands() -> list[list[str]]:
    """The commands of the README and of docs/reference.md: those in the text, and those that begin a line of a block."""
    text = PAGES["README.md"] + PAGES["reference.md"]
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
    else:  # argparse exits with 2 if it cannot parse; 1 means that no such run exists; the list and --help need none
        shutil.copy(ROOT / "params.yaml", tmp_path)
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == (words[-1] not in ("pipeline.commands", "--help")), done.stderr


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
    assert sorted(project.snakemake()) == ["collect", "report"], "which depend on scores/; the new stage is no stub"
    assert (project.root / "scores/names.json").read_text() == '[\n  "demo-tiny"\n]\n'
    assert project.planned() == [] and project.repro() == []
