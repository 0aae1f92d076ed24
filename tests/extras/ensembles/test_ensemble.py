"""An ensemble: the mean of the models' probabilities, by the logits of each."""

import argparse
import json
import os
import resource
import shutil
from errno import EFBIG
from pathlib import Path

import pytest

from pipeline.decode_set import per_sentence, translator_of
from pipeline.extras.ensembles import ensemble
from tests.support import in_process
from tests.support.prefixes import CPU, best_of, log_probs_of
from tests.support.projects import ROOT, with_settings
from transformer.checkpoint import WEIGHTS, read_tensors, write_tensors
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS
from transformer.layout import pad


def test_the_folder_of_an_ensemble_is_read_as_its_models(tmp_path, decoding_settings):
    model, lines = ROOT / "tests/data/commit-3b4f273/model", ["a b c", "d"]
    second = shutil.copytree(model, tmp_path / "second")
    tensors, _ = read_tensors(second / WEIGHTS)
    write_tensors(second / WEIGHTS, tensors | {"embedding": tensors["embedding"].flip(1)}, {})
    ensemble.main(argparse.Namespace(first=model, second=second, out=tmp_path / "both"))
    config = decoding_settings(precision="float32", extra_length=9, alpha=0.0)
    one, two, both = (translator_of(folder, config, CPU) for folder in (model, second, tmp_path / "both"))
    found = best_of(both.n_best(lines, "x", 1))
    for source, translation, each in zip(both.encode(lines), found, per_sentence(both, lines, found)):
        rows, tokens = (pad([[*source, EOS]]), pad([[BOS, *translation.ids]])), [*translation.ids, EOS]
        mean = (one.model(*rows).softmax(-1) + two.model(*rows).softmax(-1)) / 2
        expected = log_probs_of(mean.log())[0][range(len(tokens)), tokens].sum().item()
        assert [translation.score, each["log_prob"]] == pytest.approx([expected] * 2, abs=1e-3)
    other = json.loads((model / "settings.json").read_text()) | {"vocabulary_sha256": "another"}
    shutil.copytree(model, tmp_path / "other")
    (tmp_path / "other/settings.json").write_text(json.dumps(other))
    with pytest.raises(UserError, match="have different vocabularies; two runs with the same corpus are expected"):
        ensemble.main(argparse.Namespace(first=model, second=tmp_path / "other", out=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_one_line_that_names_one_file(tmp_path):
    with_settings(tmp_path)
    model, (before, hard) = str(ROOT / "tests/data/commit-3b4f273/model"), resource.getrlimit(resource.RLIMIT_FSIZE)
    assert sum(file.stat().st_size > 100 for file in Path(model).iterdir()) > 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        done = in_process.command(
            tmp_path, "pipeline.extras.ensembles.ensemble", "both", "--first", model, "--second", model, "--out", "both"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
    assert done.returncode == 1 and done.stderr.count(os.strerror(EFBIG)) == done.stderr.count("\n") == 1, done.stderr
    assert model in done.stderr and sorted(os.listdir(tmp_path)) == ["params.yaml", "studies.yaml"]
