"""Adoption: outputs are valid for the current code only if equal code made them or the user accepts the changes."""

import json
import os
import pty
import shutil
import subprocess

import pytest
from dvc.utils.serialize import dumps_yaml, load_yaml
from ruamel.yaml import YAML

from pipeline.workflow import adoption
from pipeline.workflow.syntax import same_syntax
from pipeline.workflow.times import write_times
from tests import in_process
from tests.stubs import StubProject

RUN = "demo-tiny"
TRAIN = f"train@{RUN}"
OF_MODEL = [TRAIN, f"average@{RUN}", f"decode@{RUN}"]  # the stages of the run that import transformer/model.py
WORD = "--accept-code-changes"
MODEL = "transformer/model.py"
SELECTED = f"  {RUN}: {{corpus: demo, model: tiny}}\n\n"  # the line of `runs` in params.yaml


def append(project: StubProject, path: str, text: str) -> None:
    with open(project.root / path, "a", encoding="utf-8") as file:
        file.write(text)


def lock(project: StubProject) -> dict:
    return YAML(typ="safe").load((project.root / "dvc.lock").read_text())["stages"]


def nothing_to_do(project: StubProject) -> bool:
    before = (project.root / "dvc.lock").read_bytes()
    return not project.planned() and not project.stale() and (project.root / "dvc.lock").read_bytes() == before


def adopt(project: StubProject, *arguments: str, status: int = 0) -> str:
    """Run the command in this process and in the project. Returns its output."""
    with in_process.inside(project.root):
        ended, out, errors = in_process.started(["pipeline.commands.adopt", *arguments])
    assert ended == status, errors
    return out + errors


def refused(project: StubProject, *arguments: str) -> str:
    before = (project.root / "dvc.lock").read_bytes()
    printed = adopt(project, *arguments, status=1)
    assert "Traceback" not in printed and printed.splitlines()[-1].startswith("adopt: ")
    assert (project.root / "dvc.lock").read_bytes() == before
    return printed


# Code


def test_a_comment_passes_without_a_word_and_only_the_entries_of_its_stages_change(project):
    append(project, "pipeline/score.py", "\n# a comment\n")
    stage, path = f"score@{RUN}", project.root / "dvc.lock"
    path.write_text(dumps_yaml(load_yaml(path)))  # lines break as DVC breaks them, unlike in tests/forked.py
    before, entries = path.read_text(), lock(project)
    assert "stale only because of code (comments, layout, module names)" in adopt(project, RUN, "--dry-run")
    assert path.read_text() == before
    adopt(project, RUN)
    now = lock(project)
    assert [name for name in now if now[name] != entries[name]] == [stage] and list(now) == list(entries)
    (changed,) = [(a, b) for a, b in zip(entries[stage]["deps"], now[stage]["deps"], strict=True) if a != b]
    assert changed[0]["path"] == changed[1]["path"] == "pipeline/score.py"
    for key in ("md5", "size"):
        before = before.replace(f"{key}: {changed[0][key]}\n", f"{key}: {changed[1][key]}\n")
    assert path.read_text() == before, "every other byte stays"
    assert (project.root / "work/.dvc.lock").read_text() == before, "the copy that replaces a damaged dvc.lock"
    assert not (project.root / "work/adopted.json").exists()
    assert nothing_to_do(project) and project.ran() == []


def test_a_changed_statement_is_listed_and_adopted_by_the_users_word_alone(project):
    append(project, MODEL, "\nA = 1\nB = 2\n")
    printed = refused(project, RUN)
    assert f"{MODEL}: 3 lines differ" in printed and WORD in printed
    adopt(project, RUN, WORD)
    word = json.loads((project.root / "work/adopted.json").read_text())
    assert sorted(word) == sorted(OF_MODEL)
    (change,) = word[TRAIN]["accepted"][0]["code"]
    md5 = {dep["path"]: dep.get("md5") for dep in lock(project)[TRAIN]["deps"]}[MODEL]
    assert change["new_md5"] == md5 != change["old_md5"] and change["lines"] == 3
    assert word[TRAIN]["outs"] == {out["path"]: out["md5"] for out in lock(project)[TRAIN]["outs"]}
    assert nothing_to_do(project) and project.ran() == []


def test_a_second_word_is_added_to_the_first_only_while_the_outputs_are_the_same(project):
    for number in range(2):
        append(project, MODEL, f"\nA{number} = 1\n")
        project.commit("an edit")
        adopt(project, TRAIN, WORD)
    word = json.loads((project.root / "work/adopted.json").read_text())[TRAIN]
    first, second = (accepted["code"][0] for accepted in word["accepted"])
    assert first["new_md5"] == second["old_md5"]
    project.edit("params.yaml", "    label_smoothing: 0.1", "    label_smoothing: 0.2")
    project.run("dvc", "repro", "--single-item", TRAIN)
    append(project, MODEL, "\nA2 = 1\n")
    project.commit("an edit")
    adopt(project, TRAIN, WORD)
    word = json.loads((project.root / "work/adopted.json").read_text())[TRAIN]
    assert [len(accepted["code"]) for accepted in word["accepted"]] == [1], "the outputs were made anew after both words"


def test_a_module_that_is_renamed_passes_without_a_word(project):
    old, new = "transformer/optimisation.py", "transformer/config/steps.py"
    shutil.move(project.root / old, project.root / new)
    project.edit("transformer/training.py", "from transformer.optimisation import", "from transformer.config.steps import")
    modules = ("transformer/config/training.py", "transformer/config/vocabulary.py", "transformer/data.py")
    after = "\n".join(f"        - {module}" for module in modules)  # only train and search have these three lines
    path = project.root / "dvc.yaml"
    text = path.read_text().replace(f"        - {old}\n", "")
    path.write_text(text.replace(after, f"        - {new}\n{after}"))
    assert project.planned() != []
    adopt(project, RUN)
    assert new in {dep["path"] for dep in lock(project)[TRAIN]["deps"]}
    assert nothing_to_do(project) and project.ran() == []


def test_code_that_is_not_in_git_is_named(project):
    append(project, MODEL, "\n# never committed\n")
    project.run("dvc", "repro", "--single-item", TRAIN)
    project.run("git", "checkout", "--quiet", MODEL)
    append(project, MODEL, "\n# and a comment\n")
    shutil.rmtree(project.root / ".dvc/cache/runs")
    assert f"the version of {MODEL} that made its outputs is not in git" in refused(project, TRAIN, WORD)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("x = 1", "# why\nx = (\n    1\n)", True),
        ('"""What."""\n\n\ndef f():\n    """Why."""\n    return 1', "def f():\n    return 1", True),
        ("x = 1", "x = 2", False),
        ("x = 'a'", "x = 'b'", False),
        ("def f(a, b): pass", "def f(b, a): pass", False),
        ("from pipeline.old import f as g", "from pipeline.new import f as g", True),
        ("from pipeline import old as m", "from pipeline import new as m", True),
        ("from pipeline import old\nold.f()", "from pipeline import new\nnew.f()", False),
        ("from pipeline.old import f", "from pipeline.new import g", False),
        ("from pipeline.old import f", "from pipeline.other import f", False),
        ("from pipeline.older import f", "from pipeline.newer import f", False),
        (
            "from pipeline.a import b\nfrom pipeline.old import c",
            "from pipeline.new import c\nfrom pipeline.a import b",
            True,
        ),
        ("from pipeline.a import b, c", "from pipeline.a import c\nfrom pipeline.a import b", True),
        ("import a\nimport b", "import b\nimport a", False),
        (
            "from pipeline.a import f\nfrom pipeline.b import f",
            "from pipeline.b import f\nfrom pipeline.a import f",
            False,
        ),
        (
            "def f():\n    x()\n    from pipeline.old import c",
            "def f():\n    from pipeline.old import c\n    x()",
            False,
        ),
        ("x = ", "x = ", False),
    ],
)  # fmt: skip
def test_what_is_the_same_code(old, new, same):
    assert same_syntax(old.encode(), new.encode(), {"pipeline.old": "pipeline.new"}) == same


# Differences other than code


def edited_output(project):
    (project.root / f"scores/{RUN}/training.json").write_text("{}")


def removed_output(project):
    shutil.rmtree(project.root / f"models/{RUN}/checkpoints")


def changed_data(project):
    (project.root / "data/demo/vocabulary.model").write_text("other")


def changed_setting(project):
    project.edit("params.yaml", "    label_smoothing: 0.1", "    label_smoothing: 0.2")


def changed_run(project):
    project.edit("params.yaml", SELECTED, SELECTED.replace("tiny}", "tiny, h: 1}"))


def removed_setting(project):
    path = project.root / "dvc.yaml"
    path.write_text(path.read_text().replace("        - base.training\n", "", 1))  # the first one is of the stage train


def removed_data(project):
    text = (project.root / "dvc.yaml").read_text()
    start, line = text.index("\n  train:\n"), "        - data/${item.corpus}/vocabulary.model\n"
    (project.root / "dvc.yaml").write_text(text[:start] + text[start:].replace(line, "", 1))


def changed_command(project):
    project.edit("dvc.yaml", "--out models/${key}/checkpoints --scores", "--out  models/${key}/checkpoints --scores")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edited_output, "scores/demo-tiny/training.json is modified"),
        (removed_output, "models/demo-tiny/checkpoints is deleted"),
        (changed_data, "data/demo/vocabulary.model is modified"),
        (changed_setting, "base.training has changed"),
        (changed_run, "runs.demo-tiny has changed"),
        (removed_setting, "base.training has changed"),
        (removed_data, "data/demo/vocabulary.model is no longer a dependency"),
        (changed_command, "its command has changed"),
    ],
)
def test_a_stage_that_is_stale_by_more_than_code_is_refused_and_named(project, change, says):
    append(project, MODEL, "\n# a comment\n")
    change(project)
    assert says in refused(project, TRAIN, WORD)
    assert says in adopt(project, RUN, "--dry-run")


def test_a_stage_that_never_ran_is_refused_and_a_wrong_name_gets_the_right_one(project):
    project.edit("params.yaml", SELECTED, SELECTED.replace("\n\n", "\n  new: {corpus: demo, model: tiny}\n\n"))
    assert "dvc.lock has no entry for it" in refused(project, "train@new")
    assert f"did you mean '{RUN}'?" in refused(project, "demo-tony")
    assert "up to date" in adopt(project, TRAIN)


def test_outputs_that_dvcs_cache_has_lost_are_put_back_into_it(project):
    append(project, MODEL, "\n# a comment\n")
    shutil.rmtree(project.root / ".dvc/cache")
    adopt(project, TRAIN)
    assert "up to date" in project.run("dvc", "status", TRAIN)


def test_a_new_setting_passes_where_its_value_is_as_before_it_existed(monkeypatch):
    monkeypatch.setattr(adoption, "ABSENT", {"model": {"new": "off"}, "training": {"other": 0}})
    old = {"N": 6}
    assert adoption.same_setting("base.model", old, {"N": 6, "new": "off"})
    assert adoption.same_setting("models.tiny.model", old, {"new": "off", "N": 6})
    assert adoption.same_setting("runs.demo", old, {"N": 6, "new": "off", "other": 0})
    assert not adoption.same_setting("base.model", old, {"N": 6, "new": "on"})
    assert not adoption.same_setting("base.model", old, {"N": 5, "new": "off"})
    assert not adoption.same_setting("base.model", old, {"new": "off"})
    assert not adoption.same_setting("base.model", old, {"N": 6, "other": 0}), "a setting of the training"
    assert not adoption.same_setting("hardware", old, {"N": 6, "new": "off"})


def test_the_check_before_the_command_may_be_another_one(project):
    path = project.root / "dvc.lock"
    path.write_text(path.read_text().replace("- python -m pipeline.commands.check", "- python -m pipeline.check"))
    assert "changed command" in project.run("dvc", "status")
    adopt(project, RUN)
    adopt(project, "demo")  # the corpus
    assert "up to date" in project.run("dvc", "status")


def test_data_that_only_lost_a_set_that_no_training_reads_is_the_same_data(project):
    """In earlier versions, binarised data held the test set and the command of a training had no `--times`."""
    folder = project.root / "data/demo/binarised"
    (folder / "test.source.ids.npy").write_text("test")
    (folder / "binarised.json").write_text("with test")
    project.run("dvc", "commit", "--force", "binarise@demo", TRAIN)
    path = project.root / "dvc.lock"
    path.write_text(path.read_text().replace(f" --times work/times/{RUN}/training.json", ""))
    (folder / "test.source.ids.npy").unlink()
    (folder / "binarised.json").write_text("without test")
    append(project, MODEL, "\n# a comment\n")
    before = (folder / "made").read_bytes()
    (folder / "made").write_text("other pairs")
    assert "data/demo/binarised is modified" in refused(project, TRAIN, WORD)
    (folder / "made").rename(project.root / "made")
    assert "data/demo/binarised is modified" in refused(project, TRAIN, WORD), "no set is left"
    (folder / "made").write_bytes(before)
    (folder / "binarised.json").rename(project.root / "binarised.json")
    assert "data/demo/binarised is modified" in refused(project, TRAIN, WORD), "a training needs the description"
    (project.root / "binarised.json").rename(folder / "binarised.json")
    adopt(project, TRAIN)
    assert "up to date" in project.run("dvc", "status", TRAIN)


# Unfinished trainings


def test_an_unfinished_training_goes_on_with_the_code_of_now_or_is_removed(project):
    place = project.root / f"work/{RUN}/0123"
    place.mkdir(parents=True)
    (place / "state.safetensors").write_text("")
    (place / "code.json").write_text('["old"]')
    adopt(project, RUN)
    assert json.loads((place / "code.json").read_text()) == ["old", "adopt"]
    adopt(project, RUN, "--anew")
    assert not place.exists()
    assert "holds no unfinished training" in refused(project, RUN, "--anew")
    assert "is a stage, a run is expected" in refused(project, TRAIN, "--anew")
    assert "is not a valid name" in refused(project, f"../work/{RUN}", "--anew")


# Long trainings


def took(project: StubProject, seconds: float) -> None:
    path, made = (project.root / folder / RUN / "training.json" for folder in ("work/times", "scores"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_times(path, made, {"seconds": seconds})


def test_without_a_terminal_a_long_training_is_not_begun_again_for_code_alone(project):
    took(project, 8040)
    append(project, "transformer/attention.py", "\nA = 1\n")
    stale = f"{TRAIN} is stale only because of code (transformer/attention.py); it took 2 h 14 min."
    printed = project.run("snakemake", "--cores", "2", status=1)
    (line,) = [line for line in printed.splitlines() if line.startswith(f"snakemake: {stale}")]
    last = printed.strip().splitlines()[-1]
    assert last.startswith("snakemake: not started: ") and "commands.adopt demo-tiny`" in last and "YES=1" in last
    assert project.ran() == [] and (project.root / f"models/{RUN}/checkpoints").exists() and "Traceback" not in printed
    assert line in project.run("snakemake", "--dry-run").splitlines()
    assert project.run("python", "-m", "pipeline.commands.check") == line.replace("snakemake:", "check:") + "\n"
    project.run("snakemake", "--cores", "1", TRAIN, YES="1")
    assert project.ran() == [TRAIN]


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1)])
def test_on_a_terminal_it_asks(project, answer, status):
    took(project, 8040)
    append(project, MODEL, "\nA = 1\n")
    master, slave = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    command = project.command("snakemake", "--cores", "1", TRAIN)
    done = subprocess.run(**command, stdin=slave, capture_output=True, text=True, check=False)
    os.close(master)
    os.close(slave)
    assert f"Run again: {TRAIN} (2 h 14 min)? [y/N]" in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == status and (TRAIN in project.ran()) == (answer == "y")


def test_a_long_training_whose_outputs_dvc_has_lost_is_kept(project):
    took(project, 8040)
    shutil.rmtree(project.root / ".dvc/cache")
    shown = f"{TRAIN} is stale only because its outputs are not in DVC's cache; it took 2 h 14 min."
    assert shown in project.run("snakemake", "--dry-run")
    printed = adopt(project, RUN)
    assert f"{TRAIN}: stale only because its outputs are not in DVC's cache\n" in printed
    assert TRAIN not in project.stale() and project.ran() == []


def test_a_short_training_another_setting_and_a_run_that_dvc_remembers_are_no_question(project):
    took(project, 8040)
    script = project.root / MODEL
    before = script.read_bytes()
    append(project, MODEL, "\nA = 1\n")
    project.run("dvc", "repro", "--single-item", TRAIN)
    script.write_bytes(before)
    assert "only because of code" not in project.run("snakemake", "--dry-run"), "DVC's run cache has it"
    append(project, MODEL, "\nB = 1\n")
    assert "only because of code" in project.run("snakemake", "--dry-run")
    took(project, 1700)
    assert "only because of code" not in project.run("snakemake", "--dry-run")
    (project.root / f"results/{RUN}.json").write_text('{"timing": {"seconds": 8040}}')
    (project.root / f"work/times/{RUN}/training.json").write_text('{"seconds": 30, "output_sha256": "of another"}')
    assert "it took 2 h 14 min" in project.run("snakemake", "--dry-run"), "the time of the record"
    took(project, 8040)
    changed_setting(project)
    assert "only because of code" not in project.run("snakemake", "--dry-run")
