"""A stage whose settings are edited while it runs is not recorded."""

import argparse
import shutil
import sys
from pathlib import Path

import pytest
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo

from pipeline.settings.params import load
from pipeline.workflow import stage
from pipeline.workflow.unchanged import settings_of
from tests.imports import ROOT
from tests.projects import python

LINE = "demo-beam: {model: demo-tiny/average, set: demo-test, beam: 1}"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", "params.yaml", "studies.yaml"):
        shutil.copy(ROOT / name, name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("study", ["multi30k-decoding", "multi30k-back-translation", "multi30k-search"])
def test_the_settings_of_every_stage_are_those_that_dvc_records(folder, study):
    assert python(folder, "-m", "pipeline.commands.study", study).returncode == 0
    Path(".dvc").mkdir()
    Path(".dvc/config").write_text("[core]\n    no_scm = true\n")
    params = load()
    with Repo() as repo:
        for stage in repo.index.stages:
            listed = [path for each in stage.deps if isinstance(each, ParamsDependency) for path in each.params]
            found = settings_of(stage.name, params)
            assert sorted(found) == sorted(listed), stage.name
            assert None not in found.values(), stage.name


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (LINE, LINE.replace("1", "3"), "decodings.demo-beam"),
        (f"decodings:\n  {LINE}", "decodings: {}", "decodings.demo-beam"),
        ("    beam: 4 ", "    beam: 5 ", "base.decoding"),
        ("    steps: 100000\n", "    steps: 99999\n", None),  # of trainings
        ("  demo-tiny: {corpus: demo, model: tiny}\n", "  demo-tiny: {corpus: demo, model: tiny}\n  new: {}\n", None),
    ],
)
def test_only_an_edit_of_its_own_settings_stops_a_stage(folder, monkeypatch, capsys, old, new, path):
    monkeypatch.setenv("DVC_STAGE", "decoding@demo-beam")
    text = Path("params.yaml").read_text(encoding="utf-8").replace("decodings: {}", f"decodings:\n  {LINE}", 1)
    assert text.count(old) == 1
    Path("params.yaml").write_text(text, encoding="utf-8")

    def main(_: argparse.Namespace) -> None:
        Path("params.yaml").write_text(text.replace(old, new), encoding="utf-8")

    monkeypatch.setattr(sys, "argv", ["decoding"])
    with pytest.raises(SystemExit) as ended:
        stage.run(main, argparse.ArgumentParser("decoding"))
    told = f"decoding: params.yaml: {path} changed while decoding@demo-beam ran" if path else ""
    assert bool(ended.value.code) == bool(path) and capsys.readouterr().err.startswith(told)
    monkeypatch.delenv("DVC_STAGE")
    Path("params.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        stage.run(main, argparse.ArgumentParser("decoding"))
    assert ended.value.code is None
