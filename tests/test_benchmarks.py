"""The data, the computations and the output of the benchmarks. No test checks a measured time."""

import argparse
import gzip
import json
import re
import sys
from datetime import date
from itertools import islice

import pytest
import torch
from tqdm import tqdm

from benchmarks import decoding, epoch, learning, record
from benchmarks.corpus import extended
from benchmarks.text import OURS, STAGES, Cost, growth, measured
from pipeline.binarise import binarise_set
from tests import pages
from transformer.binarised import write_description
from transformer.config.reading import UserError
from transformer.config.vocabulary import VocabularyConfig
from transformer.vocabulary import Vocabulary, WordTable, learn

LINES = [[f"{side} {number} walks along {number * 7}th street" for number in range(200)] for side in ("man", "Mann")]


def test_an_extended_corpus_has_distinct_pairs_with_few_new_words(tmp_path):
    paths = [tmp_path / "text.en.gz", tmp_path / "text.de"]
    paths[0].write_bytes(gzip.compress("\n".join(LINES[0]).encode()))
    paths[1].write_text("\n".join([*LINES[1], ""]), encoding="utf-8")
    pairs = list(islice(extended(paths), 1000))
    assert pairs[:200] == list(zip(*LINES))
    assert pairs == list(islice(extended(paths), 1000))
    assert len(set(pairs)) == 1000
    words = [{word for pair in some for line in pair for word in line.split(" ")} for some in (pairs[:200], pairs)]
    assert words[0] < words[1] and len(words[1]) < len(words[0]) + 2 * 0.15 * 800


def test_text_without_pairs_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).touch()
    with pytest.raises(UserError, match=r"a and .*b: no pair of lines"):
        next(extended([tmp_path / "a", tmp_path / "b"]))


def test_growth_fits_the_line_through_the_times():
    each = {pairs: Cost(0, 1 + 10e-6 * pairs / len(OURS), 0) for pairs in (100_000, 800_000, 8_000_000)}
    said = growth({pairs: dict.fromkeys(OURS, cost) for pairs, cost in each.items()})
    assert "3.00 s and 10.0 microseconds a pair (R^2 1.00000, no point more than 0.0% off)" in said
    assert "as pairs^1.000" in said and "EN-DE 0.8 minutes" in said


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_has_the_options_that_benchmarks_text_gives_it(name, tmp_path):
    with pytest.raises(UserError, match=r"^(?!.*usage:).*params\.yaml"):  # the folder is empty
        measured([sys.executable, "-m", f"pipeline.{name}", "bench", *STAGES[name].split()], tmp_path)


@pytest.fixture
def corpus(tmp_path):
    """A folder with a vocabulary, text.en, text.de, and `binarised`, which has both texts as train and dev."""
    texts = ["".join(f"{line}\n" for line in lines).encode() for lines in LINES]
    for language, text in zip(("en", "de"), texts):
        (tmp_path / f"text.{language}").write_bytes(text)
    config = VocabularyConfig(300, "byte_fallback", 1.0, 0, 0.0, 1, 1, 1)
    (tmp_path / "vocabulary.model").write_bytes(learn(texts, config))
    vocabulary = Vocabulary(tmp_path / "vocabulary.model")
    words, out = WordTable(vocabulary, 1), tmp_path / "binarised"
    out.mkdir()
    paths, bar = [tmp_path / "text.en", tmp_path / "text.de"], tqdm(disable=True)
    counts = {name: binarise_set(paths, name, words, config, out, bar) for name in ("train", "dev")}
    write_description(out, vocabulary.size, vocabulary.sha256, ("en", "de"), counts)
    return tmp_path


def output_of(benchmark, capsys, *words) -> str:
    benchmark.main(benchmark.options().parse_args([*map(str, words)]))
    return capsys.readouterr().out


@pytest.mark.slow
def test_an_epoch_is_timed_for_systems_of_all_kinds(corpus, monkeypatch, capsys):
    params = epoch.load()
    tiny = params["models"]["tiny"]
    tiny["model"] = {"N": 1, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8}
    tiny["training"] |= {"batch_tokens": 300, "micro_batch_tokens": 300}
    monkeypatch.setattr(epoch, "load", lambda: params)
    monkeypatch.setattr(epoch, "WARM_UP", 1)
    monkeypatch.setattr(epoch, "SYSTEMS", epoch.SYSTEMS[3::3])  # each starts a process, which takes seconds
    said = output_of(epoch, capsys, corpus / "binarised", "--batches", 1, "--turn", 1, "--threads", 1)
    rows = re.findall(r"^\| ([^|]+) \| (\w+) \| (\w+) \| [\d,]+ \| \d+\.\d\d \(", said, re.MULTILINE)
    assert rows == epoch.SYSTEMS and len(set(rows)) == len(rows)


@pytest.mark.slow
def test_a_model_kept_by_learning_decodes_as_in_ctranslate2(corpus, monkeypatch, capfd):
    text, reference = corpus / "text.en", corpus / "text.de"
    once = ("--model", "tiny", "--minutes", "0", "--every", "2", "--out", corpus / "curves.svg")
    made = ("--keep", corpus / "kept", "--test", text, reference)
    said = output_of(learning, capfd, corpus / "binarised", *once, *made)
    assert re.search(r"^\| ours \| [\d.]+ \| 2 \| \d\.\d+ \|$", said, re.MULTILINE)
    assert re.search(r"^\| torch.nn.Transformer \| [\d.]+ \| 2 \| \d\.\d+ \|$", said, re.MULTILINE)
    assert "sacreBLEU on" in said and "<svg" in (corpus / "curves.svg").read_text()
    short = ("--reference", reference, "--sentences", 1, "--rounds", 1)
    said = output_of(decoding, capfd, corpus / "kept", text, *short)
    rows = dict(line.split(" | ", 2)[1:] for line in said.splitlines() if line.startswith(f"| {corpus}"))
    ours, theirs = (rows[f"{system}, float32"].split(" | ") for system in ("ours", "CTranslate2"))
    assert theirs[2] == "100.0%" and ours[3] == theirs[3]


def test_the_tables_of_a_benchmark_are_kept_and_shown(tmp_path, monkeypatch, capfd):
    (tmp_path / "shown.py").write_text(
        'print("two threads\\n\\n| system | speed | MFU |\\n|---|---:|---:|\\n| ours | 1,204 | – |\\n| it | – | – |\\n")\n'
        'print("| | s |\\n|---|---:|\\n| a | 1 |")  # __name__ == "__main__"\n'
    )
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record, "PACKAGE", "tests.nowhere")
    with pytest.raises(UserError, match="shown ended with status 1; nothing is written"):
        record.main(argparse.Namespace(benchmark="shown", arguments=[], into=None))
    monkeypatch.setattr(record, "PACKAGE", tmp_path.name)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path.parent))
    record.main(argparse.Namespace(benchmark="shown", arguments=["--fast"], into="kept"))
    assert "two threads" in capfd.readouterr().out
    path = tmp_path / "results/kept.json"
    assert json.loads(path.read_text(encoding="utf-8"))["command"] == f"python -m {tmp_path.name}.shown --fast"
    shown = pages.written(f"<!-- from {path} -->\n<!-- end -->\n")
    assert "\n| system | speed |\n|---|---:|\n| ours | 1,204 |\n| it | – |\n\n| | s |\n|---|---:|\n| a | 1 |\n" in shown
    assert f"torch {torch.__version__}" in shown and date.today().isoformat() in shown
