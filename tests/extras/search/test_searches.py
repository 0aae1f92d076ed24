"""The search for settings: refused spaces, trials, a killed search and the uses of the result."""

import copy
import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import sacrebleu
import torch

from pipeline import train
from pipeline.commands import plan
from pipeline.extras.search import section as reporting
from pipeline.extras.search.settings import search
from pipeline.extras.search.trials import STARTUP, Trial, Trials
from pipeline.extras.search.tune import key_of
from pipeline.settings.check import check
from pipeline.settings.params import load, parse
from pipeline.text.evaluation import EvaluationSet
from tests.support import in_process
from tests.support.projects import ENVIRONMENT, ROOT, first, module_of
from tests.support.refusals import refusals, refused
from tests.support.searches import SEARCH, SPACE, result
from tests.support.small_run import write_params_yaml
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import read
from transformer.files import write_json, write_lines
from transformer.store import step_files
from transformer.translator import Translator

SMALL = {"N": 1, "d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16, "attention_dropout": 0.0}
SHORT = {"steps": 500, "batch_tokens": 200, "micro_batch_tokens": 200, "max_length": 100, "checkpoint_every": 100}
SHORT |= {"log_every": 10, "precision": "float32", "threads": 1}
BEST = "small-best"


# Settings


@pytest.fixture
def params(params) -> dict[str, Any]:
    return copy.deepcopy({**params, "searches": {"small": SEARCH}, "studies": {}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": "multi30k"}, "searches.small.corpus: 'multi30k' is not the corpus of a run; valid names are demo"),
        ({"space": {"dropuot": [0.1]}}, "searches.small.space.dropuot: unknown key; did you mean 'dropout'?"),
        ({"space": {"dropout": {"low": 0.0, "high": 0.1, "scale": "log"}}}, "dropout.low: 0.0 is not possible; a numb"),
        ({"space": {"N": {"low": 1.5, "high": 3, "scale": "linear"}}}, "space.N: {'high': 3, 'low': 1.5"),
        ({"space": {"h": [4, 6], "d_model": [48, 65]}}, "d_model: 65 is not possible; an even number"),
        ({"space": {"steps": [10, 20]}}, "steps is not possible in a space: it is the same in all"),
        ({"space": {"keep": [1, 2]}}, "keep is not possible in a space: it is the same in all"),
        ({"space": {"width": [{"h": 2}, {"h": 2, "N": 3}]}}, "space.width: either values, or mappings of the same"),
        ({"space": {"width": [{"h": 2}], "h": [2]}}, "searches.small.space: h is in both width and h"),
    ],
)
def test_a_wrong_search_is_refused_in_one_line(params, change, message):
    check(params)
    params["searches"]["small"] |= change
    (line,) = refusals(params)
    assert message in line


@pytest.mark.parametrize("metric", ["dev_loss", "dev_bleu"])
def test_another_search_begins_after_a_change_that_can_change_a_value(params, tmp_path, metric):
    """Of the settings outside the space. A search for the dev loss decodes nothing."""
    params["searches"]["small"]["metric"] = metric

    def key(data: str = "data", code: str = "code") -> str:
        return key_of(params, "small", search(params, "small"), data, code, tmp_path)

    write_json(tmp_path / "set.json", {"corpus": "demo", "languages": ["en", "de"]})
    (tmp_path / "raw.de").write_text("Ein Satz.\n")
    before, training = key(), params["base"]["training"]
    params["searches"]["small"]["trials"] += 1
    training["lr_scale"] *= 2  # which every trial replaces
    assert key() == before not in (key(data="other"), key(code="other"))
    params["models"]["tiny"]["decoding"] = {"beam": 2}
    decoded = key()
    (tmp_path / "raw.de").write_text("Ein anderer Satz.\n")
    assert (decoded == before, key() == decoded) == (metric == "dev_loss", metric == "dev_loss")
    training["label_smoothing"] = 0.2
    assert key() != before


def test_a_sample_stays_in_its_range_however_narrow_it_is(params):
    params["searches"]["small"]["space"] = {"dropout": {"low": 0.12344, "high": 0.12348, "scale": "linear"}}
    (dropout,) = search(params, "small").dimensions
    for value in (0.12344, 0.123449, 0.12346, 0.12348):
        assert 0.12344 <= dropout.settings(value)["dropout"] <= 0.12348
    params["searches"]["small"]["space"] = {"warmup": {"low": 4, "high": 20_000, "scale": "linear"}}
    (warmup,) = search(params, "small").dimensions
    assert warmup.settings(12_345) == {"warmup": 12_345}, "a whole number has all its digits"


# Trials, without trainings


def tried(path: Path, chosen, restarts: bool) -> list[dict]:
    """Run all trials, with a dev loss that depends only on the settings. `restarts` kills every other trial twice."""
    trials = Trials(path, chosen)
    while trial := next(trials.remaining(), None):
        loss, killed = abs(math.log(trial.settings["lr_scale"])) + trial.settings["dropout"], restarts and trial.number % 2
        for step in (5, 10, 15):
            trial.report(step, loss + 1 / step)
            if killed and step == 10:  # between two evaluations
                trials = Trials(path, chosen)
                trial = next(trials.remaining())
        if trial.hopeless:
            trial.prune("hopeless")
        else:
            trial.report(20, loss)
            if killed:  # after the last evaluation
                trial = next(Trials(path, chosen).remaining())
                assert not trial.hopeless
            trial.complete(None)
    return trials.records()


@pytest.mark.slow
def test_samples_depend_on_the_seed_and_not_on_restarts_and_bad_trials_are_pruned(params, tmp_path):
    params["searches"]["small"] |= {"trials": 12}
    chosen = search(params, "small")
    whole, pieces = (tried(tmp_path / f"{restarts}.db", chosen, restarts) for restarts in (False, True))
    assert whole == pieces and len(whole) == 12
    params["searches"]["small"] |= {"seed": 2, "trials": 1}
    (other,) = tried(tmp_path / "other.db", search(params, "small"), False)
    assert other["settings"] != whole[0]["settings"]
    (tmp_path / "other.db").write_bytes(b"no database, " * 100)
    with refused("other.db cannot be read", "file is not a database"):
        Trials(tmp_path / "other.db", chosen)
    for trial in whole:
        settings = trial["settings"]
        assert 0.1 <= settings["lr_scale"] <= 2.0 and 0 <= settings["dropout"] <= 0.3
        assert settings["warmup"] in range(4, 13) and settings["norm"] in ("post", "pre")
        assert {"d_model": settings["d_model"], "d_ff": settings["d_ff"]} in SPACE["width"]
        assert trial["value"] is None or trial["state"] == "complete"
    pruned = [trial for trial in whole if trial["state"] == "pruned"]
    finished = [trial for trial in whole if trial["state"] == "complete"]
    assert pruned and min(trial["trial"] for trial in pruned) >= STARTUP
    best_losses = sorted(trial["value"] for trial in finished)
    assert all(trial["dev_losses"][-1][1] > best_losses[0] for trial in pruned)


def test_a_resumed_trial_evaluates_a_step_again_and_keeps_its_curve_and_its_end(params, tmp_path):
    params["searches"]["small"] |= {"trials": STARTUP + 1}
    chosen, path = search(params, "small"), tmp_path / "trials.db"

    def resumed() -> Trial:
        return next(Trials(path, chosen).remaining())

    for place, trial in zip(range(STARTUP), Trials(path, chosen).remaining()):
        trial.report(20, 2 + place / 10)
        trial.complete(None)
    resumed().report(5, 9.5)  # too early to be pruned
    trial = resumed()
    trial.report(5, 9.5)
    trial.report(20, 9.9)
    assert (trial.number, trial.hopeless, resumed().hopeless) == (STARTUP, False, False), "nothing is left to be saved"
    assert resumed().dev_losses == {5: 9.5, 20: 9.9} and Trials(path, chosen).records()[-1]["dev_losses"] == [
        [5, 9.5],
        [20, 9.9],
    ]
    resumed().complete(None)
    assert Trials(path, chosen).records()[-1]["value"] == 9.9, "the last one, not the lowest"


def test_a_search_for_dev_bleu_prunes_by_the_dev_loss_of_which_less_is_better(params, tmp_path):
    params["searches"]["small"] |= {"metric": "dev_bleu", "trials": STARTUP + 2}
    trials = Trials(tmp_path / "trials.db", search(params, "small"))
    hopeless = []
    for trial, loss in zip(trials.remaining(), [*(2 + place / 10 for place in range(STARTUP)), 9.0, 1.0]):
        trial.report(10, loss)
        hopeless.append(trial.hopeless)
        trial.prune("above the median dev loss") if trial.hopeless else trial.complete(50 - loss)
    assert hopeless == [False] * STARTUP + [True, False]
    assert trials.best().number == STARTUP + 1, "a higher dev BLEU is better"
    scales = {name: of.log for name, of in trials.completed()[0].distributions.items() if hasattr(of, "log")}
    assert scales == {"lr_scale": True, "dropout": False, "warmup": False}


# The stage


def write_params(folder: Path, **search_settings: Any) -> None:
    params = load(ROOT / "params.yaml")
    first(params["corpora"]["demo"]["download"], train=400, dev=15, test=2)
    params["corpora"]["demo"]["vocabulary"] = {"pieces": 400}
    params["models"]["tiny"] |= {"model": SMALL, "training": SHORT, "decoding": {"extra_length": 5, "threads": 1}}
    params["machine"] |= {"save_every_minutes": 0.0001, "device": "cpu"}
    params |= {"runs": {"run": {"corpus": "demo", "model": "tiny"}}, "corpora_in_use": ["demo"], "decodings": {}}
    params["searches"] = {"small": SEARCH | search_settings}
    write_params_yaml(folder, params)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A folder with the data of a small corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    shutil.copytree(ROOT / "text/demo", folder / "text/demo")
    with in_process.inside(folder):
        write_params(folder)
        for name, command in in_process.commands().items():
            if name.partition("@")[0] in ("download", "normalise", "learn_bpe", "binarise"):
                in_process.run(command)
    return folder


DATA = ("--data", "data/demo/binarised", "--vocabulary", "data/demo/vocabulary.model")
ARGUMENTS = ("small", *DATA, "--dev", "data/sets/demo-dev", "--out", "scores/searches/small.json")


class Folder:
    """A folder in which the search `small` is run, in this process."""

    def __init__(self, corpus: Path, root: Path, **search_settings: Any) -> None:
        shutil.copytree(corpus / "data", root / "data")
        self.root, self.out = root, root / "scores/searches/small.json"
        write_params(root, **search_settings)

    def run(self, status: int = 0, stage: str = "tune", arguments: Sequence[str] = ARGUMENTS) -> str:
        """Run the search, or another stage, which must exit with `status`. Returns what it prints to standard error."""
        with in_process.inside(self.root):
            ended, _, said = in_process.started([module_of(stage), *arguments])
        assert ended == status, said
        return said

    def states(self, trial: int) -> list[Path]:
        return list(self.root.glob(f"work/searches/small/*/trial-{trial}/state.safetensors"))


@pytest.fixture(scope="module")
def searched(corpus, tmp_path_factory) -> Folder:
    folder = Folder(corpus, tmp_path_factory.mktemp("searched"))
    folder.run()
    return folder


@pytest.mark.slow
def test_three_trials_and_the_best_is_the_training_of_its_line(searched, monkeypatch):
    result = json.loads(searched.out.read_text())
    assert [trial["trial"] for trial in result["trials"]] == [0, 1, 2]
    assert all(trial["state"] == "complete" and trial["steps"] == 20 for trial in result["trials"])
    assert all([step for step, _ in trial["dev_losses"]] == [5, 10, 15, 20] for trial in result["trials"])
    values = [trial["value"] for trial in result["trials"]]
    assert result["best"]["trial"] == values.index(min(values))
    assert not list(searched.root.glob("work/searches/small/*/trial-*")), "the states of finished trials are removed"
    monkeypatch.chdir(searched.root)
    params = load()
    params["runs"][BEST] = result["best"]["run"] | {"steps": 20, "checkpoint_every": 20}
    params["base"]["averaging"]["checkpoints"] = 1
    write_params_yaml(Path(), params)
    outputs = ("--out", "models/best", "--scores", "scores/best", "--times", "work/times/best.json")
    searched.run(stage="train", arguments=[BEST, *DATA, *outputs])
    assert json.loads(Path("scores/best/training.json").read_text())["dev_loss"] == min(values)


@pytest.mark.slow
def test_a_killed_search_goes_on_without_finished_trials_and_ends_with_the_same_bytes(
    corpus, searched, tmp_path, monkeypatch
):
    folder = Folder(corpus, tmp_path)
    process = subprocess.Popen([sys.executable, "-m", module_of("tune"), *ARGUMENTS], cwd=tmp_path, env=ENVIRONMENT)
    while process.poll() is None and not folder.states(1):
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL and folder.states(1) and not folder.out.exists()
    (state,) = folder.states(1)
    state.parent.with_name("trial-0").mkdir()  # as a kill just after the end of the trial leaves it
    saved = state.read_bytes()
    state.write_bytes(saved[:-10])
    assert state.name in folder.run(status=1) and state.read_bytes() == saved[:-10], "not a fault of the settings"
    state.write_bytes(saved)
    said = folder.run()
    assert "trial 0:" not in said and "trial 1: complete" in said and "trial 2: complete" in said
    assert not list(state.parent.parent.glob("trial-*"))
    assert folder.out.read_bytes() == searched.out.read_bytes()
    write_params(folder.root, trials=4)
    mirrored = Mock(return_value=nullcontext())
    monkeypatch.setattr("pipeline.extras.tracking.client.process", mirrored)
    said = folder.run()
    assert "trial 2:" not in said and "trial 3: complete" in said
    mirrored.assert_called_once_with("--after-input", "scores/searches/small.json")
    first, longer = (json.loads(path.read_text())["trials"] for path in (searched.out, folder.out))
    assert longer[:3] == first and len(longer) == 4
    write_params(folder.root, trials=3)
    assert "trial 3:" not in folder.run()
    assert folder.out.read_bytes() == searched.out.read_bytes(), "a trial too many does not count"


@pytest.mark.slow
def test_a_trial_of_a_refused_or_too_large_model_is_pruned_and_the_search_goes_on(corpus, tmp_path):
    space = {"d_model": {"low": 32, "high": 36, "scale": "linear"}, "d_ff": [64, 2**31 - 1]}  # 275 GB
    folder = Folder(corpus, tmp_path, steps=2, trials=4, seed=3, space=space)
    folder.run()
    trials = json.loads(folder.out.read_text())["trials"]
    odd = {trial["trial"]: trial["settings"]["d_model"] % 2 == 1 for trial in trials}
    assert set(odd.values()) == {False, True}, "another seed is needed, to have valid and refused trials"
    huge = {trial["trial"]: trial["settings"]["d_ff"] > 64 and not odd[trial["trial"]] for trial in trials}
    assert set(huge.values()) == {False, True}, "another seed is needed, to have small and large models"
    for trial in trials:
        number = trial["trial"]
        assert trial["state"] == ("pruned" if odd[number] or huge[number] else "complete")
        assert trial["why"] == ("settings refused" if odd[number] else "out of memory" if huge[number] else "")


@pytest.mark.slow
def test_a_stopped_search_saves_its_trial_and_exits_with_75(corpus, tmp_path, monkeypatch):
    folder = Folder(corpus, tmp_path, trials=1, steps=100_000)
    monkeypatch.setattr(train, "Interruption", lambda limit: Mock(return_value=True, reason="SIGTERM"))
    assert "stopped by SIGTERM" in folder.run(status=75) and folder.states(0)


@pytest.mark.slow
def test_the_dev_bleu_of_a_trial_is_that_of_its_weights_by_references_that_are_not_normalised(
    corpus, tmp_path, monkeypatch
):
    """As Thai, dev has BLEU of characters, of which even this model gets some right."""
    one = {"warmup": [20], "evaluate_every": [1000], "dropout": [0.0, 0.1]}  # no evaluation before the end
    folder = Folder(corpus, tmp_path, trials=1, steps=40, metric="dev_bleu", space=one)
    write_json(folder.root / "data/sets/demo-dev/set.json", {"corpus": "demo", "languages": ["en", "th"]})
    for form in ("raw", "normalised"):
        path = folder.root / f"data/sets/demo-dev/{form}.de"
        path.rename(path.with_suffix(".th"))
    lines = path.with_suffix(".th").read_text(encoding="utf-8").splitlines()
    write_lines(folder.root / "data/sets/demo-dev/raw.th", [line[: len(line) // 2] for line in lines])
    folder.run()
    (trial,) = json.loads(folder.out.read_text())["trials"]
    assert trial["state"] == "complete" and [step for step, _ in trial["dev_losses"]] == [40]
    params = load(folder.root / "params.yaml")
    line = {"corpus": "demo", "model": "tiny", **trial["settings"], "steps": trial["steps"], "checkpoint_every": 1}
    params["runs"] = {"run": {**line, "keep": 1}}
    params["base"]["averaging"]["checkpoints"] = 1
    write_params_yaml(folder.root, params)
    outputs = ("--out", "models/run", "--scores", "scores/run", "--times", "work/times/run.json")
    folder.run(stage="train", arguments=["run", *DATA, *outputs])
    monkeypatch.chdir(folder.root)
    decoding = read(DecodingConfig, {**params["base"]["decoding"], "extra_length": 5, "threads": 1}, "test")
    weights = step_files(Path("models/run"))[-1][1]
    translator = Translator.open(weights, Path("data/demo/vocabulary.model"), decoding, torch.device("cpu"))
    dev = EvaluationSet.open(Path("data/sets/demo-dev"))
    hypotheses = translator.text([best for (best,) in translator.n_best(dev.lines("normalised")[0], "dev", 1)])
    expected, other = (
        sacrebleu.corpus_bleu(hypotheses, [dev.lines(form)[1]], tokenize="char").score for form in ("raw", "normalised")
    )
    assert trial["value"] == pytest.approx(expected, abs=1e-4) and abs(expected - other) > 0.01


# Uses of the result


def test_the_report_shows_a_search():
    table = reporting.search_table(result())
    assert list(table.frame["trial"]) == [1, 3, 0, 2], "the best first, without a value last"
    assert list(table.frame)[:4] == ["trial", "lr_scale", "dropout", "norm"], "N is 2 in all trials"
    assert "4 trials of at most 20 steps" in table.notes[0] and "; 1 were pruned" in table.notes[0]
    by_bleu = reporting.search_table(result(search={**SEARCH, "metric": "dev_bleu"})).frame
    assert list(by_bleu["trial"]) == [0, 3, 1, 2] and list(by_bleu["dev BLEU"])[:3] == [3.0, 2.75, 2.5]
    assert list(by_bleu["dev loss"]) == [3.0, 2.75, 2.5, 5.0], "the last one of each"
    assert "small-best: {corpus: demo, model: tiny, lr_scale: 0.4, dropout: 0.2, norm: pre, N: 2}" in table.notes[1]


def test_the_plan_has_a_search_and_the_time_that_it_takes_at_most(params):
    steps = params["searches"]["small"]["steps"]
    as_a_trial = {"corpus": "demo", "model": "tiny", "steps": steps, "checkpoint_every": steps, "keep": 1}
    params["runs"] = {"as-a-trial": as_a_trial}
    stages = plan.planned(params, ["train@as-a-trial", "tune@small"])
    one, three = plan.jobs(params, stages, rate=1e10).values()
    assert three["time here"] == pytest.approx(3 * one["time here"])


def test_params_yaml_accepts_the_line_of_the_best_trial():
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    best, line = result()["best"]["run"], reporting.search_table(result()).notes[1].partition(": ")[2]
    edited = parse(text.replace("\nruns:\n", f"\nruns:\n  {line}\n", 1))
    assert edited["runs"] == parse(text)["runs"] | {"small-best": best}
    check(edited)
