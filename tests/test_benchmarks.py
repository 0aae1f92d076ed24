"""The data, the computations and the output of the benchmarks. No test checks a measured time."""

import argparse
import json
import shutil
from datetime import date

import pytest
import torch

from benchmarks import decoding, record
from pipeline.settings.params import load, section
from transformer.checkpoint import WEIGHTS, write_settings, write_tensors
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.vocabulary import VocabularyConfig
from transformer.files import sha256
from transformer.model import Transformer
from transformer.vocabulary import learn

LINES = [[f"{side} {number} walks along {number * 7}th street" for number in range(200)] for side in ("man", "Mann")]


@pytest.fixture
def corpus(tmp_path):
    """A folder with a vocabulary, text.en and text.de."""
    texts = ["".join(f"{line}\n" for line in lines).encode() for lines in LINES]
    for language, text in zip(("en", "de"), texts):
        (tmp_path / f"text.{language}").write_bytes(text)
    config = VocabularyConfig(300, "byte_fallback", 1.0, 0, 0.0, 1, 1, 1)
    (tmp_path / "vocabulary.model").write_bytes(learn(texts, config))
    return tmp_path


def output_of(benchmark, capsys, *words) -> str:
    benchmark.main(benchmark.options().parse_args([*map(str, words)]))
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_model_decodes_as_in_ctranslate2(corpus, capfd):
    torch.manual_seed(1)
    model = Transformer(section(load(), "models", "tiny", "model", ModelConfig), 300)
    folder, text, reference = corpus / "model", corpus / "text.en", corpus / "text.de"
    folder.mkdir()
    write_tensors(folder / WEIGHTS, model.state_dict(), {})
    write_settings(folder, model.config, 300, sha256(corpus / "vocabulary.model"))
    shutil.copy(corpus / "vocabulary.model", folder)
    said = output_of(decoding, capfd, folder, text, "--reference", reference, "--sentences", 1, "--rounds", 1)
    rows = dict(line.split(" | ", 2)[1:] for line in said.splitlines() if line.startswith(f"| {folder}"))
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
    shown = (tmp_path / "results/README.md").read_text(encoding="utf-8")
    assert "\n| ours | 1,204 | – |\n| it | – | – |\n" in shown and "\n| a | 1 |\n" in shown
    assert f"torch {torch.__version__}" in shown and date.today().isoformat() in shown
