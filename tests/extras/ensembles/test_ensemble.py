"""An ensemble: the mean of the models' probabilities, by the logits of each."""

import argparse
import json
import shutil

import pytest

from pipeline.decode_set import per_sentence, translator_of
from pipeline.extras.ensembles import ensemble
from tests.support.prefixes import CPU, best_of, log_probs_of
from tests.support.projects import ROOT
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
