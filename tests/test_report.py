"""The report: which numbers stand where, what is said about them, and the pages as a browser gets them.

tests/data/report/ holds the tables of an invented set of results (`invented`), which were checked by hand when they were
made. REPORT_GOLDEN=write writes them anew.
"""

import argparse
import copy
import dataclasses
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU
from scipy.stats import spearmanr

from pipeline import collect, report
from pipeline.orchestrating import results as terminal
from pipeline.reporting import attention, changes, claims, page, run_tables
from pipeline.reporting import studies as studies_of
from pipeline.reporting.figures import style
from pipeline.reporting.published import BASE, LOWER_CASED, TABLE3
from pipeline.reporting.results import load_results
from pipeline.reporting.tables import interval, latex, markdown, table
from pipeline.running.times import duration
from pipeline.scoring.bleu import PUBLISHED, measures, resampled
from pipeline.scoring.intervals import Score, holm
from pipeline.settings.scoring import ScoringConfig
from tests.support import browser
from tests.support.invented import COMMIT, REFERENCES, SENTENCE, Invented, metrics, worsened
from tests.support.packed import write_evaluation_set
from tests.support.projects import ROOT
from tests.support.refusals import refused
from transformer.files import read_json, write_json, write_lines

GOLDEN = ROOT / "tests/data/report"
TEST = ("test", "average")
PAGES = (report.PAGE, report.RECORDED, report.TRANSLATED)


@pytest.fixture
def project(params, tmp_path):
    return Invented(params, tmp_path)


CHANGED = {  # a row of Table 3 or another change: its settings, and which sentences of dev it translates worse
    "base": ({}, 5),
    "heads": ({"h": 1, "d_k": 128, "d_v": 128}, 2),
    "wide": ({"d_ff": 2048}, 2),
    "shallow": ({"N": 1}, 2),
    "deep": ({"N": 4}, 30),
    "learned": ({"positions": "learned"}, 6),
    "unscaled": ({"attention": "dot_product"}, 2),
    "pre": ({"norm": "pre"}, 6),
    "pre-fast": ({"norm": "pre", "schedule": "no_warmup"}, 2),
}
ROWS = {"heads": "h1", "wide": "dff4096", "shallow": "N2", "deep": "N8", "learned": "learned"}


def changed(names: Iterable[str] = CHANGED) -> dict[str, dict]:
    """The runs of these changes: `NAME` and, but for `shallow`, `NAME-2` and `NAME-3`."""
    runs = {}
    for name in names:
        entry = {"corpus": "demo", "model": "tiny", **CHANGED[name][0]}
        seeds = () if name == "shallow" else (2, 3)
        runs |= {name: entry} | {f"{name}-{seed}": {**entry, "seed": seed} for seed in seeds}
    return runs


def write_changed(project: Invented, names: Iterable[str] = CHANGED, failed: Sequence[str] = ()) -> None:
    project.study("claims", changed(names), rows=ROWS, against={"pre-fast": "pre"})
    for run, entry in changed(names).items():
        name = re.sub(r"-\d$", "", run)
        project.write({run: entry}, 5.0 if name in failed else 40.0, CHANGED[name][1])


def write_decoding(project: Invented, name: str, bleu: float, lines: Sequence[str], log_prob: float, **settings) -> None:
    folder = project.scores / "decodings" / name
    made = {"model": "base/average", "set": "demo-test", "calls": 180, "settings": {"averaging": {}, "decoding": settings}}
    write_json(folder / "decoding.json", made)
    write_json(folder / "score.json", {"set": metrics(bleu)})
    write_lines(folder / "translation.txt", lines)
    exact = settings["decoder"] == "exact"
    near = log_prob + 2e-5 * exact  # equal but for rounding
    found = [near if number % 3 or not exact else log_prob + 1 for number in range(len(lines))]
    sentences = [{"log_prob": each, "finished": not exact or number < 40} for number, each in enumerate(found)]
    write_json(folder / "sentences.json", sentences)


@pytest.fixture(scope="module")
def invented(params, tmp_path_factory):
    """Runs on the demonstration and on WMT14, selected and recorded, decodings, and what the report makes of them."""
    project = Invented(params, tmp_path_factory.mktemp("invented"))
    write_changed(project)
    de, fr = {"corpus": "wmt14-en-de", "model": "base"}, {"corpus": "wmt14-en-fr", "model": "big"}
    wmt = {"big": {**de, "model": "big"}, "fr": {**fr, "dropout": 0.1}, "fr-as-de": fr}
    wmt |= {"hub": {**de, "corpus": "wmt14-en-de-hub"}}
    wmt |= {"anything": {**de, "h": 16, "d_k": 32, "d_v": 32, "seed": 7}, "h2": {**de, "h": 2}, "warm": {**de, "warmup": 1}}
    wmt["lower"] = {"corpus": LOWER_CASED, "model": "multi30k-published"}
    wmt["lower-2"] = wmt["lower"] | {"seed": 2}
    for bleu, (run, entry) in enumerate(wmt.items(), 20):
        project.write({run: entry}, bleu)
    project.write_attention("heads", layers=2, heads=1)
    project.params["runs"] = {run: changed()[run] for run in ("base", "heads", "base-2")} | {"untrained": de}
    project.params["decodings"] = {name: {} for name in ("beam", "exact", "lower-beam")}
    paper = {key: value for key, value in params["base"]["decoding"].items() if key in collect.PAPERS}
    paper |= {"decoder": "beam", "regulariser": 0.0, "no_repeat_ngram": 0, "ends": "beam", "finished": 0}
    write_decoding(project, "beam", 30.0, worsened(2), -2.0, **paper)
    write_decoding(project, "lower-beam", 29.0, worsened(2), -2.0, **paper)
    made = read_json(project.scores / "decodings/lower-beam/decoding.json")
    write_json(project.scores / "decodings/lower-beam/decoding.json", made | {"set": f"{LOWER_CASED}-test"})
    write_decoding(project, "exact", 31.0, worsened(5), -2.0, decoder="exact", max_steps=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "load", lambda: {**project.params, "values": {}, "searches": {}})
        collect.main(argparse.Namespace(scores=project.scores, sets=project.sets, out=project.results))
    return project, project.files()


def test_every_number_stands_in_its_place_and_no_file_in_git_names_the_machine(invented):
    """The bytes do not depend on the version of Python, although its sums do."""
    files = {name: text for name, text in invented[1].items() if name not in PAGES}
    tables = {name: text for name, text in files.items() if name.endswith(".csv")}
    if os.environ.get("REPORT_GOLDEN") == "write":
        for name, text in tables.items():
            (GOLDEN / name).write_text(text)
    assert tables == {path.name: path.read_text() for path in GOLDEN.glob("*.csv")}
    assert not [name for name, text in files.items() if "P100-SXM2" in text or COMMIT[:10] in text or "1 h 23 min" in text]


def test_results_of_other_settings_are_not_those_of_a_run(project):
    entry = {"corpus": "demo", "model": "tiny"}
    project.write({"run": entry})
    for change in ({"dropout": 0.3}, {"corpus": "multi30k"}, {"steps": 900}, {"model": "small"}):
        project.params["runs"] = {"run": {**entry, **change}}
        results = project.load()
        assert results.selected == ["run"] and not results.scored and not results.curves, change
    for runs in ({"run": entry}, {}):
        project.params["runs"] = runs
        assert project.load().scored == ["run"] and project.load().selected == [*runs], "without an entry it is recorded"


def test_a_result_holds_a_thin_curve_and_neither_text_nor_time(project):
    project.write({"run": {"corpus": "multi30k-sampled", "model": "claims"}})
    text = (project.results / "run.json").read_text()
    curve = json.loads(text)["curve"]
    assert len(curve) <= 200 and len([point for point in curve if "dev_loss" in point]) == 7
    assert (curve[0]["step"], curve[-1]["step"]) == (1, 700) and curve == sorted(curve, key=lambda point: point["step"])
    assert not any(word in text for word in ("Garten", "Stern", "P100", COMMIT, "5025"))
    assert json.loads(text)["bpe_dropout"] == 0.1 and len(text) < 50_000
    project.params["corpora"]["multi30k-sampled"]["vocabulary"]["bpe_dropout"] = 0.3
    assert project.load().runs.at["run", "bpe_dropout"] == 0.1, "that of its training"
    report.keep_times(["run"], project.scores, project.folder / "none", project.results)  # and recorded times stay
    times = read_json(project.results / "times/run.json")
    assert (times["training"]["commit"], project.load().runs.at["run", "seconds"]) == (COMMIT, 5025.2)
    write_json(project.results / "times/run.json", times | {"training_sha256": "0"})
    assert project.load().runs.at["run", "seconds"] is None, "the times of another training"


DAMAGES = {
    "not JSON": lambda text: text[:-20],
    "another run's": lambda text: text.replace('"run": "run"', '"run": "other"'),
    "settings edited": lambda text: text.replace('"d_model": 128', '"d_model": 256'),
    "no settings": lambda text: text.replace('"settings"', '"set"', 1),
    "no scores": lambda text: text.replace('"metrics"', '"metric"', 1),
}


def test_a_damaged_result_is_refused_by_its_name(project):
    project.write({"run": {"corpus": "demo", "model": "tiny"}})
    path = project.results / "run.json"
    text = path.read_text()
    for kind, damage in DAMAGES.items():
        path.write_text(damage(text))
        with refused(str(path)):
            assert not project.load(), kind
    path.write_text(text)
    for content in ({}, [], {"name": "another"}):
        write_json(path := project.results / "decodings/mine.json", content)
        with refused(str(path)):
            project.load()
        path.unlink()


def test_the_results_in_git_load_and_are_in_a_study(params):
    results = load_results({**params, "runs": {}}, ROOT / "results")
    assert all(run["FLOPs, estimated"] or not run["seconds"] for _, run in results.runs.iterrows())
    assert results.runs["FLOPs, counted"].min() > 1e12 and "others" not in [
        study.name for study in studies_of.studies(params, results)
    ]


def test_costs_follow_from_the_times_and_the_counts_and_a_first_model_is_an_origin_of_the_numbers(project):
    project.params["peak_tflops"] = {"P100": 2e15 / (5025.2 * 8 * 1e12) / 0.25}
    project.write({name: {"corpus": "demo", "model": "tiny", "steps": 700} for name in ("adapted", "alone")})
    held = read_json(path := project.results / "adapted.json")
    write_json(path, held | {"training": held["training"] | {"initial": "general/average"}})
    adapted, alone = run_tables.origins(project.load()).rows()
    assert alone["FLOPs, estimated"] == pytest.approx(5025.2 * 8 * 9.5e12) and alone["training"] == "1 h 23 min"
    assert [alone[key] for key in ("MFU (%)", "HFU (%)")] == pytest.approx([25, 37.5])
    assert (adapted["model"], alone["model"]) == ("tiny, steps 700; begins with general/average", "tiny, steps 700")


def test_versions_are_shown_where_runs_differ_in_them(project):
    project.write({name: {"corpus": "demo", "model": "tiny"} for name in ("a", "b")})
    report.keep_times(["a", "b"], project.scores, project.folder / "none", project.results)
    assert not {"torch", "numpy"} & run_tables.origins(project.load()).rows()[0].keys()
    for name, version in {"a": "2.13.0", "b": "2.6.0"}.items():
        times = read_json(path := project.results / f"times/{name}.json")
        write_json(path, times | {"training": times["training"] | {"torch": version, "numpy": "2.3.1"}})
    rows = run_tables.origins(project.load()).rows()
    assert [row["torch"] for row in rows] == ["2.13.0", "2.6.0"] and "numpy" not in rows[0]


# Seeds and studies


def test_seeds_are_grouped_by_settings_data_and_precision(project):
    entry = {"corpus": "demo", "model": "tiny"}
    runs = {"a": entry, "a-2": {**entry, "seed": 2}, "deep": {**entry, "N": 3}}
    runs |= {
        "b": {**entry, "precision": "bfloat16", "arithmetic": "native"},
        "b-2": {**entry, "precision": "bfloat16", "arithmetic": "native", "seed": 2},
    }
    runs |= {"c-3": {**entry, "precision": "float32", "seed": 3}, "native": {**entry, "arithmetic": "native"}}
    for bleu, (run, settings) in enumerate(runs.items(), 40):
        project.write({run: settings}, bleu)
    expected = [["a", "a-2", "c-3"], ["b", "b-2"], ["deep"], ["native"]]
    assert project.load().groups == expected, "portable is float32, and native may be bfloat16"
    assert project.load().alike(["b-2", "c-3", "native"]) == [["b-2", "c-3", "native"]], "no seed in two precisions"
    mean = project.load().over_seeds(["a", "a-2"], "bleu-13a", *TEST)
    assert mean.text == "mean of 2 seeds (40.00 to 41.00)" and mean.score == 40.5
    assert project.load().over_seeds(["a"], "bleu-13a", *TEST) is None
    assert run_tables.means(project.load()).rows()[0]["sacreBLEU 13a"] == 42, "of a, a-2 and c-3"
    path = project.results / "c-3.json"
    content = read_json(path)
    write_json(path, content | {"score": content["score"] | {"test": {}}})
    assert project.load().over_seeds(["a", "a-2", "c-3"], "bleu-13a", *TEST) is None, "c-3 has no score on test"
    path = project.results / "a-2.json"
    content = read_json(path)
    write_json(path, content | {"training": content["training"] | {"data_sum": "d1" * 32}})
    assert project.load().alike(["a", "a-2", "c-3"]) == [["a", "c-3"], ["a-2"]], "a-2 has other data"


def test_a_study_shows_its_runs_best_first_with_the_settings_it_varies(project):
    entry = {"corpus": "demo", "model": "tiny"}
    runs = {"base": entry, "pre": {**entry, "norm": "pre"}, "small": {**entry, "N": 1}}
    project.study("all", runs)
    project.study("part", {"base": entry})
    for bleu, (run, settings) in enumerate(runs.items(), 40):
        project.write({run: settings}, bleu)
    project.write({"alone": entry | {"N": 3}})
    study, others = studies_of.studies(project.params, project.load())
    assert (study.name, others.name, others.runs) == ("all", "others", ["alone"]), "a part of a study is not shown again"
    frame = studies_of.study_table(study).frame
    assert list(frame["run"]) == ["small", "pre", "base"] and list(frame["N"]) == ["1", "", "2"]
    assert list(frame["norm"]) == ["", "pre", "post"] and not {"d_model", "corpus", "model"} & set(frame)
    assert list(frame["test sacreBLEU"]) == [42, 41, 40] and list(frame["dev sacreBLEU, last"]) == [40, 39, 38]
    first = studies_of.headline(project.params, study)
    assert (first.figure, first.trained) == ("42.0", 3) and "Highest of 3:" in first.note
    project.params["studies"]["all"]["perplexity"] = True
    last = studies_of.headline(project.params, study)
    assert last.figure == "2.0 to 2.0" and last.says.startswith("dev perplexity of the last checkpoint")
    project.study("missing", {"x": entry, "y": entry})
    (missing,) = studies_of.not_done(project.params, project.load())
    assert (missing.study, missing.figure) == ("missing", "0 of 2")
    texts = {name: {**entry, "N": 5, "corpus": name} for name in ("demo", "multi30k", "demo-reverse")}
    project.study("texts", texts)
    for bleu, (run, settings) in enumerate(texts.items(), 50):
        project.write({run: settings}, bleu)
    (of_texts,) = [each for each in studies_of.studies(project.params, project.load()) if each.name == "texts"]
    assert studies_of.headline(project.params, of_texts).figure == "51.0", "without the other direction"


# Claims


def test_a_claim_is_decided_by_three_seeds_and_the_corrected_p(invented):
    project, _ = invented
    compared = project.compared()
    rows = {row["run"]: row for row in claims.claims_table(compared).rows()}
    found = {run: row["found"] for run, row in rows.items()}
    expected = {"heads": "holds", "wide": "contradicted", "shallow": "one seed", "deep": "differs"}
    expected |= {"learned": "not decided", "unscaled": "holds", "pre-fast": "differs"}
    assert found == expected, "nothing is claimed about pre-norm alone"
    assert "pre-fast is compared with pre." in claims.claims_table(compared).notes[-1]
    assert rows["pre-fast"]["our change"] == "schedule warmup → no_warmup, 3 seeds"
    assert rows["shallow"]["p, Holm"] is None and rows["shallow"]["BLEU, ours low"] is None
    assert rows["heads"]["p, Holm"] < 0.05 < rows["learned"]["p, Holm"]
    assert rows["heads"]["BLEU, paper"] == pytest.approx(-0.9)
    assert compared.seeds.spread.freedom == 2 * (len(CHANGED) - 1), "shallow has one seed"
    card = claims.headline(compared, studies_of.headline(project.params, compared.study))
    assert card.figure == "1 of 4" and card.note.startswith("N 2 → 1: one seed. N 2 → 4, 3 seeds: differs.")
    first = claims.against_first(compared).rows()
    corrected = holm([each.bleu.p for each in compared.changes])
    assert [row["p, Holm"] for row in first] == pytest.approx(corrected) and len(first) == len(CHANGED) - 1
    same = {change.runs[0]: change.same_ratio for change in compared.changes if change.row}
    assert same == {"heads": False, "wide": False, "shallow": False, "deep": False, "learned": True}


def test_trainings_are_compared_by_sentences_with_equal_references_only(project):
    """The bootstrap over another dev set, even one of as many sentences, is not paired with that over the base's."""
    write_changed(project, ("base", "heads", "wide"))
    for run in ("heads", "heads-2", "heads-3"):
        known = read_json(path := project.results / f"{run}.json")
        for columns in known["statistics"].values():
            columns[1] = " ".join([*columns[1].split()[:-1], "12"])
        write_json(path, known)
    heads, wide = claims.claims_table(project.compared()).rows()
    assert (heads["found"], heads["p, Holm"]) == ("no interval", None) and wide["p, Holm"] < 0.05


def test_a_row_is_compared_by_the_runs_of_another_study_once_they_have_more_seeds(project):
    """As N 3 to 6 in multi30k-claims: `deep` failed; `warm-deep` is compared with `warm`, under another warm-up."""
    tiny = {"corpus": "demo", "model": "tiny"}
    runs = {"base": tiny, "base-2": {**tiny, "seed": 2}, "base-3": {**tiny, "seed": 3}, "deep": {**tiny, "N": 4}}
    others = {name: {**tiny, "warmup": 900, **more} for name, more in (("warm", {}), ("warm-deep", {"N": 4}))}
    others |= {f"{name}-{seed}": {**entry, "seed": seed} for name, entry in others.items() for seed in (2, 3)}
    against = {"warm-deep": "warm"}
    project.study("claims", runs, rows={"base": "base", "deep": "N8", "warm-deep": "N8"}, against=against)
    project.study("depth", others)

    def row():
        table = claims.claims_table(project.compared())
        (found,) = table.rows()
        return found["run"], found["found"], found["our change"], table.notes[-1]

    for name, entry in runs.items():
        project.write({name: entry}, 5.0 if name == "deep" else 40.0, every=5)
    project.write({"warm-deep": others["warm-deep"]}, every=30)
    assert row()[:3] == ("deep", "the training failed", "N 2 → 4"), "warm has no result"
    project.write({"warm": others["warm"]}, every=5)
    assert row()[:3] == ("warm-deep", "one seed", "N 2 → 4"), "it has not failed"
    for name, entry in others.items():
        project.write({name: entry}, every=30 if "deep" in name else 5)
    run, found, change, note = row()
    assert (run, found, change) == ("warm-deep", "differs", "N 2 → 4, 3 seeds")
    assert "warm-deep is compared with warm." in note and "deep is left out: warm-deep stands" in note
    assert "base is left out" not in note, "it is compared with"
    assert project.compared().changes[0].bases == ["warm", "warm-2", "warm-3"]


def test_a_failed_training_decides_only_claims_about_training(project):
    names = ("base", "heads", "wide", "unscaled")
    write_changed(project, names, failed=("wide", "unscaled"))
    project.write({"wide-2": changed()["wide-2"]}, 40.0, CHANGED["wide"][1])  # one that fails is enough
    compared = project.compared()
    assert compared.seeds.spread.freedom == 2 * 2, "the failed trainings tell nothing about the others"
    rows = {row["run"]: row for row in claims.claims_table(compared).rows()}
    assert (rows["wide"]["found"], rows["wide"]["p, Holm"]) == ("the training failed", None)
    assert rows["unscaled"]["p, Holm"] is not None, "scaling is about whether a training succeeds"
    seeds = {f"wide-{seed}": {**changed()["wide"], "seed": seed} for seed in range(2, 7)}
    project.study("claims", changed(names) | seeds, rows=ROWS)
    project.write({"wide": changed()["wide"]}, 20.0, CHANGED["wide"][1])
    project.write(seeds, 40.0, CHANGED["wide"][1])
    rows = {row["run"]: row for row in claims.claims_table(project.compared()).rows()}
    assert rows["wide"]["found"] == "the training failed", "one of six, so the mean is above the limit"


def test_the_rank_correlation_with_the_paper_is_spearmans_and_has_the_interval_of_the_standard_errors():
    random, of = np.random.default_rng(5), {"perplexity": 1, "BLEU": 0}
    rows = [row for row in TABLE3 if row.key in ("h1", "h32", "dk16", "dk32", "N2", "N4", "N8", "d256", "d1024", "dff1024")]
    paper = np.round([row.effect for row in rows], 6)
    ours, errors = paper + random.normal(0, 1, paper.shape), random.uniform(0.3, 0.8, paper.shape)
    scores = [[Score(*each, 0.5) for each in zip(*row)] for row in zip(ours, ours - 1.96 * errors, ours + 1.96 * errors)]
    of_rows = [
        changes.Change(["run"], ["base"], row, row.settings, BASE, *both, failed=False) for row, both in zip(rows, scores)
    ]
    (said,) = claims.agreement(changes.Comparison(None, "", of_rows, None))
    for name, at in of.items():
        drawn = random.normal(ours[:, at], errors[:, at], (1000, len(rows)))
        rank, *others = spearmanr(np.vstack([paper[:, at], ours[:, at], drawn]), axis=1).statistic[0, 1:]
        found = re.search(rf"(\S+) by {name} \((\S+) to (\S+)\)", said).groups()
        assert list(map(float, found)) == pytest.approx([rank, *np.quantile(others, [0.025, 0.975])], abs=0.04), name
    assert claims.agreement(changes.Comparison(None, "", of_rows[:7], None)) == [], "too few rows"


def test_a_score_has_the_name_of_the_tokeniser_of_its_language(project):
    project.write({name: {"corpus": "demo", "model": "tiny", "seed": seed} for seed, name in enumerate("ab")})
    chinese = read_json(project.results / "a.json")
    for cell in (cell["metrics"] for part in chinese["score"].values() for cell in part.values()):
        cell["bleu-zh"] = cell.pop("bleu-13a") | {"signature": "case:mixed|tok:zh|smooth:exp"}
        cell |= {name: cell.pop(name) for name in tuple(cell)[:-1]}  # the first measure is the headline
    write_json(project.results / "a.json", chinese)
    labels = {(row["run"], row["measure"]) for row in run_tables.all_scores(project.load()).rows()}
    assert {("a", "sacreBLEU zh"), ("b", "sacreBLEU 13a")} <= labels and ("a", "sacreBLEU 13a") not in labels


def test_what_label_smoothing_does_is_the_opposite_of_turning_it_off(project, monkeypatch):
    runs = {name: {"corpus": "demo", "model": "tiny", "seed": seed} for seed, name in enumerate(("a", "b", "c"), 1)}
    runs |= {f"{name}-off": {**entry, "label_smoothing": 0.0} for name, entry in runs.items()}
    project.study("claims", runs, rows={"a-off": "smoothing0"})
    for place, (run, entry) in enumerate(runs.items()):
        project.write({run: entry}, every=2 if "off" in run else 30, loss=(4.0 if "off" in run else 5.0) + place % 3 / 50)
    compared = project.compared()
    table, _ = claims.smoothing(compared)
    found = {row["claim"]: row["found"] for row in table.rows()}
    assert found == {"raises the loss (nats)": "holds", "raises the accuracy": "contradicted", "raises BLEU": "holds"}
    loss = table.rows()[0]
    assert loss["difference"] == pytest.approx(np.log([5.0, 5.02, 5.04]).mean() - np.log([4.0, 4.02, 4.04]).mean())
    assert loss["difference low"] < loss["difference"] < loss["difference high"]
    (row,) = claims.claims_table(compared).rows()
    change = np.log([4.0, 4.02, 4.04]).mean() - np.log([5.0, 5.02, 5.04]).mean()
    assert row["PPL %, ours"] == pytest.approx(100 * (np.exp(change) - 1)) and row["PPL: found"] == "holds"
    with monkeypatch.context() as patch:
        patch.setattr(claims, "holm", lambda values: [0.25] * len(values))
        assert {row["p, Holm"] for row in claims.smoothing(compared)[0].rows()} == {0.25}
    project.study("claims", {"a": runs["a"], "more": {**runs["a"], "label_smoothing": 0.2}}, rows={"more": "smoothing2"})
    project.write({"more": {**runs["a"], "label_smoothing": 0.2}})
    compared = project.compared()
    assert claims.smoothing(compared) is claims.claims_table(compared) is None, "no claim is about more smoothing"


CLAIMED = {  # by the setting and its old value: the sign for each new value. In the paper, 16 heads are as good as 8
    ("h", 8): {1: -1, 32: -1, 16: None, 4: None},
    ("h", 1): {8: 1},
    ("d_k", 64): {16: -1, 128: None},
    ("N", 6): {8: 0, 2: -1},
    ("dropout", 0.1): {0.0: -1, 0.3: None},
    ("dropout", 0.0): {0.1: 1},
    ("label_smoothing", 0.0): {0.1: 1},
    ("attention", "scaled_dot_product"): {"dot_product": -1, "additive": None},
    ("positions", "sinusoidal"): {"learned": 0},
    ("schedule", "warmup"): {"no_warmup": -1},
}


@pytest.mark.parametrize(("setting", "old"), CLAIMED)
def test_a_claim_predicts_only_the_changes_that_it_is_about(setting, old):
    for new, sign in CLAIMED[setting, old].items():
        claim = claims.claim_about({**BASE, setting: new}, {**BASE, setting: old})
        assert claim.setting == setting and claim.bleu(new, old) == sign, new
    assert claims.claim_about({**BASE, "N": 2, "d_k": 16}, BASE) is None, "two settings change"
    assert claims.claim_about({**BASE, "h": 1, "d_k": 512, "d_v": 512}, BASE).setting == "h"


def test_the_kept_statistics_give_the_bleu_of_resampled_sentences(project):
    project.write({"run": {"corpus": "demo", "model": "tiny"}}, every=2)
    settings, metric = ScoringConfig(bootstrap=40, seed=7), BLEU(tokenize="none", smooth_method="none", force=True)
    found = resampled(measures("")[PUBLISHED], project.load().statistics["run"][PUBLISHED, "dev", "last"], settings)
    ours, theirs = ([line[:-1] + " ." for line in lines] for lines in (worsened(2), REFERENCES))
    drawn = [range(60), *np.random.default_rng(7).choice(60, size=(40, 60), replace=True)]
    expected = [metric.corpus_score([ours[n] for n in each], [[theirs[n] for n in each]]).score for each in drawn]
    assert found == pytest.approx(expected)


def test_the_runs_of_params_yaml_are_compared_with_the_first(project):
    entry = {"corpus": "demo", "model": "tiny"}
    runs = {"base": entry, "better": {**entry, "N": 3}, "same": {**entry, "N": 4}, "none": {**entry, "N": 5}}
    runs |= {f"{name}-{seed}": {**runs[name], "seed": seed} for name in ("base", "better") for seed in (2, 3)}
    project.params["runs"] = runs
    for run, settings in list(runs.items())[1:]:
        project.write({run: settings}, 40 if "better" in run else 30, every=30 if "better" in run else 2)
    project.write({"base": entry}, 30, every=2)
    (project.results / "none.json").unlink()
    results = project.load()
    (study,) = page.own_studies(project.params, results.of(results.selected))
    table = claims.against_first(changes.tested(changes.of_study(study), ScoringConfig(bootstrap=50, seed=1)))
    better, same = table.rows()
    labels = [(row["run"], row["against"], row["seeds"]) for row in (better, same)]
    assert labels == [("better", "base", "3 seeds"), ("same", "base", "one seed")]
    assert better["p, Holm"] < 0.05 and better["difference, BLEU low"] > 0 and same["p, Holm"] is None
    assert same["difference, BLEU"] == 0


# Decodings


def test_the_facts_of_decodings_are_those_of_their_translations(invented):
    """Exact search finds a more probable translation of every third of the 40 sentences that it finishes."""
    project, _ = invented
    found = collect.facts_of(project.params, project.scores, project.sets)
    beam, exact = found["beam"], found["exact"]
    assert beam["p"] is None and exact["p"] < 0.05 and exact["search_errors"] is None
    assert beam["search_errors"] == pytest.approx(14 / 40) and (beam["unfinished"], exact["unfinished"]) == (0, 20)
    assert exact["log_prob"] == pytest.approx(-5 / 3, abs=1e-4) and exact["calls"] == 3.0 and exact["empty"] == 0
    bleu = sacrebleu.corpus_bleu(worsened(5), [REFERENCES])
    assert exact["length_ratio"] == pytest.approx(bleu.sys_len / bleu.ref_len, abs=1e-4)
    write_lines(project.scores / "decodings/exact/translation.txt", [*worsened(5)[:-1], ""])
    assert collect.facts_of(project.params, project.scores, project.sets)["exact"]["empty"] == 1
    sources = ["", *["source"] * (len(REFERENCES) - 1)]
    write_evaluation_set(project.sets / "demo-test", "demo", raw=(sources, REFERENCES))
    found = collect.facts_of(project.params, project.scores, project.sets)
    assert found["beam"]["search_errors"] == pytest.approx(13 / 39, abs=1e-4), "an empty line is not searched"


def test_p_is_corrected_over_the_decodings_of_one_set_by_one_model(invented):
    project, known = invented[0], invented[0].load().decodings
    p = {"beam": None, "exact": 0.01, "drawn": 0.04, "lower-beam": 0.04}
    facts = {name: {**known.get(name, known["exact"]), "facts": {"p": value}} for name, value in p.items()}
    rows = run_tables.decodings_table(project.params, facts).rows()
    assert [row["p, Holm"] for row in rows] == [None, 0.02, 0.04, 0.04]
    pages = [table for chosen in (True, False) for table in run_tables.decodings_tables(project.params, facts, chosen)]
    shown = {row["decoding"]: row.get("p, Holm") for table in pages for row in table.rows()}
    assert shown == {row["decoding"]: row["p, Holm"] for row in rows}, "`drawn` is not in params.yaml, on another page"


def test_decodings_are_shown_best_first_also_those_of_lower_cased_text(invented):
    params, known = invented[0].params, invented[0].load().decodings
    known |= {"better": copy.deepcopy(known["lower-beam"])}
    for cell in known["better"]["score"]["set"]["metrics"].values():
        cell["score"] += 1
    shown = run_tables.decodings_tables({**params, "decodings": known}, known, True)
    assert [list(each.frame["decoding"]) for each in shown] == [["exact", "beam"], ["better", "lower-beam"]]


# Pages and pictures


class Page(HTMLParser):
    """The parts of a page that the tests below check."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.addresses, self.tags, self.nameless, self.text = [], [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        of_tag = dict(attributes)
        self.tags.append(tag)
        self.ids += [of_tag["id"]] if "id" in of_tag else []
        self.addresses += [(tag, of_tag[key]) for key in ("src", "href", "srcset", "poster") if key in of_tag]
        self.nameless += [of_tag] if tag == "img" and not of_tag.get("alt") else []
        assert not [key for key in of_tag if key.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", [report.PAGE, report.RECORDED])
def test_a_page_stands_alone_and_its_links_lead_somewhere(invented, name):
    page, text = Page(invented[1][name]), invented[1][name]
    assert len(page.ids) == len(set(page.ids)) and not page.nameless and "script" not in page.tags
    images = [address for tag, address in page.addresses if tag in ("img", "link")]
    links = {address for tag, address in page.addresses if tag == "a"}
    assert len(images) > 4 and all(address.startswith("data:") for address in images)
    assert links - {*PAGES} <= {f"#{each}" for each in page.ids} and len(links) > 5
    assert "url(" not in text and "@import" not in text and "None" not in page.text and "nan" not in page.text
    for picture, svg in browser.pictures(text).items():
        ElementTree.fromstring(svg)
        assert "prefers-color-scheme:dark" in svg and "dc:date" not in svg, picture


def test_each_page_shows_what_belongs_to_it(invented):
    own, recorded = (Page(invented[1][name]) for name in (report.PAGE, report.RECORDED))
    assert "run-heads" in own.ids and "run-unscaled" not in own.ids
    assert "4 runs of params.yaml, 3 of them scored" in own.text
    assert {"run-heads", "run-unscaled", "of-claims", "of-others", "claims"} <= set(recorded.ids)
    for fact in (*SENTENCE, COMMIT, "d0" * 32, "tok:bleu-13a|v:9", "P100-SXM2", "1 h 23 min"):
        assert fact in own.text, fact
    assert "h 4 → 1, 3 seeds: -0.9 in the paper" in invented[1]["README.md"]
    shown = set(browser.pictures(invented[1][report.PAGE]))
    assert {"loss-base", "attention-heads-1-cross", "reliability"} <= shown
    assert {"changes", "study-claims"} <= set(browser.pictures(invented[1][report.RECORDED]))


def test_the_studies_of_two_scales_have_a_section_tables_and_a_picture(project):
    rows = {"scale-s-h1": "h1", "scale-s-deep": "N8", "scale-s-wide": "dff4096"}
    runs = {"scale-s": {}, "scale-s-h1": {"h": 1, "d_k": 128, "d_v": 128}, "scale-s-deep": {"N": 4}, "scale-s-wide": {}}
    runs = {run: {"corpus": "demo", "model": "tiny", **of} for run, of in runs.items()}
    project.study("scale-s", runs, rows=rows)
    for loss, run in enumerate(("scale-s", "scale-s-h1", "scale-s-deep"), 2):
        project.write({run: runs[run]}, loss=loss)
    files = project.files()
    effects = pd.read_csv(io.StringIO(files["scales.csv"]))
    assert effects["the paper's change"].tolist() == ["A: h 8 → 1", "C: N 6 → 8", "C: d_ff 2048 → 4096"]
    np.testing.assert_allclose(effects["ln PPL, scale-s"], [np.log(3 / 2), np.log(4 / 2), np.nan])
    assert {"scales-distance.csv", "figures/scales.svg"} <= {*files} and "figures/scales.svg" in files["README.md"]
    assert [name for name in PAGES if 'id="at-scales"' in files[name]] == [report.RECORDED]


def test_a_page_shows_the_kept_test_translations_beside_source_and_reference(invented, project):
    """Of the three selected runs, and of the recorded ones with their training data whose test sets are here."""
    shown = Page(invented[1][report.TRANSLATED])
    assert {"of-demo", "of-wmt14-en-fr"} <= set(shown.ids) and "script" not in shown.tags
    entry = {"corpus": "demo", "model": "tiny"}
    project.params["runs"] = {"run": entry, "run-2": entry | {"seed": 2}}
    project.write(project.params["runs"])
    kept = page.kept_translations(project.load(), project.results, project.sets)["demo"]
    assert len(kept) == len(REFERENCES) and [line[:2] for line in kept[5]] == [
        ("source", "en"), ("reference", "de"), ("run", "de"), ("run-2", "de")
    ]  # fmt: skip
    assert [line[2] for line in kept[5]] == ["source 5", REFERENCES[5], worsened(5)[5], worsened(5, 2)[5]]
    write_evaluation_set(project.sets / "demo-test", "demo", raw=([*SENTENCE], REFERENCES[:2]))
    assert not page.kept_translations(project.load(), project.results, project.sets), "a set of other length"


@pytest.mark.slow
@pytest.mark.skipif(not browser.browser(), reason=f"none of {', '.join(browser.BROWSERS)} is installed")
@pytest.mark.parametrize("width", browser.WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_readable_in_a_browser(invented, tmp_path, name, width):
    page = tmp_path / name
    page.write_text(invented[1][name], encoding="utf-8")
    assert browser.faults(page, width, dark=width == 400) == []


def test_the_stage_writes_the_report_and_removes_what_an_earlier_one_wrote(project, monkeypatch, capsys, here):
    entry = {"corpus": "demo", "model": "tiny"}
    project.params["runs"] = {"run": entry}
    project.write({"run": entry}, 61.5)
    studies = project.params.pop("studies") | {"all": {"runs": {"run": entry}}}
    write_json(here / "studies.yaml", studies)
    out = here / "reports"
    monkeypatch.setattr(report, "load", lambda: project.params)
    own, kept = ("runs.csv", "old.csv", "figures/old.svg"), ("my.csv", "notes.md", "figures/my.svg", "my.html", "kept.txt")
    for name in own + kept:
        write_lines(out / name, ["old"])
    write_lines(out / report.LISTED, [*own, "../studies.yaml"])
    folders = {name: getattr(project, name) for name in ("results", "scores", "sets")} | {"times": here / "times"}
    (project.results / "times/run.json").unlink()  # as in a clone with the result of another machine
    report.main(argparse.Namespace(**folders, studies=here / "studies.yaml", out=out))
    assert "1 run, 1 with scores" in capsys.readouterr().out and "61.5" in (out / "README.md").read_text()
    assert "1 h 23 min" in (out / report.PAGE).read_text(), "the time of the training on this machine"
    assert not (out / "old.csv").exists() and not (out / "figures/old.svg").exists()
    assert all((out / name).read_text() == "old\n" for name in kept) and (here / "studies.yaml").exists()
    assert {*(out / report.LISTED).read_text().split()} >= {"runs.csv", report.PAGE} and "old" not in (
        out / report.LISTED
    ).read_text()
    assert terminal.page_is_current()
    (out / "scores.csv").write_text("as after a change of branch")
    assert not terminal.page_is_current()
    with refused("my.csv is not of an earlier report and would be replaced"):
        report.publish({"my.csv": ""}, out)
    write_lines(here / "site/index.html", ["mine"])
    for folder in (project.scores, here / "site"):
        with refused("holds files, but no files.txt of an earlier report; restore it"):
            report.publish({report.PAGE: ""}, folder)


def test_a_row_of_encoder_decoder_attention_is_the_piece_that_its_position_predicts(project):
    project.write_attention("run", layers=2, heads=4)
    folder = project.scores / "run/translations"
    with style():
        (maps,), one = attention.of_run("run", folder).values(), attention.example("run", folder)
        assert attention.example("run", folder).svg == one.svg, "equal pictures have equal bytes"
    for picture, starts, ends in [(one, 0, 2), (maps[2], 0, 4 + 2), (maps[1], 4 + 2, 0)]:
        assert (picture.svg.count(">&lt;s&gt;<"), picture.svg.count(">&lt;/s&gt;<")) == (starts, ends)
    description = read_json(folder / "attention.json")
    description["sentences"][0]["target"].append("more")
    write_json(folder / "attention.json", description)
    with refused("attention.npz is damaged", "0.decoder has no weight for each piece"):
        attention.of_run("run", folder)


ROW = ["50% & #1_{x}|y", 27.3456, 26.0, 28.5, 1234567, 3.28e18, "O(log_k n)"]
NAMES = ["name | x", "a_b", "a_b low", "a_b high", "count", "flops", "O"]
TABLE = table("t", "Title", pd.DataFrame([ROW, ["none", *[None] * 6]], columns=NAMES, dtype=object))


def test_csv_holds_whole_values_and_the_other_forms_rounded_ones():
    assert TABLE.csv.split("\n")[1:3] == ["50% & #1_{x}|y,27.3456,26.0,28.5,1234567,3.28e+18,O(log_k n)", "none,,,,,,"]
    lines = [line for line in markdown(TABLE).split("\n") if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {len(TABLE.labels) + 2}
    assert "27.35 (26.00–28.50) | 1,234,567 | 3.3e18" in lines[2] and lines[3].count("–") == 4
    rows = [line for line in latex(TABLE).split("\n") if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(TABLE.labels) - 1}
    assert rows[1].startswith(r"50\% \& \#1\_\{x\}|y & 27.35 (26.00--28.50) & 1,234,567 & $3.3\cdot10^{18}$ & $O(\log_k")
    assert interval(-1.2, 0.3) == "-1.20 to 0.30", "a dash would touch the minus sign"
    ends = {"x": 1.25, "x low": 1.04, "x high": 2.06}
    rows = [{"p": 0.004, **dict.fromkeys(ends)}, {"p": 0.006}, {"p": 0.0, "exact": 0.12345, **ends}]
    small = table("t", "Title", rows, places={"x": 1}, given=["exact"])
    assert [row["p"][0] for row in small.cells] == ["< 0.01", "0.01", "0.00"]
    assert small.cells[2]["exact"][0] == "0.12345" and small.cells[2]["x"][1] == "1.0–2.1"
    grown = table("t", "Title", [{"layer": each, "grows as": "n^1.98 d^1.02"} for each in "aab"], grouped=True)
    assert [grown.starts_group(place) for place in range(3)] == [False, False, True]
    assert r"a & $n^{1.98} d^{1.02}$ \\" in latex(grown)
    assert dataclasses.replace(small, ours=["x high", "p"]).marked == [True] * 3
    assert dataclasses.replace(small, ours=["x high"]).marked == [False, False, True]


def test_times_are_in_their_two_largest_units():
    shown = {0.4: "0 s", 59.6: "1 min 0 s", 3600: "1 h 0 min", 86399: "23 h 59 min", 90000: "1 d 1 h"}
    assert {seconds: duration(seconds) for seconds in shown} == shown
