"""What the user sees: the workflow's lines, the live line, failures, `make status` and `make plan`."""

import dataclasses
import errno
import io
import json
import logging
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from snakemake_interface_logger_plugins.common import LogEvent

from pipeline import code
from pipeline.commands import plan
from pipeline.commands.plan import Sizes, training
from pipeline.orchestrating import results
from pipeline.orchestrating.results import Result
from pipeline.orchestrating.screen import LAST, Running, Screen
from pipeline.reporting import warned
from pipeline.running.progress import Progress, place_of
from pipeline.running.times import write_times
from pipeline.settings.selection import run_settings
from tests.support import in_process
from tests.support.projects import ENVIRONMENT, ROOT, with_settings, without_git
from tests.support.stubs import MODEL, StubProject
from tests.support.trainers import build, files, run
from transformer.config.model import ModelConfig
from transformer.config.reading import read_saved
from transformer.config.training import TrainingConfig
from transformer.files import write_json

STAGE = "train@demo-tiny"


# The workflow


def test_a_failure_shows_the_path_and_the_end_of_its_log_and_nothing_of_snakemake(project):
    project.edit("params.yaml", "    bootstrap: 1000 ", "    bootstrap: 500 ")
    printed = project.run("snakemake", "--cores", "2", status=1, STUB_FAILS="score").strip().split("\n")
    log = project.root / "work/logs/score@demo-tiny.log"
    place = next(place for place, line in enumerate(printed) if line.startswith("score@demo-tiny failed after "))
    assert printed[place].endswith(" The end of work/logs/score@demo-tiny.log:")
    assert printed[-1] == "score: what is wrong, where, and what would be right"
    assert project.ran() == ["score@demo-tiny"] and "score@demo-tiny" in project.stale()
    assert set(printed[place + 1 :]) <= set(log.read_text().splitlines()) and "ERROR: failed" in log.read_text()
    assert len(printed) - place <= LAST + 1


@pytest.mark.parametrize(
    ("last", "word"), [("stopped by SIGTERM at step 3; the same command resumes it", "stopped"), ("train: no", "failed")]
)
def test_a_training_that_a_signal_stopped_has_not_failed(here, last, word):
    terminal = Terminal()
    screen = Screen(lambda: None, stream=terminal)
    screen.handle(event(LogEvent.JOB_INFO, jobid=1, rule_name=STAGE))
    Path("work/logs").mkdir(parents=True)
    Path(f"work/logs/{STAGE}.log").write_text(f"step 2\n{last}\nERROR: failed to reproduce '{STAGE}': failed to run: x\n")
    screen.handle(event(LogEvent.JOB_ERROR, jobid=1, rule_msg=None))
    (line,) = [line for line in terminal.shown() if line.startswith(STAGE)]
    assert line.startswith(f"{STAGE} {word} after ") and terminal.shown()[-2] == last
    os.utime(f"work/logs/{STAGE}.log", (0, 0))  # the next start fails before it writes a log
    screen.handle(event(LogEvent.JOB_INFO, jobid=2, rule_name=STAGE))
    screen.handle(event(LogEvent.JOB_ERROR, jobid=2, rule_msg="sbatch: no more jobs\n"))
    assert terminal.shown()[-3:] == [f"{STAGE} failed after 0 s.", "sbatch: no more jobs", ""]


def test_a_stage_whose_output_dvc_could_not_cache_says_so(here):
    """DVC itself fails only for a file. It records a folder, and the next start finds the stage stale."""
    without_git(here)
    Path("dvc.yaml").write_text("stages:\n  made:\n    cmd: mkdir made && mv large made\n    outs: [made]\n")
    Path("large").write_bytes(bytes(2**20))
    terminal = Terminal()
    screen = Screen(lambda: None, stream=terminal)
    screen.handle(event(LogEvent.JOB_INFO, jobid=1, rule_name="made"))
    Path("work/logs").mkdir(parents=True)
    command = "ulimit -f 512; exec python -m pipeline.orchestrating.single made > work/logs/made.log 2>&1"  # no full disk
    subprocess.run(["bash", "-c", command], env=ENVIRONMENT, check=True)
    screen.handle(event(LogEvent.JOB_FINISHED, job_id=1))
    assert os.strerror(errno.EFBIG) in terminal.shown()[-2] and str(here / "made/large") in terminal.shown()[-2]


# What stages warn of


def counted(**counts: Any) -> dict:
    return {"sets": {"train": counts}}


TRAINED = {"pairs_left_out": 30, "data_sum": "d0"}
DATA = {"data_sum": "d0", "sets": {"train": {"pairs": 400, "segmentations": 2}}}
HERE = {"dropped": {"decontaminate": 1}, "in_evaluation": 1}


@pytest.mark.parametrize(
    ("stage", "counts", "sentences", "large"),
    [
        ("download", counted(read=9, swapped=[1, 3]), ["part 1 look swapped", "part 3 look swapped"], 0),
        ("download", counted(segmented=[2], named=[1]), ["part 2 is in pieces", "part 1 seems to name columns"], 0),
        ("download", counted(variants=1, below=2000), ["1 row with several texts", "2,000 rows with a score below"], 0),
        ("download", counted(read=9) | {"languages": ["jp", "en"]}, ["'jp' is not a known code"], 0),
        ("download", counted(read=50, dropped={"same_source": 4}), ["4 of 50 (8.0%)"], 0),
        ("normalise", counted(read=90, dropped={"empty": 9, "max_ratio": 0}), ["9 of 90 (10.0%)"], 0),
        ("normalise", counted(read=90, dropped={"deduplicate": 10}), ["10 of 90 (11.1%)"], 1),
        ("normalise", counted(read=9000, dropped={"empty": 0}, in_evaluation=1, empty={"en": 9}), ["1 pair "], 0),
        ("normalise", counted(invalid={"en": 0, "de": 1234}), ["1,234 lines with damaged UTF-8 (de)"], 0),
        ("normalise", counted(empty={"en": 1, "de": 2}), ["1 empty source (en)", "2 empty references (de)"], 0),
        ("fetch_set", counted(empty={"en": 0, "de": 1}, swapped=[1]), ["part 1", "1 empty reference (de)"], 0),
        ("fetch_monolingual", counted(read=8, dropped={"max_words": 7}), ["7 of 8 (87.5%)"], 1),
        ("back_translate", counted(read=8, **HERE), ["1 of 8"], 1),
        ("train", TRAINED, ["30 of 200 (15.0%)"], 1),
        ("train", TRAINED | {"data_sum": "d1"}, ["30 left out"], 0),
        ("train", TRAINED | {"pairs_left_out": 0}, [], 0),
    ],
)
def test_each_kind_of_count_is_one_sentence(tmp_path, stage, counts, sentences, large):
    for file, content in (("corpora/{}/binarise.json", DATA), (warned.FILES[stage][1], counts)):
        write_json(tmp_path / file.format("x"), content)
    found = warned.of_stage(f"{stage}@x", tmp_path)
    assert all(said in each.text for said, each in zip(sentences, found, strict=True)), found
    assert sum(each.large for each in found) == large and warned.of_stage("score@x", tmp_path) == []


def test_a_large_share_of_pairs_left_out_is_said_before_everything_else(here, params, monkeypatch, capsys):
    sets = {"dev": {"read": 9, "empty": {"en": 0, "de": 1}}, "train": {"read": 9, "dropped": {"max_words": 8}}}
    write_json(Path("scores/corpora/demo/normalise.json"), {"sets": sets})
    write_json(Path("scores/corpora/demo/download.json"), {"sets": {"train": {"read": 9, "swapped": [1]}}})
    assert [("8 of 9" in text, large) for _, text, large in warned.of_stages(params)] == [(True, True)] + 2 * [
        (False, False)
    ]
    assert "8 of 9" in warned.said("normalise@demo")[0]
    monkeypatch.setattr(results, "load", lambda: params)
    results.show(warned.large)
    first, *rest = capsys.readouterr().out.strip().split("\n")
    assert "normalise@demo" in first and "8 of 9" in first and not any("demo:" in line for line in rest)
    Path("scores/corpora/demo/normalise.json").write_text("{")
    assert warned.said("normalise@demo") == [], "DVC makes a damaged file again"


def test_a_stage_that_dvc_restores_warns_as_one_that_ran(project):
    """The counts of the stub depend on its settings. What only this machine has is in the log of the stage that ran."""
    project.edit(
        "stub.py",
        'write_text(f\'{{"digest": {digest}}}',
        'write_text(f\'{{"sets": {{"x": {{"read": 9, "empty": {{"en": {digest}}}}}}}}}',
    )
    project.edit("stub.py", 'with open("work/ran"', 'print("warning: of this machine")\nwith open("work/ran"')
    shown, value = [], "max_words: 0"
    for new in ("max_words: 71", "max_words: 83", "max_words: 71"):
        project.edit("params.yaml", value, new)
        lines = project.run("snakemake", "--cores", "2", "normalise@demo").split("\n")
        place = next(place for place, line in enumerate(lines) if "/1] normalise@demo" in line)
        shown.append(
            (lines[place].endswith("(not run: DVC has its result)"), lines[place + 1].strip(), lines[place + 2].strip())
        )
        value = new
    first, second, third = shown
    assert first[2] == second[2] == "of this machine" != third[2] and [each[0] for each in shown] == [False, False, True]
    assert "empty sources (en)" in first[1] and third[1] == first[1] != second[1]


# The progress of a stage, and the live line


@pytest.fixture
def bar_of_a_stage(here, monkeypatch):
    """Make this process a stage that DVC runs, in an empty folder."""
    monkeypatch.setenv("DVC_STAGE", STAGE)


def seconds_left() -> int:
    """The time left that the progress of STAGE names."""
    minutes, seconds = re.search(r"(?:(\d+) min )?(\d+) s left", place_of(STAGE)).groups(default="0")
    return int(minutes) * 60 + int(seconds)


def test_a_bar_without_a_terminal_leaves_its_place_only_when_it_is_stopped(bar_of_a_stage, capfd, monkeypatch):
    with Progress(total=1200, initial=400, unit="step") as bar:
        bar.set_postfix_str("loss 2.310, 21,604 tokens/s")
        time.sleep(0.1)
        bar.update(20)
        least = bar.format_dict["elapsed"]
        bar.refresh()
        pace = 780 / 20  # 20 steps took the time since this start
        assert place_of(STAGE).startswith("step 420 of 1,200, loss 2.310, 21,604 tokens/s, ")
        assert round(pace * least) <= seconds_left() <= round(pace * bar.format_dict["elapsed"])
        Progress.write("a line")
    assert place_of(STAGE).startswith("step 420 of 1,200")
    with Progress(total=40_000_000, unit="B") as bar:
        bar.update(12_000_000)
        bar.refresh()
    assert place_of(STAGE).startswith("12.0 of 40.0 MB, ")
    with Progress(total=2, unit="sentence") as bar:
        bar.update(2)
    assert place_of(STAGE) == ""
    assert capfd.readouterr() == ("a line\n", "")
    monkeypatch.delenv("DVC_STAGE")
    with Progress(total=2, unit="step") as bar:
        bar.update(1)
    assert place_of(STAGE) == "", "without DVC there is no file"


@pytest.mark.parametrize(
    ("steps", "least", "most"),
    [([1.0] * 100, 390, 410), ([1.0] * 99 + [11.0], 400, 600), ([1.0] * 100 + [0.5] * 100, 200, 300)],
)
def test_the_time_left_follows_the_pace_of_the_last_minute(bar_of_a_stage, monkeypatch, steps, least, most):
    """`steps` are the seconds of each step: all alike, with a pause at the end, or faster in the second half."""
    with Progress(total=len(steps) + 400, unit="step") as bar:
        now = bar.start_t
        monkeypatch.setattr(bar, "_time", lambda: now)
        for seconds in steps:
            now += seconds
            bar.update(1)
        assert least <= seconds_left() <= most


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> list[str]:
        """The lines on the screen. A carriage return and ESC [2K clear the last line."""
        return [line.rpartition("\r\x1b[2K")[2] for line in self.getvalue().split("\n")]


def event(kind: LogEvent, **values) -> logging.LogRecord:
    return logging.makeLogRecord({"levelno": logging.INFO, "msg": "", "event": kind, **values})


def test_the_live_line_is_one_line_no_wider_than_the_terminal_and_gives_way_to_others(bar_of_a_stage, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    screen = Screen(lambda: None, stream=terminal)
    screen.handle(event(LogEvent.RUN_INFO, stats={STAGE: 1, "download": 1, "all": 1, "total": 3}))
    screen.handle(event(LogEvent.JOB_INFO, jobid=1, rule_name=STAGE))
    with Progress(total=10, unit="step", desc="") as bar:
        bar.update(3)
        bar.refresh()
        screen.draw()
        assert terminal.shown()[-1].startswith(f"{STAGE}: step 3 of 10")
        screen.handle(event(LogEvent.JOB_INFO, jobid=2, rule_name="download"))
        screen.draw()
    assert len(terminal.shown()[-1]) < 50 and terminal.shown()[-1].endswith("...")
    screen.handle(event(LogEvent.JOB_FINISHED, job_id=1))
    assert terminal.shown()[2:] == [f"[1/2] {STAGE}  0 s (not run: DVC has its result)", ""]
    screen.draw()
    assert terminal.shown()[-1] == "download: 0 s"


def test_without_a_terminal_the_lines_about_a_stage_become_rarer(monkeypatch):
    screen = Screen(lambda: None, stream=io.StringIO())
    screen.running[1] = Running(STAGE)
    said = [0]
    for minute in range(1, 100):
        monkeypatch.setattr(Running, "seconds", 60.0 * minute)
        screen.report_places()
        said.append(screen.stream.getvalue().count(STAGE))
    assert [minute for minute in range(1, 100) if said[minute] > said[minute - 1]] == [1, 2, 4, 8, 16, 32, 62, 92]


# `make status`


def status(project: StubProject) -> list[str]:
    return project.run("python", "-m", "pipeline.commands.status").strip().split("\n")


def test_status_says_what_is_stale_and_why_and_what_waits(project):
    project.edit("params.yaml", "    bootstrap: 1000 ", "    bootstrap: 500 ")
    (project.root / "scores/demo-tiny/flops.json").unlink()
    first, *stale = status(project)
    assert first == "13 stages: 2 stale, 3 waiting, 8 done"
    assert stale[:2] == [
        "stale    score@demo-tiny: base.scoring is modified",
        "stale    flops@demo-tiny: scores/demo-tiny/flops.json is deleted",
    ]
    assert {line.partition(": ")[0].split()[1] for line in stale[2:]} == {"result@demo-tiny", "collect", "report"}
    with project.at_work("snakemake", "--cores", "2", "score@demo-tiny"):  # no other stage ends when it is killed
        path = project.root / "work/progress/score@demo-tiny.txt"
        path.parent.mkdir()
        path.write_text("test, sentence 3 of 10, 1 min 5 s left")
        assert "running  score@demo-tiny: test, sentence 3 of 10, 1 min 5 s left" in status(project)
        os.utime(path, (0, 0))
        assert "running  score@demo-tiny" in status(project), "the place is that of an earlier start"
    (project.root / code.NOTED).unlink()
    (project.root / code.NOTED).mkdir()  # it cannot be written, as in the project of another user
    now = status(project)
    assert stale[1] in now and not [line for line in now if line.startswith("running")], "the killed processes are gone"


def test_status_of_a_stopped_training_names_its_place_and_of_scores_shows_them_best_first(project):
    project.change_code()
    for path in (f"progress/{STAGE}.txt", "demo-tiny/0/state.safetensors", "demo-tiny/1/state.safetensors"):
        (project.root / "work" / path).parent.mkdir(parents=True)
        (project.root / "work" / path).write_text("step 420 of 1,200, loss 2.3, 1 min 5 s left")
    os.utime(project.root / "work/demo-tiny/1", (0, 0))
    score = {"test": {"average": {"metrics": {"bleu-13a": {"score": 23.456, "low": 22.0, "high": 24.0}}}}}
    write_json(project.root / "scores/demo-tiny/score.json", score)
    shown = status(project)
    (line,) = [line for line in shown if line.startswith("stale")]
    assert line.startswith(f"stale    {STAGE}: code ({MODEL}) is modified; stopped at step 420 of 1,200")
    assert "work/demo-tiny/0 holds its state" in line, "the last one"
    assert project.run("git", "status", "--porcelain").split() == ["M", MODEL], "no file of git has changed"
    assert shown[-1].split("  ")[:2] == ["demo-tiny", "23.46 (22.00 to 24.00)"]


# The results


def test_results_say_what_changed_since_the_last_time(here, monkeypatch, capsys):
    monkeypatch.setattr(results, "load", dict)

    def shown(*found: Result) -> list[list[str]]:
        monkeypatch.setattr(results, "results", lambda params: iter(found))
        results.show()
        return [line.split("  ")[-1].strip() for line in capsys.readouterr().out.strip().split("\n")[1:]]

    assert shown(Result("a", 20.0, 19.0, 21.0, 5.0, 60.0)) == ["new"]
    more = shown(Result("a", 20.0, 19.0, 21.0, 5.0, 90.0), Result("b", None, None, None, None, None))
    assert more == ["the same", "new"]
    assert shown(Result("a", 21.5, 19.0, 22.0, 4.9, 90.0)) == ["BLEU +1.50, perplexity -0.10"]
    assert shown(Result("a", 21.5049, 19.0, 22.0, 4.9, 90.0)) == ["the same"]
    assert shown(Result("a", 21.5051, 19.0, 22.0, 4.9, 90.0)) == ["BLEU +0.01"]
    many = [Result(f"run-{number}", 20.0, None, None, None, None) for number in range(12)]
    *_, last, more = results.table(many)
    assert last.startswith("run-9 ") and more == "and 2 more"


def test_results_have_the_first_measure_and_the_time_of_their_own_training(here):
    metrics = {"bleu-zh": {"score": 30.0, "low": 29.0, "high": 31.0}, "chrf": {"score": 20.0, "low": None, "high": None}}
    write_json(Path("scores/a/score.json"), {"test": {"average": {"metrics": metrics}}})
    write_json(Path("scores/decodings/b/score.json"), {"set": {"metrics": metrics}})
    perplexities = {"last": {"perplexity": 6.5}, "average": {"perplexity": 6.0}}
    write_json(Path("scores/a/translations/translations.json"), {"dev": perplexities})
    found = results.results({"runs": {"a": {}, "empty": {}}, "decodings": {"b": {}}})
    assert [(each.bleu, each.perplexity) for each in found] == [(30.0, 6.0), (None, None), (30.0, None)]
    training, seen = Path("scores/a/training.json"), []
    for loss, seconds in ((1.0, 30.0), (2.0, None), (2.0, 20.0), (1.0, None)):  # the last by `dvc checkout`, for example
        write_json(training, {"dev_loss": loss})
        if seconds:
            write_times(Path("work/times/a/training.json"), training, {"seconds": seconds})
        seen += [each.seconds for each in results.results({"runs": {"a": {}}, "decodings": {}})]
    assert seen == [30.0, None, 20.0, 30.0]


# `make plan`


def planned(printed: str) -> dict[str, dict[str, str]]:
    """The rows of the plan by job, and the last line under the key ''."""
    lines = printed.strip().split("\n")
    rows = [re.split(r"  +", line) for line in lines]
    return {row[0]: dict(zip(plan.SHOWN, row[1:])) for row in rows if len(row) == 1 + len(plan.SHOWN)} | {"": lines[-1]}


def test_the_whole_paper_is_planned_without_data(here):
    """Section 5.2: base took 12 hours on 8 P100 (100,000 steps of 0.4 s are 11.1 hours), and big took 3.5 days."""
    with_settings(here)
    rows = planned(in_process.command(here, "pipeline.commands.plan", "paper").stdout)
    trainings = {name: row for name, row in rows.items() if name.startswith("train@")}
    base, big = trainings["train@wmt14-en-de-base"], trainings["train@wmt14-en-de-big"]
    assert base["on 8 P100"] == "11 h 6 min" and big["on 8 P100"] == "3 d 11 h" and len(trainings) == 22
    assert not {row["time here"] for row in trainings.values()} & {"-", "0 s"}, "a product was timed"
    sizes = {key: [float(row[key].split()[0]) for row in trainings.values()] for key in ("memory", "disk")}
    assert float(rows["all"]["memory"].split()[0]) == max(sizes["memory"]), "trainings run one at a time"
    assert float(rows["all"]["disk"].split()[0]) == pytest.approx(sum(sizes["disk"]), abs=3)


def test_a_plan_has_what_is_stale(project):
    project.edit("params.yaml", "    bootstrap: 1000 ", "    bootstrap: 500 ")
    rows = planned(project.run("python", "-m", "pipeline.commands.plan"))
    assert set(rows) == {""} and rows[""].startswith("4 of 12 stages would run"), "and no training"
    assert " of them only if earlier stages change their outputs; 8 are up to date." in rows[""]


def test_a_training_is_as_fast_as_the_last_one_here_and_evaluations_take_a_third_of_a_pass(params, here):
    assert plan.last_rate() is None
    for name, took, when in (("first", {"seconds": 10.0}, 1), ("last", {"seconds": 50.0, "processes": 4}, 2)):
        folder = Path("scores", name)
        write_json(folder / "training.json", {"run": name})
        write_json(folder / "flops.json", {"analytic": {"training_flops": 1e12}})
        times = Path("work/times", name, "training.json")
        write_times(times, folder / "training.json", took)
        os.utime(times, (when, when))
    assert plan.last_rate() == (5e9, "the last training here (last)")
    write_json(Path("scores/last/training.json"), {"run": "restored"})
    assert plan.last_rate() == (1e11, "the last training here (first)"), "the times are of another training"
    _, model, config = run_settings(params, "demo-tiny")
    config = dataclasses.replace(config, steps=1000, evaluate_every=10**9)
    of = plan.sizes(params, "demo")
    one, often = (training(model, each, of, 2e10) for each in (config, dataclasses.replace(config, evaluate_every=10)))
    assert one["time here"] == pytest.approx(one["operations"] / 2e10)
    dev = of.dev * (of.source + of.target) * one["operations"] / one["tokens"] / 2e10
    assert often["time here"] - one["time here"] == pytest.approx(100 * dev / 3)
    twice = training(model, dataclasses.replace(config, r_drop=1.0), of, 2e10)
    assert twice["operations"] == 2 * one["operations"]
    several = {**params, "machine": {**params["machine"], "nodes": 2, "processes": 3}}
    stages = plan.planned(params, ["download@demo", "train@demo-tiny"])
    here, faster = (plan.jobs(each, stages, 2e10)["train@demo-tiny"] for each in (params, several))
    assert faster["time here"] == pytest.approx(here["time here"] / 6)


def test_a_product_is_timed_in_the_precision_of_the_trainings(params, monkeypatch):
    """The demonstration is portable, so in float32 also on a CPU with units for bfloat16."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True}, raising=False)
    _, _, config = run_settings(params, "demo-tiny")
    for arithmetic, precision in ("portable", "float32"), ("native", "bfloat16"):
        _, origin = plan.rate_of_product(params, [dataclasses.replace(config, arithmetic=arithmetic)])
        assert origin == f"a product of matrices in {precision}"


@pytest.mark.parametrize("run", ["demo-tiny-N1", "demo-deep", "multi30k-small"])
def test_expected_tokens_and_operations_are_those_of_recorded_trainings(run):
    record = json.loads((ROOT / f"results/{run}.json").read_text())
    done, counted = record["training"], record["flops"]["analytic"]["training_flops"]
    kinds = {"model": ModelConfig, "training": TrainingConfig}
    model, config = (read_saved(kind, done["settings"][key], key) for key, kind in kinds.items())
    epoch = done["steps"] / done["batches_an_epoch"]
    pairs = 29_000 if run.startswith("multi30k") else 40_000
    means = [done[f"{side}_tokens"] / epoch / pairs for side in ("source", "target")]
    vocabulary = 4000 if run.startswith("multi30k") else 2000
    one = training(model, config, Sizes(*means, vocabulary, 500), 1e10)
    assert one["tokens"] == pytest.approx(done["source_tokens"] + done["target_tokens"], rel=0.03)
    assert one["operations"] == pytest.approx(counted, rel=0.05)
    assert plan.parameters(model, vocabulary) == done["parameters"]


def test_the_size_of_a_built_corpus_is_that_of_its_report(params, here):
    train = {"pairs": 300, "segmentations": 3, "source_tokens": 6000, "target_tokens": 9000}  # 100 pairs, three times
    dev = {"pairs": 50, "source_tokens": 500, "target_tokens": 600}
    write_json(Path("scores/corpora/multi30k/binarise.json"), {"sets": {"train": train, "dev": dev}})
    assert plan.sizes(params, "multi30k") == (21, 31, 4000, 50), "pieces, EOS included"


def test_the_plan_has_the_disk_of_all_files_and_the_memory_of_both_sides(tmp_path, params, settings, training_settings):
    config = training_settings(keep=3)
    assert run(build(tmp_path, config, settings()))
    sizes = {path.name: len(data) for path, data in files(tmp_path).items()}
    published = sum(size for name, size in sizes.items() if name.startswith("step-"))
    less = training_settings(keep=3, micro_batch_tokens=config.micro_batch_tokens // 2)
    one, half = (training(settings(), each, Sizes(10, 10, 90, 20), 1e10) for each in (config, less))
    larger = training_settings(keep=3, micro_batch_tokens=2 * config.batch_tokens)  # than a batch
    assert training(settings(), larger, Sizes(10, 10, 90, 20), 1e10)["memory"] == one["memory"]
    assert one["disk"] == pytest.approx(sum(sizes.values()) + 2 * published * 4 / 3, rel=0.1), "three, and their average"
    # By hand, with N = 2, d_model = 32 and d_ff = 64: embeddings; four projections with their biases, once in each layer of
    # the encoder and twice in the decoder; two linear maps with their biases; gains and biases of 2 and 3 norms.
    attention, linear, norm = 4 * (32 * 32 + 32), 2 * 32 * 64 + 64 + 32, 2 * 32
    weights = 90 * 32 + 2 * (attention + linear + 2 * norm) + 2 * (2 * attention + linear + 3 * norm)
    tokens, kept = 2 * config.micro_batch_tokens * 0.97, plan.KEPT * 2 * (8 * 32 + 2 * 64)
    without = 330e6 + 4 * 4 * weights  # a weight, its gradient and Adam's two moments
    assert (one["memory"], half["memory"]) == pytest.approx((without + tokens * kept, without + tokens / 2 * kept))
