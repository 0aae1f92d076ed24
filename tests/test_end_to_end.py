"""The whole pipeline, run by Snakemake in a copy of the project on a small demonstration corpus.

A stage that is killed and started again must write the same bytes as one that was not killed.
"""

import json
import re
import resource
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline.code import NOTED
from pipeline.orchestrating.results import SHOWN
from tests.support.killed import kill
from tests.support.projects import Project, heeding_signals
from tests.support.shortened import DECODINGS, KILLED, OUTPUTS, PAGE, RUN, TRAIN, command, content, shortened
from tests.support.small_run import saved

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = shortened(tmp_path_factory.mktemp("project"))
    project.printed = project.run("snakemake", "--cores", "2")
    return project


def finished(project: Project, stage: str) -> str:
    """Run the stage's command, which must succeed, and after a training `average`. Returns what the stage prints."""
    printed = project.run(*command(project, stage)["args"])
    if stage == TRAIN:
        project.run(*command(project, f"average@{RUN}")["args"])  # which removes the saved state
    return printed


def scores(project: Project) -> dict:
    """The scores of the run on the test set, by measure."""
    return json.loads((project.root / f"scores/{RUN}/score.json").read_text())["test"]["average"]["metrics"]


def test_without_a_terminal_it_prints_a_line_a_stage_and_ends_with_the_scores_and_the_page(project):
    lines = project.printed.strip().split("\n")
    assert len(lines) <= 100 and "\r" not in project.printed
    finished = [re.fullmatch(rf"\[ *(\d+)/{len(OUTPUTS)}\] (\S+)  (?:\d+ min )?\d+ s", line) for line in lines]
    places = [(int(match[1]), match[2]) for match in finished if match]
    assert [number for number, _ in places] == list(range(1, len(OUTPUTS) + 1))
    assert {stage for _, stage in places} == set(OUTPUTS)
    score = scores(project)["bleu-13a"]
    assert f"{score['score']:.2f} ({score['low']:.2f} to {score['high']:.2f})" in "\n".join(lines[-15:])
    assert f"reports/{PAGE}" in "\n".join(lines[-15:])
    assert f"{score['score']:.2f}" in (project.root / f"reports/{PAGE}").read_text()
    assert not list((project.root / "work" / RUN).glob("*/")), "the published training left its state behind"
    log = (project.root / f"work/logs/{TRAIN}.log").read_text()
    assert "step 60: dev perplexity" in log and "step/s" not in log, "no progress bar in a file"
    again = project.run("snakemake", "--cores", "2")
    assert "Nothing to do" in again and again.count("the same") == min(SHOWN, 1 + len(DECODINGS))


def made(project: Project) -> dict[str, bytes]:
    """The files that a run of the workflow leaves for the user, by path."""
    places = [project.root / name for name in ("data", "models", "scores", "reports", "dvc.lock", "params.yaml")]
    files = [file for place in places for file in [place, *place.rglob("*")] if file.is_file()]
    return {file.relative_to(project.root).as_posix(): file.read_bytes() for file in files}


def test_two_clean_runs_are_equal_in_all_but_the_page(project, tmp_path):
    """DVC alone makes the second run, one stage after the other. params.yaml sets the number of threads."""
    second = shortened(tmp_path)
    (tmp_path / NOTED).parent.mkdir(exist_ok=True)
    shutil.copy(project.root / NOTED, tmp_path / NOTED)  # the digests of the same code, which take seconds
    second.run("dvc", "repro")
    one, other = made(project), made(second)
    assert one.keys() == other.keys()
    # DVC adds an entry when its stage ends, and the order in which stages end depends on the tool.
    locks = [YAML(typ="safe").load(files.pop("dvc.lock")) for files in (one, other)]
    assert locks[0] == locks[1]
    pages = {f"reports/{PAGE}", "reports/recorded.html"}  # which are not in git
    assert {path for path in one if one[path] != other[path]} == pages
    second.commit("the results")
    assert second.run("git", "ls-files", *pages) == "" != second.run("git", "ls-files", "reports/runs.csv")
    times = [project.root / f"work/times/{name}.json" for name in (f"{RUN}/training", f"{RUN}/decoding")]
    assert all(path.exists() for path in times)


def test_dvc_shows_both_curves_and_the_scores_and_snakemake_reports_the_tables(project, tmp_path):
    printed = project.run("dvc", "plots", "show", "--json", "--out", str(tmp_path))
    drawn = {Path(name).stem: one["content"]["data"]["values"] for name, (one,) in json.loads(printed)["data"].items()}
    records = list(map(json.loads, (project.root / f"scores/{RUN}/training.jsonl").read_text().splitlines()))
    metrics = json.loads((project.root / f"scores/{RUN}/metrics.json").read_text())
    for key in ("loss", "dev_loss"):
        expected = [(record["step"], record[key]) for record in records if key in record]
        assert [(each["step"], each[key]) for each in drawn[key]] == expected and len(expected) > 2
        assert metrics[key] == expected[-1][1], "the last one"
    assert {each["set"]: each["bleu"] for each in drawn["bleu"]}["test, average"] == scores(project)["bleu-13a"]["score"]
    assert "test_sacrebleu" in project.run("dvc", "metrics", "show")
    page = tmp_path / "report.html"
    printed = project.run("snakemake", "--report", str(page))
    assert "GNMT + RL" in page.read_text() and "ERROR" not in printed


def test_a_model_card_has_the_scores_of_the_run(project, tmp_path):
    pytest.importorskip("pipeline.extras.export.model_card")  # an extra may be deleted
    out, unrelated = tmp_path / "out", project.root / "text/unrelated.en"
    unrelated.write_text("A file of another corpus.\n")
    project.run("python", "-m", "pipeline.extras.export.__main__", RUN, str(out), "--format", "marian")
    unrelated.unlink()
    card = (out / "README.md").read_text(encoding="utf-8")
    for name, cell in scores(project).items():
        signature = cell["signature"].replace("|", r"\|")
        assert f"| {name} | {cell['score']:.2f} | {cell['low']:.2f} to {cell['high']:.2f} | `{signature}` |" in card
    front = YAML(typ="safe").load(card.split("---")[1])
    found = {each["name"]: each["value"] for each in front["model-index"][0]["results"][0]["metrics"]}
    assert front["license"] == "mit" and found == {name: cell["score"] for name, cell in scores(project).items()}
    assert 'language: ["en", "de"]' in card and f"# {RUN} (en to de)" in card


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=[pytest.mark.more] * (stage not in (TRAIN, "report"))) for stage in KILLED]
)
def test_a_stage_killed_and_run_again_writes_the_same_bytes(project, stage):
    before, start = content(project, stage), command(project, stage)
    _, _, module, *arguments = start["args"]
    kill(module, arguments, start["cwd"], start["env"])
    finished(project, stage)
    assert content(project, stage) == before


def test_a_signal_saves_says_so_and_is_resumed(project):
    """test_workspace.py has the other signals."""
    before, line = content(project, TRAIN), command(project, TRAIN)
    process = subprocess.Popen(**line, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_signals)
    saved(process, project.root / "work" / RUN)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate()
    assert process.returncode == 75 and "stopped by SIGINT at step" in output, output
    assert "not possible here" not in output, "portable arithmetic, which begins before numpy is imported"
    other = project.root / "work" / RUN / "other" / "state.safetensors"
    other.parent.mkdir()
    other.touch()
    output = finished(project, TRAIN)
    assert "resuming at step" in output and f"work/{RUN}/other" in output, "the folder that stays is named"
    assert list((project.root / "work" / RUN).glob("*/*")) == [other], "a training of days may go on later"
    shutil.rmtree(other.parent)
    assert content(project, TRAIN) == before


@pytest.mark.more
def test_a_full_disk_is_one_line_and_loses_nothing_that_was_saved(project):
    """The limit of a file's size suffices for the log, but not for the first state."""
    before = content(project, TRAIN)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (20_000, 20_000))
    done = subprocess.run(**command(project, TRAIN), capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == 1 and "File too large" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not list((project.root / "work" / RUN).rglob("*.safetensors")), "a part of a file"
    finished(project, TRAIN)
    assert content(project, TRAIN) == before
