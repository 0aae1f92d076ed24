"""Warm starts: the settings, and the models that are refused. test_finished.py has the stage and its training."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from pipeline.extras.warm_start import warm_start
from pipeline.settings.check import check
from tests.support.back_translations import entry, with_runs
from tests.support.refusals import refusals, refused, spoilt
from transformer.checkpoint import write_settings
from transformer.files import sha256, write_json

WARM = {"corpus": "own", "model": "forward/average"}


@pytest.fixture
def selected(params) -> dict:
    params = with_runs({**params, "studies": {}}, entry(), {"greedy": {"decoder": "greedy"}})
    params["warm_starts"] = {"own-ws": dict(WARM)}
    params["corpora"]["turned"]["languages"] = ["deu", "en-GB"]  # the languages of `own`, as `reverse` has to have
    params["runs"]["adapted"] = {**params["runs"]["forward"], "corpus": "own-ws", "dropout": 0.3, "max_positions": 99}
    return params


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("warm_starts.own-ws.model", "reverse/average", "reverse/average translates deu to en-GB; a run from en to de is"),
        ("warm_starts.own-ws.model", "forward", "model: 'forward' is no model: RUN/average with a RUN of `runs` is"),
        (
            "warm_starts.own-ws.model",
            "../elsewhere",
            "'../elsewhere' is not possible; RUN/average, or the name of a folder",
        ),
        ("warm_starts.own-ws.corpus", "own-bt", "corpus: 'own-bt' is not in corpora"),
        ("warm_starts.own", WARM, "'own' is also a name in `corpora`"),
        ("warm_starts.own-bt", WARM, "'own-bt' is also a name in `back_translations`"),
        ("runs.adapted.d_ff", 64, "runs.adapted: d_ff is 64 here and 32 in forward/average; equal values are expected"),
        ("runs.adapted.positions", "learned", "positions is learned here and sinusoidal in forward/average"),
        ("base.model.positions", "learned", "max_positions is 99 here and 1024 in forward/average"),
        ("corpora_in_use", ["own", "turned", "own-ws"], "[own, turned], the corpora of"),
    ],
)
def test_impossible_values_are_refused(selected, place, value, expected):
    check(selected)
    said = refusals(spoilt(selected, place, value))
    assert any(expected in line for line in said), said


def test_a_folder_of_other_languages_or_with_another_vocabulary_is_refused(selected, settings, here, monkeypatch):
    monkeypatch.setattr(warm_start, "load", lambda: selected)
    folder, text = Path("models/general"), {"entities": True, "nfc": True, "punctuation": False}
    folder.mkdir(parents=True)
    torch.manual_seed(1)
    (folder / "vocabulary.model").write_bytes(b"only its digest is compared")
    monkeypatch.setattr(warm_start, "Vocabulary", lambda path: Namespace(sha256=sha256(path), size=90))
    write_settings(folder, settings(), 90, sha256(folder / "vocabulary.model"))
    write_json(folder / "text.json", {"languages": ["de", "en"], **text})
    arguments = Namespace(name="own-ws", model=folder)
    with refused("models/general translates de to en, and the corpus is en to de"):
        warm_start.main(arguments)
    write_json(folder / "text.json", {"languages": ["eng", "deu_Latn"], **text})
    for name in ("binarised", "complete"):
        monkeypatch.setattr(warm_start, name, lambda *_: None)
    warm_start.main(Namespace(**vars(arguments), text=None, out=here, report=None, description=None))
    (folder / "vocabulary.model").write_bytes(b"another")
    with refused("vocabulary.model is not the vocabulary of"):
        warm_start.main(arguments)
    selected["warm_starts"]["own-ws"]["model"] = "general"
    check(selected)
