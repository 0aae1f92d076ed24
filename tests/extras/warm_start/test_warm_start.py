"""Warm starts: the settings, and the models that are refused. test_finished.py has the stage and its training."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from pipeline.extras.warm_start import warm_start
from pipeline.reporting.warned import of_stage
from pipeline.settings.check import check
from tests.support.back_translations import entry, with_runs
from tests.support.projects import ROOT
from tests.support.refusals import refusals, refused, spoilt
from transformer.checkpoint import write_settings
from transformer.files import read_json, sha256, write_json
from transformer.vocabulary import Vocabulary

VOCABULARY = ROOT / "tests/data/commit-3b4f273/model/vocabulary.model"
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
    for name in ("binarised", "complete", "count_unwritten"):
        monkeypatch.setattr(warm_start, name, lambda *_: None)
    warm_start.main(Namespace(**vars(arguments), text=None, out=here, report=None, description=None))
    (folder / "vocabulary.model").write_bytes(b"another")
    with refused("vocabulary.model is not the vocabulary of"):
        warm_start.main(arguments)
    selected["warm_starts"]["own-ws"]["model"] = "general"
    check(selected)


def test_text_that_the_vocabulary_cannot_write_is_warned_of(here):
    for code, text in ("de", "a b c\nd\n"), ("sr", "абв a\nгд\n"):
        Path(f"dev.{code}").write_text(text, encoding="utf-8")
    report = here / "scores/corpora/ws/binarise.json"
    for codes, said in (("de", "sr"), [True]), (("de", "de"), []):
        write_json(report, {"sets": {"train": {"pairs": 2}, "dev": {"pairs": 2}}})
        warm_start.count_unwritten(Vocabulary(VOCABULARY), here, codes, report)
        assert read_json(report)["sets"]["train"] == {"pairs": 2}
        assert [each.large and "of the pieces (sr) are bytes" in each.text for each in of_stage("warm_start@ws")] == said
