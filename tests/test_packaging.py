"""`pip install .` installs the package transformer and the four packages that it needs."""

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import transformer
from pipeline.running.meaning import imported_names
from tests.support.models import LINES, OLD, TRANSLATIONS
from tests.support.projects import ROOT

NEEDED = {"torch", "numpy", "sentencepiece", "safetensors"}
# Imported late: two packages by one function each, which raises UserError if it is missing; Triton only on a GPU.
LATE = {"sacremoses", "huggingface_hub", "triton"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name in ("transformer", "pipeline", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(folder / "out")]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(folder)], check=True, capture_output=True)
    (path,) = (folder / "out").glob("*.whl")
    return path


@pytest.mark.slow
def test_a_wheel_holds_the_package_transformer_alone_and_needs_four_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        lines = archive.read(metadata).decode().split("\n")
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "transformer").rglob("*.py")}
    assert {name for name in names if ".dist-info/" not in name} == modules | {"transformer/py.typed"}
    assert f"Version: {transformer.__version__}" in lines
    needs = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    assert {need.partition(">=")[0] for need in needs if "extra ==" not in need} == NEEDED


@pytest.mark.slow
def test_a_wheel_translates_without_the_project(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    program = f"""
import sys
from transformer import Translator
print(Translator.load({str(OLD / "model")!r}, precision="float32")({LINES!r}))
print([name for name in ("pipeline", "dvc", "ruamel.yaml") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{TRANSLATIONS}\n"
    assert done.stderr == "[]\n"


def test_the_package_imports_what_it_declares():
    for path in (ROOT / "transformer").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names = {name.partition(".")[0] for node in nodes for name, _ in imported_names(node)}
        assert names - set(sys.stdlib_module_names) <= {"transformer"} | NEEDED | LATE, path


def test_base_and_big_are_the_models_of_params_yaml_and_the_version_is_stated_once():
    params = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    assert vars(transformer.base()) == params["base"]["model"]
    assert vars(transformer.big()) == params["base"]["model"] | params["models"]["big"]["model"]
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == transformer.__version__
