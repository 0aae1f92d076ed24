"""The score stage, on the thirty pairs of tests/data/compound-bleu."""

import json
from pathlib import Path

import pytest

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.corpora.evaluation import read_lines as lines
from pipeline.score import score
from pipeline.scoring.of_sets import aligned, places
from pipeline.settings.scoring import ScoringConfig
from tests.refusals import refused

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data" / "compound-bleu"
HYPOTHESES, REFERENCES = lines(DATA / "hyp.de"), lines(DATA / "ref.de")
SOURCES = [f"source {number}" for number in range(30)]
SETTINGS = ScoringConfig(bootstrap=20, seed=1)


def write(path: Path, segments: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{segment}\n" for segment in segments).encode())
    return path


def project(folder: Path) -> tuple[Path, dict]:
    """Write translations as decode does, and evaluation sets as normalise does."""
    sets, translations = {}, folder / "scores/one/translations"
    for name in ("dev", "test"):
        place = folder / f"data/sets/demo-{name}"
        write(place / "raw.en", SOURCES)
        write(place / "raw.de", REFERENCES)
        (place / "set.json").write_text(json.dumps({"corpus": "demo", "languages": ["en", "de"], "pairs": 30}))
        sets[name] = EvaluationSet.open(place)
    for name in ("dev.last", "dev.average", "test.average"):
        write(translations / f"{name}.txt", HYPOTHESES)
    perplexities = {"dev": {"last": {"perplexity": 4.5}, "average": {"perplexity": 4.25}}}
    (translations / "translations.json").write_text(json.dumps(perplexities))
    records = [{"step": 1, "loss": 5.0}, {"step": 2, "loss": 4.5}, {"step": 2, "dev_loss": 4.75}]
    (translations.parent / "training.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return translations, sets


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


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_line_feeds_end_a_line(tmp_path, separator):
    path = write(tmp_path / "text", [f"one{separator}segment", "another"])
    assert lines(path) == [f"one{separator}segment", "another"]
    path.write_bytes(b"\n\nlast")
    assert lines(path) == ["", "", "last"], "empty lines count, and a last line needs no line feed"


def test_an_empty_reference_is_kept_and_reported(tmp_path, capsys):
    translations, sets = project(tmp_path)
    path = write(sets["test"].folder / "raw.de", [*REFERENCES[:-1], ""])
    table = score(translations, sets, SETTINGS)
    assert table["test"]["average"]["pairs"] == 30
    assert capsys.readouterr().err == f"score: {path}: 1 empty lines, scored as they are\n"


def test_filtered_segments_are_found_in_their_order_or_named(tmp_path):
    full = write(tmp_path / "full", ["a", "b", "a", "c", "b"])
    assert places(write(tmp_path / "filtered", ["a", "a", "c", "b"]), full) == [0, 2, 3, 1]
    for segments, line in ((["a", "d"], "line 2: 'd'"), (["c", "c"], "line 2: 'c'")):
        with refused(tmp_path / "filtered", line):
            places(write(tmp_path / "filtered", segments), full)
