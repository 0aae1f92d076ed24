"""The DAG: the content of dvc.yaml and the Snakefile, and the joint behaviour of DVC and Snakemake on stub stages."""

import ast
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import networkx
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipeline import code
from pipeline.orchestrating.project import require_declared
from pipeline.settings.params import load
from tests.support import forked
from tests.support.projects import ROOT, STAGES, module_of
from tests.support.refusals import refused

# The folders of pipeline/. A module may import its own folder and the folders of earlier lines, but no others of pipeline/.
# The core ends with the commands: what an extra adds to it comes by a pattern such as `pipeline.extras.*.blocks`.
ROOMS = [
    {"code", "settings"},
    {"running and orchestrating"},
    {"text", "training"},
    {"scoring"},
    {"reporting"},
    {"a stage"},
    {"commands"},
    {"extras"},
]


def stages(root: Path = ROOT) -> dict:
    """DVC's stages by name."""
    with Repo(str(root)) as repo:
        return {stage.name: stage for stage in repo.index.stages}


# The structure


def test_each_stage_is_a_script_with_quoted_names_and_says_what_it_needs_of_the_machine():
    """DVC inserts names into shell commands.

    An output that persists has no run cache, and one that is not cached is made again by a clone.
    """
    definitions = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    commands = {kind: of.get("do", of)["cmd"] for kind, of in definitions.items()}
    assert [kind for kind in STAGES[1:] if not commands[kind].startswith(f"python -m {module_of(kind)} ")] == []
    words = [word for command in commands.values() for word in command.split() if "${" in word]
    assert words and all(re.fullmatch("'[^']+'", word) for word in words)
    assert {"code", *code.scripts()} == set(STAGES)
    assert {path.stem for path in (ROOT / "pipeline").glob("*.py")} - {"__init__"} <= set(STAGES)
    for name, stage in stages().items():
        kind = name.partition("@")[0]
        assert kind in STAGES and isinstance(stage.cmd, str), name
        needs = stage.meta["snakemake"]
        assert set(needs) == {"threads", "gpu", "mem_mb", "minutes"}, name
        modules = code.closure(code.scripts()[kind]) if kind != "code" else {}
        assert needs["gpu"] == (Path("pipeline/running/hardware.py") in modules), name
        for out in stage.outs:
            in_git = str(out).startswith(("results/", "reports"))
            assert (out.use_cache, out.persist) == (not in_git, in_git), f"{name}: {out}"


def test_a_stage_that_lacks_what_a_stage_needs_is_refused_by_name():
    needs = {"threads": 1, "gpu": 0, "mem_mb": 500}
    with refused('the stage lengths lacks meta.snakemake.minutes, outs, a script with `stage.script(main, "lengths"'):
        require_declared([SimpleNamespace(name="lengths@a", meta={"snakemake": needs}, outs=[])])
    with refused("the stage flops lacks meta.snakemake.threads"):
        require_declared([SimpleNamespace(name="flops@a", meta=None, outs=["scores/a"])])


def imported(path: Path) -> set[str]:
    """The modules of the project that a file imports, without empty ones and those that it names in a string."""
    meaning = code.meaning_of(path.read_bytes(), path.relative_to(ROOT), code.existing())
    statements = [node for node in ast.walk(meaning.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {module for node in statements for module, _, _ in meaning.imported(node) or ()}
    return {module.as_posix() for module in modules if (ROOT / module).stat().st_size}


def test_the_paper_is_read_in_its_order():
    """Of the project, each module of the essay imports the settings and those before it only."""
    read = {"transformer/__init__.py"}
    for path in ("transformer/attention.py", "transformer/layers.py", "transformer/model.py"):
        assert {other for other in imported(ROOT / path) if "/config/" not in other} <= read, path
        read.add(path)


def test_imports_have_no_circle():
    """The kernels are imported on a GPU only."""
    paths = [path for name in code.PACKAGES for path in (ROOT / name).rglob("*.py")]
    paths = [path for path in paths if path.name != "__init__.py" and "kernels" not in path.name]
    graph = networkx.DiGraph((path.relative_to(ROOT).as_posix(), to) for path in paths for to in imported(path))
    assert [each for each in networkx.strongly_connected_components(graph) if len(each) > 1] == []


def room(path: str) -> str:
    """The folder of a module of the pipeline."""
    if path in ("pipeline/code.py", "pipeline/running/meaning.py"):
        return "code"
    first, *_ = *path.split("/")[1:-1], "a stage"
    return "running and orchestrating" if first in ("running", "orchestrating") else first


def test_rooms_of_the_pipeline_import_one_way():
    order = {name: place for place, names in enumerate(ROOMS) for name in names}
    for path in (ROOT / "pipeline").rglob("*.py"):
        here = path.relative_to(ROOT).as_posix()
        for module in imported(path) - {"pipeline/__init__.py"}:
            if module.startswith("pipeline/") and room(module) != room(here):
                assert order[room(module)] < order[room(here)], f"{here} imports {module}"
        named = re.findall(r"pipeline[./]extras[./][a-z]\w*", path.read_text(encoding="utf-8"))
        assert not named or room(here) == "extras", f"{here} names {named[0]}"
    digested = {stage: code.closure(script) for stage, script in code.scripts().items()}
    asking = {stage for stage, found in digested.items() if any("extras" in path.parts for path in found)}
    of_core = {stage for stage, script in code.scripts().items() if "extras" not in script.parts}
    assert asking & of_core == {"collect", "report"}, "an edit of an extra makes no training stale"


def test_only_the_tests_of_extras_import_extras():
    """A deleted extra takes its own tests with it, and no others."""
    paths = {path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py")}
    importing = [path for path in paths if re.search(r"^(from|import) pipeline\.extras\.", path.read_text("utf-8"), re.M)]
    assert importing and [path for path in importing if not path.is_relative_to(ROOT / "tests/extras")] == []


# DVC and Snakemake together

SCORE = "score@demo-tiny"


def test_an_edit_then_dvc_leaves_snakemake_nothing_and_an_earlier_commit_comes_back(project):
    assert sorted(["code", *(project.root / "work/ran").read_text().split()]) == sorted(stages(project.root))
    assert project.stale() == set()
    project.edit("params.yaml", "    bootstrap: 1000 ", "    bootstrap: 500 ")
    project.run("dvc", "repro", SCORE)
    assert (project.ran(), project.planned(SCORE)) == ([SCORE], [])
    project.commit("fewer resamples")
    project.run("git", "checkout", "--quiet", "HEAD~1")
    flops = project.root / "scores/demo-tiny/flops.json"
    flops.unlink()
    project.run("snakemake", "--cores", "2", SCORE, "flops@demo-tiny")
    assert project.ran() == [], "the cache has it"
    assert project.stale() == set() and flops.exists()


def test_a_command_that_reads_the_outputs_of_a_stale_stage_says_so(project):
    project.edit("params.yaml", "    beam: 4 ", "    beam: 5 ")
    printed = project.run("python", "-m", "pipeline.commands.evaluate", "demo-tiny", "--against", "dvc.yaml", status=1)
    assert "evaluate: decode@demo-tiny is stale: " in printed and "its last translations are compared" in printed


@pytest.mark.parametrize(
    ("old", "new", "stages_of"),
    [
        ("save_every_minutes: 10 ", "save_every_minutes: 5 ", set()),
        ("    character_coverage: 0.9999", "    character_coverage: 0.9998", {"learn_bpe", "binarise", "report"}),
        ("dev: [{source: text/demo/dev.en.xz, ", "dev: [{first: 9, source: text/demo/dev.en.xz, ", {"download", "report"}),
        ("model: quick}\n\ncorp", "model: quick, N: 1}\n\ncorp", {"train", "result", "report"}),
        ("\nsets: {}", "\nsets: {new: {corpus: demo, source: text/a, target: text/b}}", {"fetch_set", "report"}),
        (
            "\ndecodings: {}",
            "\ndecodings: {new: {model: demo-tiny/average, set: demo-test}}",
            {"decode_set", "collect", "report"},
        ),
        # settings that the run does not use
        ("    model: {N: 3, d_model: 128", "    model: {N: 4, d_model: 128", {"report"}),
        ("  K80: 2.8\n", "  K80: 2.8\n  A100: 19.5\n", {"report"}),
        ("models:\n", "models:\n  new: {model: {}, training: {}, averaging: {}, decoding: {}}\n", {"report"}),
    ],
)
def test_an_edit_to_a_setting_concerns_the_stages_that_use_it(built, old, new, stages_of):
    path = built.root / "params.yaml"
    text, times = path.read_text(encoding="utf-8"), path.stat()
    assert text.count(old) >= 1
    try:
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert {name.partition("@")[0] for name in built.stale()} == stages_of
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_another_run_makes_no_other_stale_and_a_dry_run_changes_nothing(project):
    run = "  demo-tiny: {corpus: demo, model: quick}\n"
    end = "\ncorpora_in_use"
    project.edit("params.yaml", run + end, f"{run}  demo-h1: {{corpus: demo, model: tiny, h: 1}}\n{end}")
    new = {f"{stage}@demo-h1" for stage in ("train", "average", "decode", "score", "flops", "result")}
    assert project.stale() == new | {"report"}
    made = [project.root / name for name in ("data", "models", "scores", "reports", "dvc.lock")]
    os.link(project.root / "work/.stamps/train@demo-tiny", another := project.root / "work/of-another-user")
    times = {path: path.stat().st_mtime_ns for top in (*made, another) for path in [top, *top.rglob("*")]}
    assert set(project.planned()) == new | {"collect", "report"}
    assert set(project.planned("train@demo-h1")) == {"train@demo-h1"}, "a target is the name of a stage"
    now = {path: path.stat().st_mtime_ns for top in (*made, another) for path in [top, *top.rglob("*")]}
    assert now == times, "also a stamp of another user, whose times only he may set, is not changed but replaced"


def test_results_stay_when_their_run_is_not_selected_and_none_is_lost_by_a_failure(project):
    """Their stage has an output that is neither cached nor removed (`persist`)."""
    other, earlier = (project.root / "results" / name for name in ("demo-tiny-h1.json", "decodings/earlier.json"))
    assert other.read_bytes() == (ROOT / "results" / other.name).read_bytes(), "all stages have run beside it"
    other.write_text("{}")
    assert project.stale() == {"report"}, "an edit of any result makes the report stale"
    earlier.write_text("{}")
    (project.root / "scores/demo-tiny/score.json").write_text("{}")
    single = ("python", "-m", "pipeline.orchestrating.single", "collect")
    project.run(*single, status=255, STUB_FAILS="collect")
    assert project.ran() == ["collect"] and earlier.exists()


NAMES = ("-h; `touch evil`", "'; touch evil; '", "../../victim")  # of runs


def test_a_name_that_a_shell_or_a_path_would_obey_runs_and_writes_nothing(project, tmp_path):
    (victim := tmp_path / "victim/average/file").parent.mkdir(parents=True)
    victim.write_text("not ours")
    corpus = "$(touch evil)"
    project.edit("params.yaml", "corpora_in_use: [demo]", f'corpora_in_use: ["{corpus}"]')
    entry = f'  "{corpus}": {{languages: [en, de], download: {{}}, normalise: {{}}, vocabulary: {{}}}}\n'
    project.edit("params.yaml", "\ncorpora:\n", f"\ncorpora:\n{entry}")
    runs = "".join(f'  "{name}": {{corpus: demo, model: tiny}}\n' for name in NAMES)
    project.edit("params.yaml", "runs:\n  demo-tiny: {corpus: demo, model: quick}\n", f"runs:\n{runs}")
    for stage, name in (("download", corpus), ("train", NAMES[0])):  # without `code`, DVC removes old outputs
        assert f"{name!r} is not possible" in project.run("dvc", "repro", "--single-item", f"{stage}@{name}", status=255)
    assert "check: params.yaml: " in project.run("dvc", "repro", status=255)
    printed = project.run("snakemake", "--cores", "2", status=1)
    assert [name for name in (corpus, *NAMES) if f"{name!r} is not possible" not in printed] == []
    assert {line.count(" is not possible") for line in printed.splitlines() if "params.yaml: " in line} == {1}
    assert project.ran() == [] and not list(tmp_path.rglob("evil*"))
    assert victim.read_text() == "not ours"


def test_an_experiment_in_a_folder_of_its_own_runs_the_stages_concerned(project):
    project.run("dvc", "exp", "run", "--temp", "-n", "other", "-S", "base.scoring.bootstrap=500", "score@demo-tiny")
    shown = json.loads(project.run("dvc", "exp", "diff", "HEAD", "other", "--json"))
    assert shown["params"]["params.yaml"] == {"base.scoring.bootstrap": {"old": 1000, "new": 500, "diff": -500}}
    assert "scores/demo-tiny/metrics.json" in shown["metrics"] and project.stale() == set() and project.ran() == []


def test_both_tools_plan_the_whole_paper_in_a_fresh_clone(built, tmp_path):
    project = built.clone(tmp_path / "clone")
    project.run("python", "-m", "pipeline.commands.study", "paper")
    planned = project.planned()
    assert sum(name.startswith("train@") for name in planned) == 22
    assert planned == sorted(stages(project.root).keys() - {"code"})
    printed = project.run("dvc", "repro", "--dry", "--force")
    assert sorted(re.findall(r"Running stage '(.*)'", printed)) == sorted([*planned, "code"])
    assert project.ran() == []


@pytest.mark.slow
def test_make_runs_what_the_readme_names(project):
    for name in ("Makefile", "README.md", "pyproject.toml", "constraints.txt", "constraints-cuda.txt"):
        shutil.copy2(ROOT / name, project.root / name)
    bin = project.root / ".venv/bin"
    bin.mkdir(parents=True)
    (project.root / ".venv/installed").touch()  # make then uses the environment of these tests
    (bin / "snakemake").write_text('#!/bin/sh\nexec python -m snakemake "$@"\n')
    (bin / "snakemake").chmod(0o755)
    (bin / "python").symlink_to(forked.folder() / forked.PROGRAM)
    shutil.rmtree(project.root / "reports")
    make = ("make", "CORES=99")
    assert "[1/1] report" in project.run(*make, "reproduce")
    log = max((project.root / ".snakemake/log").iterdir())
    assert "Provided cores: 99\n" in log.read_text(), "not those of this machine"
    assert project.ran() == ["report", "report"]  # `make report` runs it again, because the stub makes no page
    assert f"{len(stages())} done" in project.run(*make, "status")
    assert "paper" in project.run(*make, "study")
    project.run(*make, "study", "STUDY=paper")
    assert "wmt14-en-de-base" in load(project.root / "params.yaml")["runs"]
