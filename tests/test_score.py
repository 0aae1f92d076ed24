"""The score stage and the comparison of two systems, on the thirty pairs of tests/data/compound-bleu."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from pipeline.commands import evaluate
from pipeline.orchestrating.results import Result
from pipeline.reporting import tables
from pipeline.score import score
from pipeline.scoring import bleu
from pipeline.scoring.of_sets import aligned, places
from pipeline.settings import score_files
from pipeline.settings.params import load
from pipeline.settings.scoring import ScoringConfig
from pipeline.text.evaluation import EvaluationSet
from pipeline.text.evaluation import read_lines as lines
from tests.support.in_process import command
from tests.support.packed import write_evaluation_set
from tests.support.projects import HYPOTHESES, REFERENCES, ROOT
from tests.support.refusals import refused
from tests.support.small_run import write_params_yaml
from transformer.files import write_lines

SOURCES = [f"source {number}" for number in range(30)]
SETTINGS = ScoringConfig(bootstrap=20, seed=1)


def write(path: Path, segments: list[str]) -> Path:
    write_lines(path, segments)
    return path


def project(folder: Path, translation: list[str] = HYPOTHESES, run: str = "one") -> tuple[Path, dict]:
    """Write translations as decode does, and evaluation sets as normalise does."""
    sets, translations = {}, folder / "scores" / run / "translations"
    for name in ("dev", "test"):
        place = folder / f"data/sets/demo-{name}"
        write_evaluation_set(place, raw=(SOURCES, REFERENCES))
        sets[name] = EvaluationSet.open(place)
    for name in ("dev.last", "dev.average", "test.average"):
        write(translations / f"{name}.txt", translation)
    perplexities = {"dev": {"last": {"perplexity": 4.5}, "average": {"perplexity": 4.25}}}
    (translations / "translations.json").write_text(json.dumps(perplexities))
    records = [{"step": 1, "loss": 5.0}, {"step": 2, "loss": 4.5}, {"step": 2, "dev_loss": 4.75}]
    write_lines(translations.parent / "training.jsonl", map(json.dumps, records))
    return translations, sets


def params_file(folder: Path, **changed) -> None:
    params = load(ROOT / "params.yaml")
    params["runs"] = {name: {"corpus": "demo", "model": "tiny"} for name in ("one", "two", "untrained")}
    params["runs"]["french"] = {"corpus": "europarl-en-fr", "model": "tiny"}
    params["corpora_in_use"] = ["demo", "europarl-en-fr"]
    params["decodings"] = {"narrow": {"model": "one/average", "set": "demo-test", "beam": 1}}
    params["decodings"]["valued"] = {"model": "values/v", "set": "demo-test", "decoder": "value_beam"}
    params["base"]["scoring"] = {"bootstrap": 50, "seed": 1, **changed}
    write_params_yaml(folder, params)


def test_sets_whose_counts_of_lines_differ_or_that_are_empty_are_refused(tmp_path):
    translations, sets = project(tmp_path)
    write(translations / "dev.average.txt", HYPOTHESES[:-1])
    with refused("dev.average.txt has 29 lines", "data/sets/demo-dev/raw.de has 30"):
        score(translations, sets, SETTINGS)
    write(translations / "dev.average.txt", HYPOTHESES)
    write(sets["test"].folder / "filtered.en", SOURCES[:3])
    write(sets["test"].folder / "filtered.de", REFERENCES[:2])
    with refused("filtered.en has 3 lines and ", "filtered.de has 2;"):
        score(translations, sets, SETTINGS)
    with refused("b is empty"):
        aligned(write(tmp_path / "a", []), write(tmp_path / "b", []))


def test_only_line_feeds_end_a_line(tmp_path):
    segment = "|".join(["one", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "segment"])
    path = write(tmp_path / "text", [segment, "another"])
    assert lines(path) == [segment, "another"]
    path.write_bytes(b"\n\nlast")
    assert lines(path) == ["", "", "last"], "empty lines count, and a last line needs no line feed"


def test_an_empty_reference_is_kept_and_reported(tmp_path, capsys):
    translations, sets = project(tmp_path)
    path = write(sets["test"].folder / "raw.de", [*REFERENCES[:-1], ""])
    table = score(translations, sets, SETTINGS)
    assert table["test"]["average"]["pairs"] == 30
    assert capsys.readouterr().err == f"{path}: 1 empty lines, scored as they are\n"


def test_filtered_segments_are_found_in_their_order_or_named(tmp_path):
    full = write(tmp_path / "full", ["a", "b", "a", "c", "b"])
    assert places(write(tmp_path / "filtered", ["a", "a", "c", "b"]), full) == [0, 2, 3, 1]
    for segments, line in ((["a", "d"], "line 2: 'd'"), (["c", "c"], "line 2: 'c'")):
        with refused(tmp_path / "filtered", line):
            places(write(tmp_path / "filtered", segments), full)


def degraded(every: int) -> list[str]:
    """The hypotheses, with the first word removed from every `every`-th line."""
    return [line.split(" ", 1)[1] if number % every == 0 else line for number, line in enumerate(HYPOTHESES)]


def test_two_decodings_of_one_model_have_a_p_value_and_two_trainings_have_none(tmp_path):
    """Also on two sets of one text. The model of a value is that of its samples. A file names no model."""
    project(tmp_path)
    for run in ("two", "french"):
        project(tmp_path, degraded(1), run)
    shutil.copytree(tmp_path / "data/sets/demo-test", tmp_path / "data/sets/europarl-en-fr-test")
    for file in ("scores/decodings/narrow/translation.txt", "scores/decodings/valued/translation.txt", "other.txt"):
        write(tmp_path / file, degraded(1))
    (tmp_path / "scores/decodings/valued/decoding.json").write_text('{"model": "one/average"}')
    params_file(tmp_path, bootstrap=200, seed=5)
    one, two = (sacrebleu.corpus_bleu(lines, [REFERENCES]).score for lines in (HYPOTHESES, degraded(1)))
    difference = rf".* minus .*: {two - one:+.2f} \(-\d+\.\d\d to -\d+\.\d\d, over the sentences\)"
    said = dict.fromkeys(("narrow", "valued"), r", p = 0\.0[0-4]\d\d \(two-sided\)")
    said |= dict.fromkeys(("two", "french"), "; no p, because one seed each .*")
    for other, end in {**said, "other.txt": "; no p, because they may be of two trainings"}.items():
        ours = command(tmp_path, "pipeline.commands.evaluate", "one", "--against", other)
        assert (ours.returncode, ours.stderr) == (0, "")
        header, _, first, second, conclusion = ours.stdout.splitlines()
        assert "30 pairs, nrefs:1|bs:200|seed:5|case:mixed|eff:no|tok:13a|smooth:exp|" in header
        assert [first.split()[:2], second.split()[:2]] == [["one", f"{one:.2f}"], [other, f"{two:.2f}"]]
        assert first.split()[2:] != second.split()[2:], "each has its interval"
        assert re.fullmatch(difference + end, conclusion), conclusion
    words = ["one", "--against", "other.txt", "--metric", "bleu-published"]
    printed = command(tmp_path, "pipeline.commands.evaluate", *words).stdout
    assert "compound:split|ref:published" in printed and printed.splitlines()[2].split()[:2] == ["one", "73.83"]


REFUSED = {  # the arguments: what is said
    "one --against tow": "'tow' is not a run or a decoding of params.yaml, and not a file; did you mean 'two'",
    "one --against two --metric bleu": "did you mean 'bleu-13a'",
    "one --against french": "cannot be compared: one translates demo-test, french translates europarl-en-fr-test",
    "params.yaml --against data/sets/demo-test/raw.de": "are both files",
    "one --against untrained": "untrained/translations/test.average.txt is missing; `make reproduce` writes it",
    "one": "either SOURCE and REFERENCE, or --against",
    "one no.en params.yaml --output ./params.yaml": "params.yaml is read as well and would be replaced",
    "one text.en text.de --against two": "either SOURCE and REFERENCE, or --against",
}


def test_systems_that_cannot_be_compared_are_refused(here, monkeypatch):
    def evaluated(words: str) -> None:
        evaluate.main(evaluate.parser().parse_args(words.split()))

    project(here)
    project(here, degraded(2), "two")
    params_file(here)
    for words, said in REFUSED.items():
        with refused(said):
            evaluated(words)
    params_file(here, bootstrap=0)
    with refused("base.scoring.bootstrap: 0 is not possible here"):
        evaluated("one --against two")
    params_file(here, bootstrap=100_000)
    monkeypatch.setattr(bleu, "weights", lambda *_: np.ones(10**15))
    with refused("resamples of 30 segments: lower base.scoring.bootstrap"):
        evaluated("one --against two")


@pytest.mark.parametrize(
    ("value", "shown"), [(84.59504, "84.60"), (84.59496, "84.60"), (84.5949, "84.59"), (-0.125, "-0.13"), (-1e-5, "0.00")]
)
def test_a_score_is_shown_alike_before_and_after_it_was_written(value, shown):
    stored = round(value, 4)  # as score files hold it
    table = tables.table("x", "", [{"score": value}, {"score": stored}])
    cells = [row["score"][0] for row in table.cells]
    of_run = Result("x", stored, None, None, None, None).columns()[1]
    assert {*cells, of_run, score_files.rounded(value), score_files.rounded(stored)} == {shown}
