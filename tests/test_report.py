"""The report: the runs that it shows, the places of all numbers, and the page as a browser gets it."""

import argparse
import base64
import copy
import csv
import dataclasses
import io
import itertools
import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import sacrebleu
from dvc.repo import Repo
from sacrebleu.metrics import BLEU

from pipeline import report
from pipeline.commands import record
from pipeline.report import Known
from pipeline.reporting import (
    claims,
    decoder_facts,
    decodings,
    deltas,
    evidence,
    model_card,
    pairs,
    paper_tables,
    plots,
    run_tables,
    searches,
    values,
)
from pipeline.reporting.attention_maps import GAP, attention, mosaic
from pipeline.reporting.deltas import comparison
from pipeline.reporting.differences import Bootstrap
from pipeline.reporting.headlines import headlines
from pipeline.reporting.lines import COLOURS, looks, short, spread
from pipeline.reporting.page import page
from pipeline.reporting.published import BASE, TABLE2, TABLE3
from pipeline.reporting.studies import expected_to_fail, studies
from pipeline.reporting.tables import Column, Table, comma_separated, duration, latex, markdown
from pipeline.settings.params import languages
from pipeline.settings.scoring import ScoringConfig, scoring
from pipeline.settings.selection import run_settings
from pipeline.workflow import results
from pipeline.workflow.times import write_times
from tests import browser
from tests.imports import ROOT
from tests.models import lengths_of
from tests.spoilt import MISSING, places, spoilt
from transformer.config.reading import UserError
from transformer.files import digest, read_json, write_json, write_lines
from transformer.flops import forward_flops

SENTENCES = [("A well-known <b>star</b> & co.", "Ein <script>alert(1)</script> Stern")]
MEASURES = tuple(run_tables.MEASURES)
COMMIT = "abc123" * 6 + "abcd-dirty"
ESTIMATE = 5025.2 * 8 * 9.5e12  # by the paper's formula, from the times that write_all_times writes


def metrics(bleu: float) -> dict:
    scores = {name: bleu + place for place, name in enumerate(MEASURES)}
    cells = {
        name: {"score": score, "low": score - 1, "high": score + 1.5, "signature": f"tok:{name}|version:9"}
        for name, score in scores.items()
    }
    return {"pairs": 10, "metrics": cells}


def write_scores(params: dict, run: str, scores: Path, bleu: float = 30.0) -> None:
    """Write invented scores and times of a run. Dev is 2 BLEU below test for the last checkpoint, 1 for the average."""
    corpus, model, training = run_settings(params, run)
    settings = {"model": vars(model), "training": vars(training)}
    sums = {"settings": settings, "settings_sha256": digest(settings), "data_sum": "d0" * 32}
    write_json(scores / run / "training.json", {"steps": training.steps, "parameters": 63_081_472, **sums})
    components = {"cross_attention": 1e15}
    counts = {"training_flops": 3e15, "training_flops_causal_half": 2e15, "components": components}
    write_json(scores / run / "flops.json", {"analytic": counts})
    table = {"dev": {"last": metrics(bleu - 2), "average": metrics(bleu - 1)}, "test": {"average": metrics(bleu)}}
    write_json(scores / run / "score.json", table)
    curve = [{"step": step, "loss": 9 - step / 300, "learning_rate": 1e-4, "tokens": step} for step in range(1, 701)]
    curve += [{"step": step, "dev_loss": 8 - step / 300, "dev_perplexity": 4.0} for step in range(100, 701, 100)]
    (scores / run / "training.jsonl").write_text("".join(json.dumps(line) + "\n" for line in curve))
    write_translations(scores / run / "translations", model.N, model.h)
    write_all_times(scores, run, precision="float32" if training.precision == "auto" else training.precision)
    write_json(
        scores / "corpora" / corpus / "binarise.json", {"languages": languages(params, corpus), "data_sum": "d0" * 32}
    )


def write_all_times(
    scores: Path, run: str, seconds: float = 5025.2, commit: str = COMMIT, precision: str = "float32"
) -> None:
    made_on = {"hardware": "Tesla P100-SXM2-16GB", "gpus": 8, "precision": precision, "commit": commit}
    training = {"seconds": seconds, "tokens_per_second": 1234.5, "energy_joules": 7.2e6, **made_on}
    folder = scores.parent / "times" / run
    write_times(folder / "training.json", scores / run / "training.json", training)
    decoding = {"seconds": {"test.average": 2.0}}
    write_times(folder / "decoding.json", scores / run / "translations/translations.json", decoding)


def write_translations(folder: Path, layers: int, heads: int) -> None:
    perplexities = {"last": {"perplexity": 4.875}, "average": {"perplexity": 4.625}}
    write_json(folder / "translations.json", {"dev": perplexities, "pieces": {}})
    samples = [{"source": source, "reference": target, "translation": target} for source, target in SENTENCES]
    write_json(folder / "samples.json", samples)
    (folder / "dev.last.txt").write_text("Ein Stern\n", encoding="utf-8")
    sentence = {"line": 1, "source": ["▁A", "▁<s", "&", "$x", "</s>"], "target": ["<s>", "▁Ein", "\"'"]}
    write_json(folder / "attention.json", {"sentences": [sentence]})
    shapes = {"encoder": (5, 5), "decoder": (3, 3), "cross": (3, 5)}
    arrays = {f"0.{kind}": np.full((layers, heads, *shape), 0.25, np.float16) for kind, shape in shapes.items()}
    np.savez_compressed(folder / "attention.npz", **arrays)


@pytest.fixture
def project(params, tmp_path):
    """`project(study or runs)`: parameters with these runs selected, and empty folders for scores and results."""

    def select(runs: str | dict) -> dict:
        selected = copy.deepcopy(params)
        selected["runs"] = params["studies"][runs]["runs"] if isinstance(runs, str) else runs
        (tmp_path / "scores").mkdir()
        (tmp_path / "results").mkdir()
        return selected

    return select


def known(params: dict, folder: Path) -> list[evidence.Evidence]:
    selected = evidence.selected(params, folder / "scores", folder / "times")
    return selected + evidence.records(params, folder / "results")


def rows_of(table: Table) -> list[dict]:
    return [dict(zip((column.label for column in table.columns), row)) for row in table.rows]


def test_a_run_without_score_files_is_dashes(project, tmp_path):
    params = project("demo")
    runs = known(params, tmp_path)
    (row,) = run_tables.summary(runs).shown()
    assert (row[0], row[5]) == ("demo-tiny", "demo") and set(row[1:5] + row[6:]) == {"–"}
    text = Page(report.report(params, Known(runs))["index.html"]).text
    assert "0 of them scored" in text and "0 of 22" in text and "None" not in text and "nan" not in text


def test_only_selected_and_recorded_runs_are_shown(project, params, tmp_path):
    selected = project("demo")
    for run in params["studies"]["demo-table3"]["runs"]:
        write_scores({**params, "runs": params["studies"]["demo-table3"]["runs"]}, run, tmp_path / "scores")
    files = report.report(selected, Known(known(selected, tmp_path)))
    assert not [name for name, text in files.items() if "demo-tiny-h1" in name or "demo-tiny-h1" in text]


def test_table2_has_every_published_cell(project, tmp_path):
    table = rows_of(paper_tables.table2(known(project("demo"), tmp_path)))
    assert [row["model"] for row in table] == [row.name for row in TABLE2]
    for row, published in zip(table, TABLE2):
        assert row["EN-DE BLEU, paper"] == published.bleu_en_de and row["EN-FR FLOPs, paper"] == published.flops_en_fr
        assert row["EN-DE BLEU, ours"] is row["EN-FR sacreBLEU, ours"] is row["EN-DE FLOPs, ours"] is None
    notes = " ".join(paper_tables.table2([]).notes)
    assert "41.8" in notes and "41.0" in notes


def test_table2_shows_ours_in_the_rows_of_our_settings(project, tmp_path):
    params = project("table2")
    for bleu, run in enumerate(params["runs"], 20):
        write_scores(params, run, tmp_path / "scores", bleu)
    *competitors, base, big = rows_of(paper_tables.table2(known(params, tmp_path)))
    assert not any(isinstance(value, evidence.Score) for row in competitors for value in row.values())
    paper, sacre = MEASURES.index("bleu-published"), MEASURES.index("bleu-13a")
    for row, bleus in [(base, (20, 22)), (big, (21, 23))]:
        for pair, bleu in zip(("EN-DE", "EN-FR"), bleus):
            assert row[f"{pair} BLEU, ours"].score == bleu + paper
            assert row[f"{pair} sacreBLEU, ours"].score == bleu + sacre
            assert row[f"{pair} FLOPs, ours"] == pytest.approx(ESTIMATE)
            assert row[f"{pair} FLOPs, counted"] == 3e15
    assert (big["EN-DE run"], big["EN-FR run"]) == ("wmt14-en-de-big", "wmt14-en-fr-big")


def test_big_on_en_fr_with_the_dropout_of_en_de_is_not_the_papers(project, tmp_path):
    params = project({"fr": {"corpus": "wmt14-en-fr", "model": "big"}})
    write_scores(params, "fr", tmp_path / "scores")
    assert rows_of(paper_tables.table2(known(params, tmp_path)))[-1]["EN-FR run"] is None


def test_the_hub_s_copy_of_the_corpus_is_the_paper_s(project, tmp_path):
    params = project({"de": {"corpus": "wmt14-en-de-hub", "model": "base"}})
    write_scores(params, "de", tmp_path / "scores")
    runs = known(params, tmp_path)
    assert rows_of(paper_tables.table2(runs))[-2]["EN-DE run"] == rows_of(paper_tables.table3(runs))[0]["run"] == "de"


def test_table3_matches_settings_and_not_names(project, tmp_path):
    runs = {
        "anything": {"corpus": "wmt14-en-de", "model": "base", "h": 16, "d_k": 32, "d_v": 32, "seed": 7},
        "wmt14-en-de-base": {"corpus": "wmt14-en-de", "model": "base", "warmup": 1},
        "elsewhere": {"corpus": "multi30k", "model": "base", "N": 2},
    }
    params = project(runs)
    for run in runs:
        write_scores(params, run, tmp_path / "scores")
    rows = rows_of(paper_tables.table3(known(params, tmp_path)))
    assert [row["PPL, paper"] for row in rows if row["PPL, paper"]] == [row.perplexity for row in TABLE3]
    ours, other = [row for row in rows if row["run"]]
    assert (ours["row"], ours["h"], ours["d_k"], ours["N"], ours["run"]) == ("A", "16", "32", "", "anything")
    assert (other["row"], other["other settings"]) == ("other, ours", "warmup 1")
    assert ours["PPL, ours"] == 4.875  # of the last checkpoint, not of the average
    assert ours["BLEU, ours"].score == 28 + MEASURES.index("bleu-published")
    assert ours["params, ours (1e6)"] == pytest.approx(63.081472)


def test_table3_has_a_row_for_each_variation_that_the_paper_does_not_report(project, tmp_path):
    base = {"corpus": "wmt14-en-de", "model": "base"}
    runs = {"wmt14-en-de-h2": {**base, "h": 2}, "wmt14-en-de-N3": {**base, "N": 3}, "wmt14-en-de-base": base}
    params = project(runs)
    for run in runs:
        write_scores(params, run, tmp_path / "scores")
    runs = known(params, tmp_path)
    table = paper_tables.table3(runs)
    rows = rows_of(table)
    h2, n3 = (next(row for row in rows if row["run"] == run) for run in ("wmt14-en-de-h2", "wmt14-en-de-N3"))
    assert (h2["row"], h2["h"], h2["N"], n3["row"], n3["N"]) == ("A, ours", "2", "", "C, ours", "3")
    groups = [row["row"] for row in rows]
    assert groups.index("A, ours") == groups.index("B") - 1 and groups.index("C, ours") == groups.index("D") - 1
    assert {h2[f"{label}, paper"] for label in ("PPL", "BLEU")} == {None} and h2["PPL, ours"] == 4.875
    assert len(rows) == len(TABLE3) + 2 and "other settings" not in h2
    (study,) = map(run_tables.study_table, studies(params, runs))  # two of the runs are in no study
    assert {row["run"] for row in rows_of(study)} == set(params["runs"])
    assert (study.name, study.title) == ("study-selection", "selection, on wmt14-en-de")


def test_the_study_of_table3_fills_every_row(project, tmp_path):
    rows = rows_of(paper_tables.table3(known(project("paper"), tmp_path)))
    assert len(rows) == len(TABLE3) and all(row["run"] for row in rows)


def test_a_study_is_best_first_with_the_settings_it_varies(project, tmp_path):
    params = project("demo-table3")
    for bleu, run in enumerate(params["runs"], 50):
        write_scores(params, run, tmp_path / "scores", bleu)
    (study,) = studies(params, known(params, tmp_path))
    table = run_tables.study_table(study)
    rows = rows_of(table)
    assert (table.name, table.title) == ("study-demo-table3", "demo-table3, on demo")
    assert [row["run"] for row in rows] == list(reversed(params["runs"]))
    settings = {"N", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls", "positions"}
    assert settings < set(rows[0]) and not {"d_model", "steps", "model", "parameters", "hardware"} & set(rows[0])
    base = rows[-1]
    assert (base["run"], base["h"], base["positions"]) == ("demo-tiny", "4", "sinusoidal")
    assert (rows[0]["run"], rows[0]["h"], rows[0]["positions"]) == ("demo-tiny-learned", "", "learned")
    assert all(row["test sacreBLEU"].low < row["test sacreBLEU"].score < row["test sacreBLEU"].high for row in rows)
    assert table.scale(1) == (49.0, 58.5) and table.reproducible().measured_notes == ()
    assert table.measured_notes == ("Trained on Tesla P100-SXM2-16GB.",)


def test_a_selection_of_no_study_is_a_study_a_corpus(project, tmp_path):
    runs = {"a": {"corpus": "demo", "model": "tiny"}, "b": {"corpus": "demo", "model": "tiny", "norm": "pre", "N": 1}}
    params = project(
        runs | {"untrained": {"corpus": "demo", "model": "tiny"}, "c": {"corpus": "multi30k", "model": "tiny"}}
    )
    for run in ("a", "b", "c"):
        write_scores(params, run, tmp_path / "scores")
    first, second = studies(params, known(params, tmp_path))
    assert (first.name, [run.run for run in first.runs]) == ("selection-demo", ["a", "b", "untrained"])
    assert (second.name, [run.run for run in second.runs]) == ("selection-multi30k", ["c"])
    rows = rows_of(run_tables.study_table(first))
    assert [row["run"] for row in rows] == ["a", "b", "untrained"]  # a run without a score is last
    assert (rows[1]["N"], rows[1]["norm"], rows[2]["test sacreBLEU"]) == ("1", "pre", None)


def test_recorded_runs_come_after_the_selected_ones_and_never_among_them(project, tmp_path):
    whole = project("demo-table3")
    for run in whole["runs"]:
        write_scores(whole, run, tmp_path / "scores")
        if run != "demo-tiny":
            recorded(whole, run, tmp_path)
    shutil.rmtree(tmp_path / "scores")
    params = {**whole, "runs": whole["studies"]["demo"]["runs"]}
    write_scores(params, "demo-tiny", tmp_path / "scores")
    runs = known(params, tmp_path)
    own, kept = studies(params, runs)
    assert (own.name, [run.name for run in own.runs]) == ("demo", ["demo-tiny"])
    # a study of records also has the selected runs of the study that have no record
    assert kept.name == "demo-table3" and [run.recorded for run in kept.runs] == [False] + [True] * 7
    content = report.content_of(params, Known(runs), figures=False)
    assert [table.name for table in content.selected] == ["study-demo"]
    assert [table.name for table in content.recorded] == ["study-demo-table3"]
    page_text = page(content)
    assert (
        page_text.index('id="study-demo"')
        < page_text.index("<details><summary>1 studies, from")
        < page_text.index('id="study-demo-table3"')
    )


def test_a_study_that_is_both_selected_and_recorded_has_two_tables(project, tmp_path):
    params = project("demo-warmup")
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
        recorded(params, run, tmp_path)
    found = studies(params, known(params, tmp_path))
    assert [study.name for study in found] == ["demo-warmup", "demo-warmup-recorded"]
    assert [{run.recorded for run in study.runs} for study in found] == [{False}, {True}]


def own_text(train: list[dict], evaluated: dict, **more) -> dict:
    download = {"train": train, "dev": evaluated, "test": evaluated, **more}
    return {"languages": ["en", "de"], "download": download, "vocabulary": {"pieces": 300}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((["a"], {"hold_out": 500}), (["b"], {"hold_out": 500})),
        ((["a"], [{"archive": "x", "source": "s"}], {"x": "one.org"}), (["a"], [{"archive": "x"}], {"x": "two.org"})),
    ],
)
def test_corpora_whose_test_sets_only_look_alike_are_not_compared(project, tmp_path, one, other):
    params = project({name: {"corpus": name, "model": "tiny"} for name in ("news", "subtitles", "again")})
    for name, (train, evaluated, *archives) in {"news": one, "subtitles": other, "again": one}.items():
        evaluated = [{"source": "s", **part} for part in evaluated] if archives else evaluated
        more = {"archives": {key: {"url": url} for key, url in archives[0].items()}} if archives else {}
        params["corpora"][name] = own_text([{"source": text, "target": text} for text in train], evaluated, **more)
        write_scores(params, f"{name}", tmp_path / "scores")
    found = studies(params, known(params, tmp_path))
    assert [sorted(run.run for run in study.runs) for study in found] == [["again", "news"], ["subtitles"]]


def test_a_record_that_no_study_has_leaves_the_recorded_studies_as_they_are(params, tmp_path):
    def grouped() -> dict[str, int]:
        return {
            study.name: len(study.runs)
            for study in studies({**params, "runs": {}}, known({**params, "runs": {}}, tmp_path))
        }

    (tmp_path / "results").mkdir()
    for name in ("multi30k-claims-seed1", "multi30k-claims-h1", "multi30k-fast", "multi30k-fast-seed2"):
        shutil.copy(ROOT / f"results/{name}.json", tmp_path / "results")
    before = grouped()
    assert len(before) == 2
    content = read_json(tmp_path / "results/multi30k-claims-h1.json") | {"run": "a-row"}
    write_json(tmp_path / "results/a-row.json", content)
    assert grouped() == {"selection": 1} | before


def test_a_run_that_helps_a_study_of_another_corpus_counts_there_and_has_its_corpus_as_name(project, tmp_path):
    whole = project("multi30k-decoding")
    for run in whole["runs"]:
        write_scores(whole, run, tmp_path / "scores")
        recorded(whole, run, tmp_path)
    shutil.rmtree(tmp_path / "scores")
    params = {**whole, "runs": {}}
    kept = studies(params, known(params, tmp_path))
    assert {study.name: study.corpus for study in kept} == {
        "multi30k-decoding": "multi30k",
        "multi30k-reverse": "multi30k-reverse",
    }
    cards = {each.study: each.progress for each in headlines(params, kept, comparison(kept))}
    assert (cards["multi30k-decoding"], cards["multi30k-reverse"]) == ("3 of 3", "1 of 1")


def test_runs_with_the_same_test_set_and_other_training_text_are_one_study(project, tmp_path):
    whole = project("multi30k-back-translation")
    whole["back_translations"] = whole["studies"]["multi30k-back-translation"]["back_translations"]
    for bleu, run in enumerate(whole["runs"], 30):
        write_scores(whole, run, tmp_path / "scores", bleu)
        recorded(whole, run, tmp_path)
    shutil.rmtree(tmp_path / "scores")
    params = {**whole, "runs": {}, "back_translations": {}}
    found = {study.name: study for study in studies(params, known(params, tmp_path))}
    assert set(found) == {"multi30k-back-translation", "multi30k-back-translation-multi30k-half-reverse"}
    table = run_tables.study_table(found["multi30k-back-translation"])
    assert [(row["run"], row["corpus"]) for row in rows_of(table)] == [
        ("multi30k-claims-seed1 (recorded)", "multi30k"),
        ("multi30k-half-bt-sampled (recorded)", "multi30k-half-bt-sampled"),
        ("multi30k-half-bt (recorded)", "multi30k-half-bt"),
        ("multi30k-half (recorded)", "multi30k-half"),
    ]
    assert table.title == "multi30k-back-translation" and "equal vocabularies" in " ".join(table.notes)
    first = headlines(params, list(found.values()), comparison([]))[0]
    assert (first.figure, first.note) == ("30.0 to 34.0", "One seed per run.")
    assert first.says == "BLEU on the same test set, from multi30k-half to multi30k-claims-seed1"


def test_a_run_stands_in_each_study_that_has_runs_of_its_own(project, tmp_path):
    params = project("multi30k-claims")
    other = params["studies"]["multi30k-back-translation"]
    params["runs"], params["back_translations"] = params["runs"] | other["runs"], other["back_translations"]
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    found = {study.name: {run.run for run in study.runs} for study in studies(params, known(params, tmp_path))}
    assert set(found) == {
        "multi30k-claims",
        "multi30k-back-translation",
        "multi30k-back-translation-multi30k-half-reverse",
    }
    assert all("multi30k-claims-seed1" in found[name] for name in ("multi30k-claims", "multi30k-back-translation"))


def test_a_study_that_is_named_after_its_corpus_does_not_take_the_name_of_another(project, tmp_path):
    """`both` lacks its first run, so it would be called multi30k, as the other study is."""
    runs = {run: {"corpus": "multi30k", "model": "claims", "seed": seed} for seed, run in enumerate("ab", 1)}
    params = project(runs)
    first = {"reverse": {"corpus": "multi30k-reverse", "model": "claims"}}
    params["studies"] = {"multi30k": {"runs": {"a": runs["a"]}}, "both": {"runs": first | {"b": runs["b"]}}}
    for run in runs:
        write_scores(params, run, tmp_path / "scores")
    found = {study.name: [run.run for run in study.runs] for study in studies(params, known(params, tmp_path))}
    assert found == {"multi30k": ["a"], "both-multi30k": ["b"]}


@pytest.mark.slow
def test_a_control_that_is_to_fail_stands_in_its_study_only(project, tmp_path):
    params = project("demo-warmup")
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    files = report.report(params, Known(known(params, tmp_path)))
    control = "demo-deep-no-warmup"
    tables = {name for name, text in files.items() if name.endswith(".csv") and f"\n{control}," in text}
    assert tables == {"study-demo-warmup.csv", "runs.csv", "scores.csv"}  # runs.csv and scores.csv hold every run
    assert control not in files["README.md"].split("## Pictures")[0].split("## Runs")[1]
    assert len(re.findall(r"^!\[", files["README.md"], re.MULTILINE)) == 3
    drawn = browser.pictures(files["index.html"])
    assert f"loss-{control}" not in drawn and "loss-demo-deep" in drawn
    assert "no-warmup" in drawn["study-demo-warmup"] == files["figures/study-demo-warmup.svg"]
    assert len([name for name in files if name.endswith(".svg")]) == 3, "those of README.md"


def test_an_interval_is_drawn_where_it_lies_between_the_ends_of_all(project, tmp_path):
    params = project("demo-warmup")
    for bleu, run in zip((10, 20, 30, 40), params["runs"]):
        write_scores(params, run, tmp_path / "scores", bleu)
    text = page(report.content_of(params, Known(known(params, tmp_path)), figures=False))
    table = text[text.index('id="study-demo-warmup"') :].split("</table>")[0]
    drawn = re.findall(r'<i style="left:([\d.]+)%;right:([\d.]+)%"></i><b style="left:([\d.]+)%"', table)[::2]
    # The scale is from 9 to 41.5. The best run is first.
    ends = [(39, 41.5, 40), (29, 31.5, 30), (19, 21.5, 20), (9, 11.5, 10)]
    at = [[(low - 9) / 0.325, (41.5 - high) / 0.325, (score - 9) / 0.325] for low, high, score in ends]
    assert [list(map(float, values)) for values in drawn] == [pytest.approx(place, abs=0.06) for place in at]


@pytest.mark.parametrize(
    "varied, claim",
    [
        ({"norm": "pre"}, "Xiong"),
        ({"attention": "additive", "h": 1, "d_k": 128, "d_v": 128}, "3.2.1"),
        ({"N": 1}, ""),
        ({"d_k": 16}, ""),
    ],
)
def test_a_study_says_what_the_literature_expects_of_the_settings_it_varies(project, tmp_path, varied, claim):
    params = project({"a": {"corpus": "demo", "model": "tiny"}, "b": {"corpus": "demo", "model": "tiny", **varied}})
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    (study,) = studies(params, known(params, tmp_path))
    assert claim in study.claim() and bool(study.claim()) == bool(claim)


def test_the_mean_over_seeds(project, tmp_path):
    params = project("multi30k-published")
    for bleu, run in zip((40.0, 41.0, 43.5), params["runs"]):
        write_scores(params, run, tmp_path / "scores", bleu)
    (row,) = rows_of(run_tables.seeds(known(params, tmp_path)))
    assert (row["seeds"], row["sacreBLEU 13a"]) == (3, pytest.approx(41.5))
    runs = known(params, tmp_path)
    *_, last = rows_of(paper_tables.toolkits(runs))
    mean = "mean of 3 seeds (47.00 to 50.50), in bfloat16 and float32"
    assert (last["BLEU"].score, last["source"]) == (pytest.approx(48.5), mean)
    fewer = [dataclasses.replace(runs[0], scores={}), *runs[1:]]
    assert evidence.over_seeds(runs, "bleu-13a").seeds == 3
    assert evidence.over_seeds(fewer, "bleu-13a") is None, "two of three seeds would be another mean"
    (headline,) = (
        each for each in headlines(params, studies(params, runs), comparison([])) if each.study == "multi30k-published"
    )
    assert (headline.figure, headline.note.partition(". ")[0]) == ("48.5", mean.capitalize())
    path = tmp_path / "scores/multi30k-published-seed3/training.json"
    write_json(path, read_json(path) | {"data_sum": "d1" * 32})
    (row,) = rows_of(run_tables.seeds(known(params, tmp_path)))
    assert (row["seeds"], row["sacreBLEU 13a"]) == (2, pytest.approx(40.5)), "the third has other data"


def test_a_run_with_a_seed_of_its_own_and_no_other_setting_is_a_base(project, tmp_path):
    run = {"corpus": "demo", "model": "tiny"}
    params = project({"deep": {**run, "N": 3}, "again": {**run, "seed": 2}, "once": {**run, "seed": 3}})
    for name in params["runs"]:
        write_scores(params, name, tmp_path / "scores")
    (study,) = studies(params, known(params, tmp_path))
    assert study.base.run == "again" and [run.run for run in study.bases] == ["again", "once"]


def test_the_headline_is_the_mean_of_the_seeds_of_the_best_run(project, tmp_path):
    run = {"corpus": "demo", "model": "tiny"}
    params = project({"a": run, "a-seed2": {**run, "seed": 2}, "b": {**run, "N": 1}})
    for bleu, name in zip((40.0, 42.0, 39.0), params["runs"]):
        write_scores(params, name, tmp_path / "scores", bleu)
    first, *_ = headlines(params, studies(params, known(params, tmp_path)), comparison([]))
    assert (first.figure, first.note) == ("41.0", "Highest of 2: a, mean of 2 seeds (40.00 to 42.00).")


def test_runs_with_equal_seeds_and_different_precisions_have_means_of_their_own(project, tmp_path):
    run = {"corpus": "demo", "model": "tiny"}
    params = project(
        {
            "a": {**run, "precision": "bfloat16"},
            "b": {**run, "precision": "float32"},
            "a-seed2": {**run, "precision": "bfloat16", "seed": 2},
            "b-seed2": {**run, "precision": "float32", "seed": 2},
        }
    )
    for bleu, name in zip((40.0, 50.0, 42.0, 52.0), params["runs"]):
        write_scores(params, name, tmp_path / "scores", bleu)
    rows = rows_of(run_tables.seeds(known(params, tmp_path)))
    assert [(row["runs"], row["sacreBLEU 13a"]) for row in rows] == [
        ("a, a-seed2", pytest.approx(41.0)),
        ("b, b-seed2", pytest.approx(51.0)),
    ]


def test_only_a_run_with_the_settings_of_its_model_stands_beside_other_implementations(project, tmp_path):
    published = {"corpus": "multi30k-lc-tok", "model": "multi30k-published"}
    params = project(
        {
            "multi30k-published-seed1": {**published, "seed": 1},
            "multi30k-r-drop": {**published, "r_drop": 5.0},
            "multi30k-weight-decay": {**published, "weight_decay": 0.01},
        }
    )
    for bleu, run in zip((40.0, 41.9, 41.5), params["runs"]):
        write_scores(params, run, tmp_path / "scores", bleu)
    runs = known(params, tmp_path)
    names = [row["implementation"] for row in rows_of(paper_tables.toolkits(runs))]
    assert [name for name in names if "ours" in name] == ["ours, multi30k-published-seed1"]
    found = {study.corpus: study.varied() for study in studies(params, runs)}
    assert found["multi30k-lc-tok"] == ["r_drop", "weight_decay"]
    assert not [
        each for each in headlines(params, studies(params, runs), comparison([])) if "41.02" in each.note + each.says
    ]


def recorded(params: dict, run: str, folder: Path) -> Path:
    path = folder / "results" / f"{run}.json"
    if not (folder / f"sets/{params['runs'][run]['corpus']}-dev").exists():
        write_set(folder, "dev", ["Der Stern"], params["runs"][run]["corpus"])
    write_json(path, record.record(params, run, folder / "scores", folder / "times", folder / "sets"))
    return path


def test_a_run_is_not_recorded_before_it_is_built_or_without_its_times(project, tmp_path):
    params = project("demo")
    with pytest.raises(UserError, match=r"cannot be recorded without .*training.json.*; build demo-tiny first"):
        recorded(params, "demo-tiny", tmp_path)
    write_scores(params, "demo-tiny", tmp_path / "scores")
    (tmp_path / "times/demo-tiny/training.json").unlink()
    with pytest.raises(UserError, match=r"times/demo-tiny/training.json: .* record demo-tiny on the machine that built it"):
        recorded(params, "demo-tiny", tmp_path)


def test_a_run_that_params_yaml_has_changed_since_its_training_is_not_recorded(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    params["runs"]["demo-tiny"] |= {"dropout": 0.3}
    with pytest.raises(UserError, match=r"demo-tiny cannot be recorded: settings or corpus have changed .* \(dropout\)"):
        recorded(params, "demo-tiny", tmp_path)
    del params["runs"]["demo-tiny"]["dropout"]
    write_json(tmp_path / "scores/corpora/demo/binarise.json", {"languages": ["en", "de"], "data_sum": "d1" * 32})
    with pytest.raises(UserError, match=r"\(corpus\)"):
        recorded(params, "demo-tiny", tmp_path)


@pytest.mark.parametrize("change", [{"dropout": 0.3}, {"corpus": "multi30k"}, {"steps": 900}, {"model": "small"}])
def test_scores_of_other_settings_or_of_another_corpus_are_not_those_of_a_run(project, tmp_path, change):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    assert known(params, tmp_path)[0].scores
    params["runs"] = {"demo-tiny": {**params["runs"]["demo-tiny"], **change}}
    (run,) = known(params, tmp_path)
    assert not run.scores and not run.curve and not run.samples and not any(run.parts.values())
    assert run.settings.items() >= {key: value for key, value in change.items() if key in ("dropout", "steps")}.items()


def test_a_record_does_not_count_as_the_training_of_a_changed_run(project, tmp_path):
    params = project("demo-table3")
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
        recorded(params, run, tmp_path)
    params["runs"] = {run: {**params["runs"][run], "steps": 900} for run in ("demo-tiny-h1", "demo-tiny-N1")}
    params["runs"]["demo-tiny"] = params["studies"]["demo-table3"]["runs"]["demo-tiny"]
    found = studies(params, known(params, tmp_path))
    (own,) = [each for each in headlines(params, found, comparison(found)) if each.origin == "selected"]
    assert own.progress == f"{own.runs - 2} of {own.runs}", "of the runs of params.yaml, only demo-tiny has scores"


def test_costs_show_the_papers_trainings_and_all_that_is_known_of_ours(project, tmp_path):
    params = project("table2")
    write_scores(params, "wmt14-en-de-base", tmp_path / "scores")
    params["peak_tflops"] = {"P100": 2e15 / (5025.2 * 8 * 1e12) / 0.25}
    runs = known(params, tmp_path)
    base, big, ours, missing = rows_of(run_tables.flops(runs))[:4]
    assert [row["FLOPs, estimated"] for row in (base, big, ours)] == [3.3e18, 2.3e19, pytest.approx(ESTIMATE)]
    assert (base["sustained TFLOPS"], base["GPUs"], base["training"]) == (9.5, 8, 43200) and base["HFU (%)"] is None
    assert [ours[key] for key in ("MFU (%)", "HFU (%)", "energy (kWh)")] == pytest.approx([25, 37.5, 2])
    assert set(list(missing.values())[1:]) == {None}
    operations = rows_of(run_tables.operations(runs))
    assert operations[0]["cross attention"] == 1e15 and operations[1]["cross attention"] is None
    assert (operations[0]["total"], operations[0]["causal half"]) == (3e15, 2e15)


@pytest.mark.slow
def test_files_in_git_are_equal_whatever_the_times_and_the_page_is_not(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    first = report.report(params, Known(known(params, tmp_path)))
    write_all_times(tmp_path / "scores", "demo-tiny", seconds=7.0, commit="ef" * 20)
    other = report.report(params, Known(known(params, tmp_path)))
    shutil.rmtree(tmp_path / "times")
    none = report.report(params, Known(known(params, tmp_path)))
    pages = [files.pop("index.html") for files in (first, other, none)]
    assert first == other == none and len(set(pages)) == 3
    assert COMMIT in pages[0] and "ef" * 20 in pages[1] and "P100-SXM2" in pages[1] and "P100-SXM2" not in pages[2]
    assert not [name for name, text in first.items() if "P100-SXM2" in text or COMMIT[:10] in text]


def test_times_of_another_training_are_not_shown(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    path = tmp_path / "scores/demo-tiny/training.json"
    write_json(path, json.loads(path.read_text()) | {"dev_loss": 1.5})
    (run,) = known(params, tmp_path)
    assert run.parts["timing"] is None and run.parts["decoding"] and run.cost.flops is None


def test_the_page_is_ignored_by_git_and_dvc():
    ignored = {name: (ROOT / name).read_text().split("\n") for name in (".gitignore", ".dvcignore")}
    assert all("/reports/index.html" in lines for lines in ignored.values())
    with Repo(str(ROOT)) as repo:
        assert repo.dvcignore.is_ignored_file(str(ROOT / "reports/index.html"))
        assert not repo.dvcignore.is_ignored_file(str(ROOT / "reports/README.md"))


def test_the_components_are_those_that_are_counted(settings):
    counted = forward_flops(settings(), 90, lengths_of([(5, 7)]))
    assert {key for key, flops in counted.items() if flops} == set(run_tables.COMPONENTS)


def test_a_record_shows_the_same_numbers_as_its_run(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores", 60)
    recorded(params, "demo-tiny", tmp_path)
    assert [[run.name for run in group] for group in evidence.alike(known(params, tmp_path))] == [["demo-tiny"]]
    fresh, kept = run_tables.all_runs(known(params, tmp_path)).rows
    assert (fresh[0], kept[0], fresh[4], kept[4]) == ("demo-tiny", "demo-tiny (recorded)", "no", "yes")
    assert fresh[1:4] + fresh[5:] == kept[1:4] + kept[5:] and None not in kept
    files = report.report(params, Known(known(params, tmp_path)))
    assert {"loss-demo-tiny", "loss-demo-tiny.recorded"} <= set(browser.pictures(files["index.html"]))
    assert 'id="run-demo-tiny"' in files["index.html"] and 'id="run-demo-tiny.recorded"' in files["index.html"]


def test_a_record_keeps_the_bpe_dropout_of_its_training(project, tmp_path):
    params = project({"run": {"corpus": "multi30k-sampled", "model": "claims"}})
    write_scores(params, "run", tmp_path / "scores")
    recorded(params, "run", tmp_path)
    params["corpora"]["multi30k-sampled"]["vocabulary"]["bpe_dropout"] = 0.3
    now, kept = known(params, tmp_path)
    assert (now.settings["bpe_dropout"], kept.settings["bpe_dropout"]) == (0.3, 0.1)


def test_a_card_states_the_licence_of_what_comes_from_multi30k_and_of_nothing_else(params):
    for name, corpus in params["corpora"].items():
        what, licence = model_card.data_of(name)
        of_multi30k = "/multi30k/dataset/" in json.dumps(corpus["download"])
        assert (licence == "CC BY-NC-SA 4.0") == ("Multi30k" in what) == of_multi30k, name
    assert model_card.data_of("demo")[1] == "MIT"


def test_a_run_and_its_record_share_a_line_of_learning_rates(project, tmp_path, monkeypatch):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    recorded(params, "demo-tiny", tmp_path)
    runs = known(params, tmp_path)
    assert len({len(run.curve) for run in runs}) == 2
    drawn: list = []
    monkeypatch.setattr(plots, "draw", lambda plot, lines, **_: drawn.extend(lines))
    plots.learning_rates(runs)
    assert len(drawn) == 1


def test_a_record_outlives_the_selection_of_its_run(project, params, tmp_path):
    other = project("multi30k")
    demo = {**params, "runs": params["studies"]["demo"]["runs"]}
    write_scores(demo, "demo-tiny", tmp_path / "scores", 60)
    recorded(demo, "demo-tiny", tmp_path)
    shutil.rmtree(tmp_path / "scores")
    names = [run.name for run in known(other, tmp_path)]
    assert names == ["multi30k-small", "demo-tiny (recorded)"]


def test_a_record_holds_a_thin_curve_and_no_text(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    path = recorded(params, "demo-tiny", tmp_path)
    assert json.loads(path.read_text())["timing"]["seconds"] == 5025.2
    curve = json.loads(path.read_text())["curve"]
    steps = [line["step"] for line in curve]
    assert steps == sorted(steps)
    assert len(curve) <= 200 and len([line for line in curve if "dev_loss" in line]) == 7
    assert (curve[0]["step"], curve[-1]["step"]) == (1, 700) and "Stern" not in path.read_text()
    assert path.stat().st_size < 50_000


FILES = [f"scores/demo-tiny/{file}" for file in (*evidence.PARTS.values(), evidence.CURVE)]
FILES += ["scores/demo-tiny/translations/dev.last.txt"]
FILES += [f"times/demo-tiny/{file}" for file, _ in evidence.TIMES.values()]


def test_a_name_that_cannot_be_recorded_is_refused_with_those_that_can(project, monkeypatch):
    params = project("demo")
    params["decodings"] = {"demo-sampled": {}}
    monkeypatch.setattr(record, "load", lambda: params)
    with pytest.raises(UserError, match=r"'demo-smpled' is not a run, .*; did you mean 'demo-sampled'\? valid names"):
        record.main(argparse.Namespace(run="demo-smpled"))


@pytest.mark.parametrize("file", FILES)
def test_recording_without_a_file_is_refused_by_its_name(project, tmp_path, file):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    (tmp_path / file).unlink()
    with pytest.raises(UserError, match=re.escape(str(tmp_path / file))):
        recorded(params, "demo-tiny", tmp_path)
    assert not list((tmp_path / "results").iterdir())


DAMAGES = {
    "not JSON": lambda text: text[:-20],
    "no mapping": lambda text: "[]",
    "another run's": lambda text: text.replace('"run": "demo-tiny"', '"run": "demo-tidy"'),
    "settings edited": lambda text: text.replace('"d_model": 128', '"d_model": 256'),
    "a score that is text": lambda text: text.replace('"score": 30.0', '"score": "30"'),
    "a score without its signature": lambda text: text.replace('"signature"', '"sign"', 1),
    "no hardware": lambda text: re.sub('"hardware": "[^"]*"', '"hardware": null', text),
    "no time": lambda text: text.replace('"seconds": 5025.2', '"seconds": 0'),
    "a count of operations that is text": lambda text: text.replace("3000000000000000.0", '"many"'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_refused_by_name(project, tmp_path, damage):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    path = recorded(params, "demo-tiny", tmp_path)
    text = path.read_text()
    path.write_text(DAMAGES[damage](text))
    assert path.read_text() != text
    with pytest.raises(UserError, match=re.escape(str(path))):
        evidence.records(params, tmp_path / "results")


def test_the_records_in_git_load_with_an_estimate_or_the_reason_for_none(params):
    """Some records were made when flops.json still held the estimate."""
    records = evidence.records(params, ROOT / "results")
    assert records and all(run.cost.reason or run.cost.flops for run in records)
    assert all(row["total"] > 1e12 for row in rows_of(run_tables.operations(records)))


@pytest.mark.slow
def test_every_record_in_git_is_on_the_page(params):
    folder = ROOT / "results"
    runs, decoded = evidence.records(params, folder), decodings.records(folder)
    shown = Known(runs, decoded=decoded, values=values.records(folder), tuned=searches.records(folder))
    files = report.report({**params, "runs": {}}, shown)
    text = Page(files["index.html"]).text.replace("\N{NON-BREAKING HYPHEN}", "-")
    assert [path.stem for path in folder.rglob("*.json") if path.stem not in text] == []
    drawn = {name for names in re.findall(r"Loss of (.*?) against", files["index.html"]) for name in names.split(", ")}
    assert drawn == {run.name for run in runs if not expected_to_fail(run)}


def test_the_page_of_other_results_is_not_announced(project, tmp_path, monkeypatch):
    params = project("demo")
    monkeypatch.chdir(tmp_path)
    for bleu, current in ((61.5, True), (62.5, False)):
        write_scores(params, "demo-tiny", tmp_path / "scores", bleu)
        files = report.report(params, Known(known(params, tmp_path)))
        if current:
            report.publish(files, tmp_path / "reports")
        else:  # as after a change of branch: git brings the tables, and the page stays
            (tmp_path / "reports/scores.csv").write_text(files["scores.csv"])
        assert results.page_is_current() == current


def show(params: dict, folder: Path) -> None:
    """Make the tables and the page. Its only figures are the attention maps, because curves take longest to draw."""
    runs = known(params, folder)
    content = report.content_of(params, Known(runs), figures=False)
    tables = [*content.selected, *content.recorded, *content.paper, *content.costs]
    for table in [*tables, run_tables.all_runs(runs), run_tables.scores(runs)]:
        assert comma_separated(table) and markdown(table) and latex(table)
    assert page(dataclasses.replace(content, figures=[figure for run in runs for figure in attention(run)]))


@pytest.mark.slow
def test_whatever_stands_anywhere_in_a_file_is_shown_or_refused_by_the_file_s_name(project, tmp_path):
    """Each value in a file is left out, or replaced by one of several others."""
    params, run = project("demo"), tmp_path / "scores/demo-tiny"
    write_scores(params, "demo-tiny", tmp_path / "scores")
    write_json(
        run / "score.json", {"test": {"average": {"pairs": 10, "metrics": {"chrf": metrics(30)["metrics"]["chrf"]}}}}
    )
    (run / "training.jsonl").write_text('{"step": 1, "loss": 9.5, "learning_rate": 0.1}\n')
    recorded(params, "demo-tiny", tmp_path)
    refused, others = 0, itertools.cycle([None, "text", -1, [1]])
    for path in sorted(tmp_path.rglob("*.json")):
        text = path.read_text()
        # a digest protects all settings
        for place in [place for place in places(json.loads(text)) if "settings" not in place[:-1]]:
            for new in (MISSING, next(others)):
                path.write_text(json.dumps(spoilt(json.loads(text), place, new)))
                try:
                    show(params, tmp_path)
                except UserError as error:
                    refused += 1
                    assert str(path) in str(error) and "\n" not in str(error)
        path.write_text(text)
    show(params, tmp_path)
    assert refused > 100


@pytest.mark.parametrize(
    "line",
    ["1", "null", "[]", "{}", '{"loss": 1}', '{"step": "1"}', '{"step": 1, "loss": "9"}', '{"step": 1, "loss": NaN}'],
)
def test_a_line_that_is_no_point_of_a_curve_is_refused_by_its_number(project, tmp_path, line):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    path = tmp_path / "scores/demo-tiny/training.jsonl"
    path.write_text(f'{{"step": 1, "loss": 9.5}}\n{line}\n')
    with pytest.raises(UserError, match=f"{re.escape(str(path))}: line 2"):
        known(params, tmp_path)


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


@pytest.fixture(scope="module")
def files(params, tmp_path_factory):
    """A report of several runs, one of them recorded as well."""
    folder = tmp_path_factory.mktemp("report")
    selected = {**params, "runs": params["studies"]["demo-table3"]["runs"]}
    for bleu, run in enumerate(selected["runs"], 50):
        write_scores(selected, run, folder / "scores", bleu)
    recorded(selected, "demo-tiny", folder)
    return report.report(selected, Known(known(selected, folder)))


@pytest.mark.slow
def test_the_page_stands_alone_and_its_links_lead_somewhere(files):
    page = Page(files["index.html"])
    assert len(page.ids) == len(set(page.ids)) and not page.nameless and "script" not in page.tags
    images = [address for tag, address in page.addresses if tag in ("img", "link")]
    links = [address for tag, address in page.addresses if tag == "a"]
    assert len(images) > 20 and all(address.startswith("data:") for address in images)
    assert links and all(link.startswith("#") and link[1:] in page.ids for link in links)
    assert len(images) + len(links) == len(page.addresses)
    assert "url(" not in files["index.html"] and "@import" not in files["index.html"]


def test_the_page_shows_text_of_the_corpus_as_text(files):
    page = Page(files["index.html"])
    for source, target in SENTENCES:
        assert source in page.text and target in page.text


def test_the_page_says_where_its_numbers_come_from(files):
    text = Page(files["index.html"]).text
    for fact in (
        COMMIT,
        "d0" * 32,
        "tok:bleu-13a|version:9",
        "P100-SXM2",
        "1 h 23 min",
        "recorded",
    ):
        assert fact in text, fact


def test_every_figure_is_well_formed_dateless_and_readable_on_a_dark_page(files):
    figures = browser.pictures(files["index.html"])
    assert {"learning-rate", "positions", "study-demo-table3"} <= set(figures)
    assert len([name for name in figures if "attention-demo-tiny-h1-1" in name]) == 3
    for name, text in figures.items():
        ElementTree.fromstring(text)
        assert "prefers-color-scheme:dark" in text and "dc:date" not in text, name
    assert "&lt;s" in figures["attention-demo-tiny-1-encoder"]


@pytest.mark.slow
@pytest.mark.skipif(not browser.browser(), reason=f"none of {', '.join(browser.BROWSERS)} is installed")
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_the_page_is_readable_in_a_browser(files, tmp_path, width):
    page = tmp_path / "index.html"
    page.write_text(files["index.html"], encoding="utf-8")
    assert browser.faults(page, width, dark=width == 400) == []


@pytest.mark.slow
@pytest.mark.skipif(not browser.browser(), reason=f"none of {', '.join(browser.BROWSERS)} is installed")
def test_the_printed_page_fits_the_paper(files, tmp_path):
    """No table is wider than A4 in landscape within its margins."""
    page, width = tmp_path / "index.html", 1032  # 273 mm
    page.write_text(files["index.html"].replace("@media print {", "@media all {"), encoding="utf-8")
    seen, _ = browser.look(page, width, dark=True)
    assert seen["wide"] <= width and seen["hidden"] == []


@pytest.mark.skipif(not browser.browser(), reason=f"none of {', '.join(browser.BROWSERS)} is installed")
def test_the_browser_finds_a_score_off_the_screen_and_text_outside_its_picture(tmp_path):
    words = '<text y="20">inside</text><text x="80" y="20">cut off</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">{words}</svg>'
    image = f'<img alt="a picture" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
    table = '<table><tr><td style="min-width:{}px">run</td><td data-score>12.5</td></tr></table>'
    boxes = [
        f'<div role="region" aria-label="{width}" style="overflow:auto">{table.format(width)}</div>' for width in (200, 600)
    ]
    path = tmp_path / "index.html"
    path.write_text(f"<!DOCTYPE html><html><body><main>{image}{''.join(boxes)}</main></body></html>")
    assert browser.faults(path, 400, dark=False) == [
        "the first score of a table is not on the screen: 600: 12.5",
        "text that its picture cuts off: cut off of a picture",
    ]


@pytest.mark.slow
def test_the_same_scores_give_the_same_bytes(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores")
    assert report.report(params, Known(known(params, tmp_path))) == report.report(params, Known(known(params, tmp_path)))


def test_a_pixel_of_the_mosaic_is_the_weight_of_its_layer_head_query_and_key():
    weights = np.random.default_rng(1).random((2, 3, 4, 5))
    image = mosaic(weights)
    assert image.shape == (2 * 4 + GAP, 3 * 5 + 2 * GAP)
    for n, h, q, k in [(0, 0, 0, 0), (1, 2, 3, 4), (0, 1, 2, 3), (1, 0, 3, 1)]:
        assert image[n * (4 + GAP) + q, h * (5 + GAP) + k] == weights[n, h, q, k]


TABLE = Table(
    "t",
    "Title",
    [Column("name | x"), Column("a_b", "score"), Column("count", "count"), Column("flops", "power"), Column("O")],
    [
        ["50% & #1_{x}|y", evidence.Score(27.3456, 26.0, 28.5, "s"), 1234567, 3.28e18, "O(log_k n)"],
        ["none", None, None, None, None],
    ],
)


def test_csv_holds_whole_values_and_empty_fields():
    head, first, second = csv.reader(io.StringIO(comma_separated(TABLE)))
    assert head == ["name | x", "a_b", "a_b low", "a_b high", "count", "flops", "O"]
    assert first == ["50% & #1_{x}|y", "27.3456", "26.0", "28.5", "1234567", "3.28e+18", "O(log_k n)"]
    assert second == ["none", "", "", "", "", "", ""]


def test_markdown_has_as_many_cells_in_every_row():
    lines = [line for line in markdown(TABLE).split("\n") if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {len(TABLE.columns) + 2}
    assert "27.35 (26.00–28.50) | 1,234,567 | 3.3e18" in lines[2] and lines[3].count("–") == 4


def test_latex_escapes_what_is_special_and_keeps_its_columns():
    rows = [line for line in latex(TABLE).split("\n") if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(TABLE.columns) - 1}
    assert rows[1].startswith(
        r"50\% \& \#1\_\{x\}|y & 27.35 (26.00--28.50) & 1,234,567 & $3.3\cdot10^{18}$ & $O(\log_k n)$"
    )


def test_times_are_in_their_two_largest_units():
    times = {0: "0 s", 59.6: "1 min 0 s", 65: "1 min 5 s", 43200: "12 h 0 min", 302400: "3 d 12 h"}
    assert {seconds: duration(seconds) for seconds in times} == times


def test_publishing_removes_what_an_earlier_report_wrote(tmp_path):
    out = tmp_path / "reports"
    report.publish({"index.html": "0"}, out)  # without figures
    report.publish({"index.html": "1", "table3-old.md": "1", "figures/old.svg": "1"}, out)
    (out / ".gitignore").write_text("mine")
    (out / "index.html").unlink()  # as in a clone
    (out / "runs.csv").write_text("1")
    report.publish({"index.html": "2", "figures/new.svg": "2"}, out)
    left = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert left == [".gitignore", "figures/new.svg", "index.html"]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UserError, match="no earlier report"):
        report.publish({"index.html": "1"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.slow
def test_the_stage_writes_the_report(project, tmp_path, monkeypatch, capsys):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores", 61.5)
    studies = params.pop("studies")
    monkeypatch.setattr(report, "load", lambda: params)
    write_json(tmp_path / "studies.yaml", studies)
    paths = {name: tmp_path / name for name in ("scores", "times", "sets", "results")}
    report.main(argparse.Namespace(**paths, studies=tmp_path / "studies.yaml", out=tmp_path / "reports"))
    assert "1 run, 1 with scores" in capsys.readouterr().out
    written = {path.name for path in (tmp_path / "reports").iterdir()}
    tables = (
        "summary",
        "study-demo",
        "table1",
        "table2",
        "table3",
        "table3-differences",
        "operations",
        "toolkits",
        "bleu-matrix",
        "runs",
        "scores",
    )
    assert written == {"index.html", "README.md", "figures", "table1.tex", "table2.tex", "table3.tex"} | {
        f"{table}.csv" for table in tables
    }
    assert "61.50 (60.50–63.00)" in (tmp_path / "reports" / "README.md").read_text()


# The differences of Table 3


def test_our_differences_stand_in_the_rows_that_change_the_same_settings(project, tmp_path):
    params = project("demo-table3")
    for bleu, run in zip((50, 45, 51, 49, 40, 52, 47, 48), params["runs"]):
        write_scores(params, run, tmp_path / "scores", bleu)
    compared = comparison(studies(params, known(params, tmp_path)))
    assert [delta.row.group for delta in compared.deltas] == list("AAAABBCCCCCCCDDDDE")
    assert [round(delta.bleu, 1) for delta in compared.deltas[:6]] == [-0.9, -0.3, 0, -0.4, -0.7, -0.4]
    assert round(compared.deltas[6].perplexity, 1) == 24.2  # 6.11 against 4.92
    ours = {delta.change: own for delta in compared.deltas for own in delta.ours}
    assert {change: (own.run.name, own.bleu.score) for change, own in ours.items()} == {
        "h 8 → 1": ("demo-tiny-h1", -5),  # ends at the same number of heads
        "d_k 64 → 16": ("demo-tiny-dk8", 1),  # by the same factor
        "N 6 → 4": ("demo-tiny-N1", -1),  # by the nearest factor
        "d_ff 2048 → 1024": ("demo-tiny-dff128", -10),
        "P_drop 0.1 → 0.0": ("demo-tiny-dropout0", 2),
        "eps_ls 0.1 → 0.0": ("demo-tiny-smoothing0", -3),
        "positions learned": ("demo-tiny-learned", -2),
    }
    assert ours["h 8 → 1"].bleu.low is None and ours["h 8 → 1"].change == "h 4 → 1"
    assert "interval" not in deltas.note(compared), "there is no translation to resample"
    found = headlines(params, studies(params, known(params, tmp_path)), compared)
    (card,) = [each for each in found if each.study == "demo-table3"]
    assert (card.figure, card.progress, card.origin) == ("52.0", "8 of 8", "selected"), "no claim is decided"
    assert "the same data" not in card.note
    first, *runs = known(params, tmp_path)
    other = {"training": first.parts["training"] | {"data_sum": "d1" * 32}}
    (mixed, *_) = studies(params, [dataclasses.replace(first, parts=first.parts | other), *runs])
    assert "Not all runs were trained on the same data" in mixed.caveat()


REFERENCES = [f"Der Mann sieht {number} alte Hunde im Garten." for number in range(60)]


def worsened(every: int) -> list[str]:
    """The references with another word in each sentence whose number is a multiple of `every`."""
    return [line.replace("Hunde", "Katzen") if number % every == 0 else line for number, line in enumerate(REFERENCES)]


CLAIMED = {  # the settings, and the worsened sentences in the translation of the dev set by the last checkpoint
    "base": ({}, 5),
    "heads": ({"h": 1, "d_k": 128, "d_v": 128}, 2),
    "wide": ({"d_ff": 2048}, 2),
    "deep": ({"N": 4}, 30),
    "shallow": ({"N": 1}, 2),
    "dropout": ({"dropout": 0.0}, 5),
    "learned": ({"positions": "learned"}, 6),
    "unscaled": ({"attention": "dot_product"}, 2),
    "fast": ({"schedule": "no_warmup"}, 1),
    "pre-fast": ({"norm": "pre", "schedule": "no_warmup"}, 2),
    "pre": ({"norm": "pre"}, 6),
}
ONE_SEED = ("shallow",)


@pytest.fixture
def claimed(project, tmp_path):
    """Runs that test the claims, with translations of a dev set: `NAME` and, but for ONE_SEED, `NAME-2` and `NAME-3`."""
    runs = {}
    for name, (settings, _) in CLAIMED.items():
        entry = {"corpus": "demo", "model": "tiny", **settings}
        runs |= {name: entry} | ({} if name in ONE_SEED else {f"{name}-{seed}": {**entry, "seed": seed} for seed in (2, 3)})
    selected = project(runs)
    write_set(tmp_path, "dev", REFERENCES)
    for run in runs:
        every = CLAIMED[run.rstrip("-23")][1]
        write_scores(selected, run, tmp_path / "scores", 40 + every)
        lines = worsened(every)
        for number in range(7, 7 + 8 * int(run[-1]) if run[-1] in "23" else 0, 8):  # the seeds differ in a few sentences
            lines[number] = lines[number].replace("Garten", "Haus")
        write_lines(tmp_path / f"scores/{run}/translations/dev.last.txt", lines)
    return selected


def test_bpe_dropout_is_compared_although_it_is_a_setting_of_the_corpus(project, tmp_path):
    base = {"corpus": "multi30k", "model": "claims"}
    runs = {  # the first run has no setting of its own either, but is not the base
        "sampled": {**base, "corpus": "multi30k-sampled"},
        "base": base,
        "second": {**base, "seed": 2},
        "heads": {**base, "h": 1, "d_k": 128, "d_v": 128},
        "sampled-heads": {**base, "corpus": "multi30k-sampled", "h": 1, "d_k": 128, "d_v": 128},
        "sampled-half": {**base, "corpus": "half-sampled"},
    }
    params = project(runs)
    half = params["corpora"]["multi30k-half"]
    params["corpora"]["half-sampled"] = half | {"vocabulary": half["vocabulary"] | {"bpe_dropout": 0.1}}
    for run, bleu in zip(runs, (43, 40, 40, 39, 38, 37)):
        write_scores(params, run, tmp_path / "scores", bleu)
    (study,) = studies(params, known(params, tmp_path))
    assert set(study.varied()) == {"h", "d_k", "d_v", "bpe_dropout", "seed"}
    compared = comparison([study])
    assert {own.run.run for own in compared.ours} == {"sampled", "heads"}, "the text of the others differs, too"
    (row,) = [row for row in rows_of(claims.table(compared)) if row["run"] == "sampled"]
    assert (row["source"], row["our change"]) == ("Provilkov et al. 2020", "bpe_dropout 0.0 → 0.1")
    assert row["difference, BLEU"].score == pytest.approx(3)


def test_a_claim_is_decided_by_three_seeds_and_the_corrected_p(claimed, tmp_path):
    found = studies(claimed, known(claimed, tmp_path))
    compared = comparison(found, Bootstrap(tmp_path / "sets", scoring(claimed)))
    assert compared.seeds.seeds == 3 and compared.spread.freedom == 2 * (len(CLAIMED) - 1)
    table = rows_of(claims.table(compared))
    (worse,) = [row[1] for row in claims.table(compared).shown() if row[0].startswith("a single head")]
    assert re.fullmatch(r"-\d+\.\d\d \(-\d+\.\d\d to -\d+\.\d\d\)", worse), "a dash would touch the minus signs"
    assert {row["run"]: (row["source"], row["found"]) for row in table} == {
        "heads": ("Table 3, A", "holds"),
        "wide": ("Table 3, C", "contradicted"),
        "deep": ("Table 3, C", "differs"),
        "shallow": ("Table 3, C", "one seed"),
        "dropout": ("Table 3, D", "not decided"),
        "learned": ("Table 3, E", "not decided"),
        "unscaled": ("3.2.1", "holds"),
        "fast": ("Xiong et al. 2020", "holds"),
        "pre-fast": ("Xiong et al. 2020", "differs"),
    }  # nothing is claimed about pre-norm alone
    tested = {row["run"]: row["p, Holm"] for row in table}
    assert tested["shallow"] is None and tested["heads"] < 0.05 < tested["dropout"]
    ours = {own.run.name: own for own in compared.ours}
    assert ours["shallow"].bleu.low is None and tested["heads"] >= ours["heads"].p
    assert "pre-fast is compared with pre." in claims.table(compared).notes[0]
    changes = {row["run"]: row["our change"] for row in table}
    assert changes["pre-fast"] == changes["fast"] == "schedule warmup → no_warmup, 3 seeds"
    first, *_ = headlines(claimed, found, compared)
    assert first.figure == "1 of 6" and first.note.startswith("N 2 → 1: one seed. N 2 → 4, 3 seeds: differs. ")


def test_a_failed_training_decides_only_claims_about_training(claimed, tmp_path):
    worse = [line.replace("Mann", "Kind").replace("Garten", "Haus") for line in worsened(1)]
    for run in ("wide", *(f"unscaled{seed}" for seed in ("", "-2", "-3"))):
        write_lines(tmp_path / f"scores/{run}/translations/dev.last.txt", worse)
        path = tmp_path / f"scores/{run}/score.json"
        score = read_json(path)
        score["dev"]["last"] = metrics(5.0)
        write_json(path, score)
    found = studies(claimed, known(claimed, tmp_path))
    compared = comparison(found, Bootstrap(tmp_path / "sets", scoring(claimed)))
    assert compared.spread.freedom == 2 * (len(CLAIMED) - 3), "the failed trainings tell nothing about the others"
    rows = {row["run"]: (row["found"], row["p, Holm"] is None) for row in rows_of(claims.table(compared))}
    assert (rows["wide"], rows["unscaled"]) == (("the training failed", True), ("holds", False))
    assert headlines(claimed, found, compared)[0].figure == "1 of 5", "wide is no longer counted"
    without = [run for run in known(claimed, tmp_path) if not run.name.startswith("pre") or "fast" in run.name]
    compared = comparison(studies(claimed, without), Bootstrap(tmp_path / "sets", scoring(claimed)))
    assert "pre-fast" not in [row["run"] for row in rows_of(claims.table(compared))]


@pytest.mark.parametrize(
    ("setting", "old", "new", "sign"),
    [
        ("h", 8, 1, -1),
        ("h", 8, 32, -1),
        ("h", 8, 16, None),  # as good as the base, in the paper
        ("d_k", 64, 16, -1),
        ("d_k", 64, 128, None),
        ("h", 1, 8, 1),
        ("h", 8, 4, None),
        ("N", 6, 8, 0),  # -0.3
        ("N", 6, 2, -1),
        ("dropout", 0.1, 0.0, -1),
        ("dropout", 0.0, 0.1, 1),
        ("dropout", 0.1, 0.3, None),
        ("label_smoothing", 0.0, 0.1, 1),
        ("attention", "scaled_dot_product", "dot_product", -1),
        ("attention", "scaled_dot_product", "additive", None),
        ("positions", "sinusoidal", "learned", 0),
        ("schedule", "warmup", "no_warmup", -1),
    ],
)
def test_a_claim_predicts_only_the_changes_that_it_is_about(setting, old, new, sign):
    before, after = {**BASE, setting: old}, {**BASE, setting: new}
    claim = claims.claim_about(after, before)
    assert claim.setting == setting and claim.bleu(new, old) == sign


def test_a_change_stands_only_beside_a_row_with_the_same_direction():
    rows = [row for row in TABLE3 if row.group in tuple("ABCDE")]

    def row_of(setting: str, old: float, new: float, **others: int) -> object:
        number = deltas.nearest({**BASE, setting: new, **others}, {**BASE, setting: old}, rows)
        return None if number is None else rows[number].settings[setting]

    assert row_of("d_k", 128, 64) == 32 and row_of("d_k", 32, 64) is None
    assert row_of("dropout", 0.15, 0.3) == 0.2 and row_of("dropout", 0.15, 0.1) is None
    assert row_of("dropout", 0.3, 0.2) is None and row_of("dropout", 0.3, 0.0) == 0.0
    heads = {(4, 16): 32, (4, 8): 16, (2, 1): 1, (4, 1): 1, (16, 2): 1}  # d_k and d_v change with them
    assert {change: row_of("h", *change, d_k=8, d_v=8) for change in heads} == heads


def test_scores_are_those_of_resampled_sentences(claimed, tmp_path):
    runs, settings = {run.name: run for run in known(claimed, tmp_path)}, ScoringConfig(bootstrap=40, seed=7)
    bootstrap, metric = Bootstrap(tmp_path / "sets", settings), BLEU(tokenize="none", smooth_method="none", force=True)
    tokenised = [[line[:-1] + " ." for line in lines] for lines in (worsened(2), REFERENCES)]
    drawn = [range(60), *np.random.default_rng(7).choice(60, size=(40, 60), replace=True)]
    scores = [
        metric.corpus_score(
            *(wrap([lines[number] for number in numbers]) for wrap, lines in zip((list, lambda x: [x]), tokenised))
        )
        for numbers in drawn
    ]
    found = bootstrap.scores("bleu-published", [runs["heads"], runs["heads-2"]])
    assert found.scores.shape == (2, 41)
    assert found.scores[0] == pytest.approx([each.score for each in scores])
    for run in ("base", "heads"):
        recorded(claimed, run, tmp_path)
    kept = {run.run: run for run in evidence.records(claimed, tmp_path / "results")}
    shutil.rmtree(tmp_path / "sets")
    of_records = Bootstrap(tmp_path / "sets", settings)
    assert (of_records.scores("bleu-published", [kept["heads"]]).scores[0] == found.scores[0]).all()
    assert of_records.scores("bleu-published", [kept["heads"], runs["base-2"]]) is None, (
        "the second has neither a record nor a dev set"
    )


def test_a_change_from_zero_has_no_factor_and_is_in_no_row(project, tmp_path):
    params = project(
        {
            "base": {"corpus": "demo", "model": "tiny", "dropout": 0.0},
            "more": {"corpus": "demo", "model": "tiny", "dropout": 0.3},
        }
    )
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    compared = comparison(studies(params, known(params, tmp_path)))
    assert not any(delta.ours for delta in compared.deltas)


def test_the_paper_s_corpus_is_compared_before_a_study_with_more_rows(project, params, tmp_path):
    runs = {
        **params["studies"]["demo-table3"]["runs"],
        "wmt14-en-de-base": {"corpus": "wmt14-en-de", "model": "base"},
        "wmt14-en-de-N2": {"corpus": "wmt14-en-de", "model": "base", "N": 2},
    }
    selected = project(runs)
    for run in runs:
        write_scores(selected, run, tmp_path / "scores")
    compared = comparison(studies(selected, known(selected, tmp_path)))
    assert compared.study.corpus == "wmt14-en-de"
    assert [own.run.name for own in compared.ours] == ["wmt14-en-de-N2"]


def test_seeds_are_compared_by_their_mean_and_before_a_study_with_more_rows(project, params, tmp_path):
    claims_of = params["studies"]["multi30k-claims"]["runs"]
    names = [f"multi30k-claims-{of}" for of in ("seed1", "seed2", "h1", "weight-decay", "weight-decay-seed2")]
    runs = {**params["studies"]["demo-table3"]["runs"], **{name: claims_of[name] for name in names}}
    selected = project(runs)
    for run, bleu in zip(reversed(runs), (35, 34, 20, 33, 30, *(10,) * 8)):
        write_scores(selected, run, tmp_path / "scores", bleu)
    for run, perplexity in zip(names, (4.0, 6.0, 6.5)):
        path = tmp_path / f"scores/{run}/translations/translations.json"
        last = {"last": {"perplexity": perplexity}, "average": {"perplexity": 1.0}}
        write_json(path, read_json(path) | {"dev": last})
    compared = comparison(studies(selected, known(selected, tmp_path)))
    heads, decay = compared.ours
    assert heads.perplexity == pytest.approx(30.0), "per cent of 5.0, the mean of the base's seeds, last checkpoint"
    assert (heads.run.name, heads.bleu.score) == (names[2], -11.5), "against the mean of both seeds"
    assert (decay.run.name, decay.bleu.score) == (names[3], 3.0) and decay.change.endswith(", 2 seeds")
    assert (compared.seeds.score, compared.seeds.low, compared.seeds.high) == (33.5, 32, 35)


def test_headlines_say_what_is_not_done(project, tmp_path):
    params = project("demo")
    write_scores(params, "demo-tiny", tmp_path / "scores", 61.5)
    found = studies(params, known(params, tmp_path))
    first, *others = headlines(params, found, comparison(found))
    assert (first.study, first.figure, first.progress) == ("demo", "61.5", "1 of 1") and "60.5–63.0" in first.note
    assert {each.study: each.figure for each in others}["paper"] == "0 of 22"
    # table2 and table3 are parts of `paper`, and multi30k is a part of multi30k-back-translation.
    progress = {each.study: each.progress for each in others}
    assert progress == {
        "paper": "0 of 22",
        "demo-table3": "1 of 8",
        "demo-warmup": "0 of 4",
        "multi30k-attention": "0 of 6",
        "multi30k-records": "0 of 9",
        "multi30k-batches": "0 of 6",
        "multi30k-decoding": "0 of 3",
        "multi30k-back-translation": "0 of 5",
        "multi30k-published": "0 of 3",
        "multi30k-ours": "0 of 4",
        "multi30k-claims": f"0 of {len(params['studies']['multi30k-claims']['runs'])}",
        "multi30k-depth": f"0 of {len(params['studies']['multi30k-depth']['runs'])}",
        "multi30k-search": "0 of 3",
        "europarl": "0 of 1",
        "wmt14-clean": "0 of 2",
    }


def test_the_highest_result_of_a_study_is_that_of_the_highest_mean(project, tmp_path):
    entry = {"corpus": "demo", "model": "tiny"}
    entries = {f"a-seed{seed}": {**entry, "seed": seed} for seed in (1, 2, 3)}
    params = project(entries | {f"b-seed{seed}": {**entry, "seed": seed, "h": 2} for seed in (1, 2, 3)})
    for run, bleu in zip(params["runs"], (40, 30, 30, 39, 39, 39), strict=True):
        write_scores(params, run, tmp_path / "scores", bleu)
    found = studies(params, known(params, tmp_path))
    first, *_ = headlines(params, found, comparison(found))
    assert first.figure == "39.0" and first.note.startswith("Highest of 2: b, mean of 3 seeds (39.00 to 39.00)")


@pytest.mark.parametrize("place", [0, 3])
def test_seeds_of_one_precision_stay_together_beside_a_seed_in_another(project, tmp_path, place):
    entry = {"corpus": "demo", "model": "tiny"}
    entries = [(f"seed{seed}", {**entry, "seed": seed, "precision": "float32"}) for seed in (1, 2, 3)]
    entries.insert(place, ("halved", {**entry, "seed": 1, "precision": "bfloat16"}))
    params = project(dict(entries))
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    found = [[run.run for run in group] for group in evidence.alike(known(params, tmp_path))]
    assert sorted(found) == [["halved"], ["seed1", "seed2", "seed3"]]


def test_the_caption_of_a_loss_names_what_the_training_minimises(project, tmp_path):
    entry = {"corpus": "demo", "model": "tiny"}
    params = project({"plain": {**entry, "label_smoothing": 0.0}, "both": {**entry, "r_drop": 5.0}})
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    with plots.style():
        captions = [plots.loss([run]).caption for run in known(params, tmp_path)]
    assert captions == [
        "plain: loss on the training set and on the dev set.",
        "both: loss on the training set (with label smoothing and the divergence of R-Drop) and on the dev set.",
    ]


def test_a_table_of_the_paper_is_folded_until_a_run_fills_a_row(project, tmp_path):
    params = project({"de": {"corpus": "wmt14-en-de", "model": "base"}})
    empty = page(report.content_of(params, Known(known(params, tmp_path)), figures=False))
    write_scores(params, "de", tmp_path / "scores")
    filled = page(report.content_of(params, Known(known(params, tmp_path)), figures=False))
    for name in ("table2", "table3"):
        assert f'<details id="{name}">' in empty and f'<h3 id="{name}">' in filled
    assert "EN-DE BLEU, ours" not in Page(empty).text.replace("\N{NON-BREAKING HYPHEN}", "-")
    assert "EN-DE BLEU, ours" in Page(filled).text.replace("\N{NON-BREAKING HYPHEN}", "-")


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0.1, 0.9], [0.98, 0.99, 1.0, 0.5], [0.0, 0.01, 0.02, 0.021], []])
def test_names_at_the_ends_of_lines_lie_apart_and_in_order(places):
    moved = spread(places, 0.06)
    order = sorted(range(len(places)), key=places.__getitem__)
    gaps = [moved[after] - moved[before] for before, after in pairwise(order)]
    assert all(gap > 0.0599 for gap in gaps) and all(place <= 1 for place in moved)
    assert spread([0.1, 0.9], 0.06) == [0.1, 0.9]


def test_a_colour_is_a_factor(project, tmp_path):
    params = project("demo-warmup")
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    (study,) = studies(params, known(params, tmp_path))
    (post, _), (no_warmup, _), (pre, _), (both, _) = styles = looks(study, study.runs)
    assert post == no_warmup != pre == both  # colours show the place of the normalisation, dashes the schedule
    assert styles[0][1] == styles[2][1] != styles[1][1] == styles[3][1]
    assert short([run.run for run in study.runs]) == ["base", "no-warmup", "pre", "pre-no-warmup"]


def test_seeds_have_one_label_and_one_colour(project, tmp_path):
    base, one_head = {"corpus": "demo", "model": "tiny"}, {"corpus": "demo", "model": "tiny", "h": 1}
    params = project(
        {"a-b": base, "a-b-seed2": {**base, "seed": 2}, "a-b-h-s1": one_head, "a-b-h-s2": {**one_head, "seed": 2}}
    )
    for run in params["runs"]:
        write_scores(params, run, tmp_path / "scores")
    (study,) = studies(params, known(params, tmp_path))
    with plots.style():
        drawn = plots.dev_losses(study).svg
    labels = [label for label in re.findall(r">([^<>]+)</text>", drawn) if "seeds" in label]
    assert sorted(labels) == ["base, 2 seeds", "h, 2 seeds"]
    assert all(name not in drawn for name in ("seed2", "s1"))
    assert [drawn.count(f"stroke: {colour}; stroke-width: 1.6") for colour in COLOURS[:3]] == [2, 2, 0]


@pytest.mark.parametrize("width, wide", [(5.2, False), (8.4, True)])
def test_a_picture_of_two_panels_is_as_wide_as_the_page(width, wide):
    assert plots.Figure("name", "search", plots.svg(plots.axes(width)[0]), "caption", "alt").wide == wide


# Two runs side by side


def write_set(folder: Path, name: str, references: list[str], corpus: str = "demo") -> None:
    path = folder / f"sets/{corpus}-{name}"
    path.mkdir(parents=True)
    write_json(path / "set.json", {"corpus": corpus, "languages": ["en", "de"]})
    sources = [f"source {number}" for number in range(len(references))]
    for name, lines in {"raw.en": sources, "raw.de": references}.items():
        (path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_test_set(folder: Path, translations: dict[str, list[str]], references: list[str]) -> None:
    """Write the demonstration's test set and the translations of runs."""
    write_set(folder, "test", references)
    for run, lines in translations.items():
        (folder / f"scores/{run}/translations/test.average.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_runs_are_compared_with_the_base_of_their_study(project, tmp_path):
    params = project("demo-warmup")
    for bleu, run in zip((30, 20, 40, 10), params["runs"]):
        write_scores(params, run, tmp_path / "scores", bleu)
    references = [f"Der Mann sieht {number} alte Hunde im Garten." for number in range(40)]
    base = [line.replace("alte Hunde", "Katzen") if number % 2 else line for number, line in enumerate(references)]
    better = [*references[:-2], "Der <b>Mann", references[-1]]  # one sentence is worse than the base's
    translations = {"demo-deep": base, "demo-deep-pre": better, "demo-deep-no-warmup": base}
    write_test_set(tmp_path, translations, references)  # one of the four runs has no translation
    runs = known(params, tmp_path)
    found = pairs.pairs(params, studies(params, runs), tmp_path / "sets")
    assert [(pair.run, pair.base) for pair in found] == [
        (run, "demo-deep") for run in ("demo-deep-pre", "demo-deep-no-warmup")
    ]
    lent = dataclasses.replace(studies(params, runs)[0], name="demo-warmup-recorded", recorded=True)
    assert pairs.pairs(params, [*studies(params, runs), lent], tmp_path / "sets") == found, "each pair is shown once"
    first, same = found
    bleu = [sacrebleu.corpus_bleu(translations[run], [references]).score for run in ("demo-deep", "demo-deep-pre")]
    assert first.difference.score == pytest.approx(bleu[1] - bleu[0]) and first.p is None, "one seed"
    assert (same.difference.score, same.difference.low, same.sentences) == (0, None, ())
    *up, down = first.sentences
    assert len(up) == 3 and all(each.difference > 0 and each.of_run == each.reference != each.of_base for each in up)
    assert (down.source, down.of_run) == ("source 38", "Der <b>Mann") and down.difference < 0
    files = report.report(params, Known(runs, sets=tmp_path / "sets"))
    assert "demo-deep-pre," in files["paired.csv"] and files == report.report(params, Known(runs, sets=tmp_path / "sets"))
    text = Page(files["index.html"]).text
    assert "Der <b>Mann" in text and "demo-deep-pre against demo-deep: the sentences that differ most" in text
    assert pairs.pairs(params, studies(params, runs), tmp_path / "nowhere") == []
    assert "paired.csv" not in report.report(params, Known(runs))


# Decodings


def write_decoding(folder: Path, name: str, bleu: float, **settings) -> None:
    made = {"model": "demo-tiny/average", "set": "demo-test", "settings": {"averaging": {}, "decoding": settings}}
    write_json(folder / "decodings" / name / "decoding.json", made)
    write_json(folder / "decodings" / name / "score.json", {"set": metrics(bleu)})


def test_decodings_stand_side_by_side_with_the_settings_in_which_they_differ(params, tmp_path):
    """The files are those of an earlier version, which wrote neither the decoder's name nor sentences.json."""
    entries = {"beam-1": {"beam": 1}, "beam-4": {"beam": 4}, "not-made": {"beam": 8}}
    for name, bleu in (("beam-1", 30.0), ("beam-4", 31.5)):
        write_decoding(tmp_path, name, bleu, alpha=0.6, threads=2, **entries[name])
    made = decodings.selected({**params, "decodings": entries}, tmp_path, tmp_path / "times", tmp_path / "sets")
    table = decodings.table(params, made)
    labels = [column.label for column in table.columns]
    described = ["decoding", "model", "set", "decoder", "settings"]
    assert [[row[labels.index(label)] for label in described] for row in table.rows] == [
        ["beam-1", "demo-tiny/average", "demo-test", "beam", "beam 1"],
        ["beam-4", "demo-tiny/average", "demo-test", "beam", ""],
    ]
    assert labels[1] == "sacreBLEU", "on a narrow screen, the score follows the name"
    assert table.rows[1][labels.index("sacreBLEU")].score == 31.5 and table.rows[0][-1] is None
    files = report.report({**params, "runs": {}}, Known([], decoded=made))
    assert "31.5," in files["decoding.csv"] and "Decodings of demo-test by demo-tiny/average" in files["index.html"]
    assert "decoding.csv" not in report.report({**params, "runs": {}}, Known([]))


def test_on_the_page_decodings_are_in_a_table_for_each_model_and_set_best_first(params, tmp_path):
    entries = {"worse": {"beam": 1}, "better": {"beam": 4}, "oracle": {"decoder": "mcts", "objective": "oracle_bleu"}}
    for (name, settings), bleu in zip(entries.items(), (30.0, 31.5, 60.0), strict=True):
        write_decoding(tmp_path, name, bleu, precision="float32", **settings)
    made = decodings.selected({**params, "decodings": entries}, tmp_path, tmp_path / "times", tmp_path / "sets")
    other = dataclasses.replace(made[0], name="elsewhere", recorded=True, set="other")
    first, second = decodings.tables(params, [*made, other])
    assert [row[0] for row in first.rows] == ["oracle", "better", "worse"]
    assert [row[0] for row in second.rows] == ["elsewhere (recorded)"]
    labels = [column.label for column in first.columns]
    assert not {"model", "set", "source log-probability"} & set(labels), "constant or empty"
    decoder = labels.index("decoder")
    assert [row[decoder] for row in first.rows] == ["mcts, uses the references", "beam", "beam"]
    text = report.report({**params, "runs": {}}, Known([], decoded=[*made, other]))["index.html"]
    assert text.index("worse") < text.index("Decodings, from results/decodings/") < text.index("elsewhere")


def test_each_change_of_table_3_stands_beside_ours(params, tmp_path):
    table = deltas.table(comparison(studies(params, known(params, tmp_path))))
    assert len(table.rows) >= 18 and len({row[0] for row in table.rows}) == 18
    heads = next(row for row in table.rows if row[0] == "A: h 8 → 1")
    assert heads[2] == pytest.approx(24.9 - 25.8) and heads[4] == pytest.approx(100 * (5.29 / 4.92 - 1))


def test_a_set_whose_references_are_empty_has_no_length_ratio(params, tmp_path):
    write_test_set(tmp_path, {}, [""] * 3)
    settings = {key: params["base"]["decoding"][key] for key in ("beam", "penalty", "alpha", "extra_length")}
    write_decoding(tmp_path, "one", 0.0, decoder="beam", regulariser=0.0, **settings)
    write_lines(tmp_path / "decodings/one/translation.txt", ["Haus"] * 3)
    write_json(tmp_path / "decodings/one/sentences.json", [{"log_prob": -1.0, "finished": True}] * 3)
    made = tmp_path / "decodings/one/decoding.json"
    write_json(made, read_json(made) | {"calls": 9})
    facts = decoder_facts.facts({**params, "decodings": {"one": {}}}, tmp_path, tmp_path / "sets")
    assert facts["one"].length_ratio is None and facts["one"].log_prob == -1.0


def test_the_facts_of_decodings_are_those_of_their_translations(params, tmp_path):
    """Exact search finds a more probable translation of every third sentence, which is empty.

    One of two exact searches finishes the first two thirds, the other one the last third. The first source is empty.
    """
    references = [f"der Mann sieht {n} Hunde im Haus" for n in range(30)]
    write_test_set(tmp_path, {}, references)
    sources = tmp_path / "sets/demo-test/raw.en"
    sources.write_text(sources.read_text().replace("source 0\n", "\n"))
    lines = {
        "paper": references,
        "same": references,
        "exact": (empty := ["" if n % 3 == 0 else line for n, line in enumerate(references)]),
        "longer": empty,
    }
    for name, translated in lines.items():
        better = name in ("exact", "longer")
        own = {"decoder": "exact", "max_steps": 7} if better else {"decoder": "beam", "regulariser": 0.0}
        settings = {key: params["base"]["decoding"][key] for key in ("beam", "penalty", "alpha", "extra_length")} | own
        write_decoding(tmp_path, name, 30.0, **settings)
        folder = tmp_path / "decodings" / name
        write_json(folder / "decoding.json", read_json(folder / "decoding.json") | {"calls": 90})
        write_lines(folder / "translation.txt", translated)
        near = -2.0 + 1e-4 * better  # a difference as by rounding is no search error
        found = [
            {"log_prob": -1.0 if better and n % 3 == 0 else near, "finished": not better or (n < 20) == (name == "exact")}
            for n in range(30)
        ]
        write_json(folder / "sentences.json", found)
    write_json(tmp_path / "decodings/partly/sentences.json", found)  # a file of a decoding that was killed
    of_all = {**params, "decodings": {**lines, "partly": {}}}
    found = decoder_facts.facts(of_all, tmp_path, tmp_path / "sets")
    assert set(found) == set(lines)
    paper, same, exact = (found[name] for name in ("paper", "same", "exact"))
    assert paper == same and paper.p is None and exact.p < 0.05
    assert paper.search_errors == pytest.approx(9 / 29, abs=1e-4) and exact.search_errors is None
    assert (paper.empty, exact.empty, paper.unfinished, exact.unfinished) == (0, 10, 0, 10)
    assert exact.log_prob == pytest.approx(-5 / 3, abs=1e-4) and exact.calls == 3.0
    bleu = sacrebleu.corpus_bleu(lines["exact"], [references])
    assert exact.length_ratio == pytest.approx(bleu.sys_len / bleu.ref_len, abs=1e-4)
    content = {"name": "exact", "model": "m/average", "set": "demo-test", "facts": dataclasses.asdict(exact)}
    for part in ("decoding", "score"):
        content[part] = read_json(tmp_path / "decodings/exact" / f"{part}.json")
    write_json(tmp_path / "results/decodings/exact.json", content)
    (recorded,) = decodings.records(tmp_path / "results")
    assert recorded.facts == exact
    table = decodings.table(params, [recorded])
    settings = [column.label for column in table.columns].index("settings")
    assert [row[settings] for row in table.rows] == ["max_steps 7"]


def test_a_recorded_decoding_names_its_model_and_its_set(params, tmp_path):
    write_decoding(tmp_path / "scores", "beam-1", 30.0, beam=1)
    output = tmp_path / "scores/decodings/beam-1/decoding.json"
    with pytest.raises(UserError, match=r"without .*times/decodings/beam-1.json: .* on the machine that built it"):
        record.decoding_record("beam-1", tmp_path / "scores", tmp_path / "times", {})
    write_times(tmp_path / "times/decodings/beam-1.json", output, {"seconds": 2.0})
    content = record.decoding_record("beam-1", tmp_path / "scores", tmp_path / "times", {})
    write_json(tmp_path / "results/decodings/beam-1.json", content)
    (made,) = decodings.records(tmp_path / "results")
    assert (made.name, made.model, made.set, made.recorded) == ("beam-1", "demo-tiny/average", "demo-test", True)
    write_json(tmp_path / "results/decodings/other.json", content)
    with pytest.raises(UserError, match="a record of the decoding 'other' is expected"):
        decodings.records(tmp_path / "results")
