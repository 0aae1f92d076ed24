"""The model card: licence, scores and settings."""

import dataclasses
import json
import shutil
from pathlib import Path

from pipeline.extras.export import model_card
from pipeline.extras.export.__main__ import FORMATS
from tests.support.invented import Invented
from transformer.checkpoint import write_settings
from transformer.config.model import ModelConfig
from transformer.decoding import PAPER
from transformer.files import read_json, write_json


def test_a_card_states_the_licence_that_params_yaml_has(params, monkeypatch):
    for name, corpus in params["corpora"].items():
        of_multi30k = "/multi30k/dataset/" in json.dumps(corpus["download"])
        assert (model_card.data_of(name)[1] == "CC BY-NC-SA 4.0") == of_multi30k, name
    assert model_card.data_of("demo")[1] == "MIT"
    mine = {"download": {"train": [{"source": "text/mine/a.en", "target": "text/mine/a.de"}]}}
    corpora = {"multi30k-of-mine": mine, "owned": mine | {"licence": "Ours"}}
    changed = {"corpora": corpora, "back_translations": {"owned-bt": {"corpus": "owned"}}}
    changed["runs"] = {name: {"corpus": name} for name in corpora}
    changed["warm_starts"] = {f"from-{name}": {"corpus": "owned", "model": f"{name}/average"} for name in corpora}
    monkeypatch.setattr(model_card, "load", lambda: changed)
    made = ("owned-bt", "gone", "from-owned", "from-multi30k-of-mine")
    licences = {name: model_card.data_of(name)[1] for name in (*corpora, *made)}
    assert licences == dict.fromkeys(("multi30k-of-mine", *made)) | {"owned": "Ours", "from-owned": "Ours"}
    assert model_card.data_of("from-owned")[0].endswith("; the training began with the weights of owned/average")
    for licence in ("CC BY-SA 3.0", "CC-BY 2.0", "ODC-BY"):  # of Wikipedia, Tatoeba and NLLB; ids of the Hub
        front = model_card.indexed({"corpus": "owned", "run": "r"}, licence, None)
        assert front["license"] == licence.lower().replace(" ", "-") and "license_name" not in front
    front = model_card.indexed({"corpus": "owned", "run": "r"}, "Ours: all", None)
    assert (front["license"], front["license_name"]) == ("other", '"Ours: all"')


def test_a_card_has_only_scores_of_its_weights_its_settings_and_its_search(params, tmp_path, monkeypatch):
    project = Invented(params, tmp_path)
    project.write({"run": {"corpus": "demo", "model": "tiny"}})
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(model_card, "load", lambda: project.params)
    known, folder = read_json(project.results / "run.json"), Path("models/run/average")
    used = vars(PAPER) | {"precision": "float32"}
    known["translations"]["settings"] = {"averaging": {"averaged_steps": [7]}, "decoding": used}
    write_json(project.results / "run.json", known)
    model = ModelConfig(**known["training"]["settings"]["model"])
    write_settings(folder, model, 90, "0" * 64)
    write_json(folder / "text.json", {"languages": ["en", "de"], "entities": True, "nfc": False, "punctuation": False})

    def card(folder: Path = folder, step: int = 7, kind: str = "marian", decoding=PAPER, **stale: bool) -> str:
        return model_card.card(folder, {"averaged_steps": [step]}, kind, decoding, **stale)

    assert "| bleu-13a | 30.00 | 29.00 to 31.50 |" in card() and "Licence: MIT" in card()
    assert "has to be normalised" in card() and "replaced by their" in card() and "normalisation form C" not in card()
    different, power = "can differ from those that were scored", dataclasses.replace(PAPER, penalty="power")
    assert card().index("L^alpha, and") < card().index("30.0") and different not in card(kind="transformer")
    for settings, kinds in (
        ({}, ()),
        ({"alpha": 2.0}, ("ctranslate2",)),
        ({"beam": 1}, ("marian", "ctranslate2")),
        (
            {"extra_length": 2},
            ("marian", "ctranslate2"),
        ),
    ):
        decoding = dataclasses.replace(power, **settings)
        assert tuple(kind for kind in FORMATS if different in card(kind=kind, decoding=decoding)) == kinds
    assert "input is normalised" in card(kind="transformer")
    for precision, kinds in ("float32", ()), ("bfloat16", ("marian", "ctranslate2")):
        known["translations"]["settings"]["decoding"] = vars(power) | {"precision": precision}
        write_json(project.results / "run.json", known)
        assert tuple(kind for kind in FORMATS if different in card(kind=kind, decoding=power)) == kinds
        assert f'(".", precision="{precision}")' in card(kind="transformer", decoding=power), (
            "whatever the machine of the reader has"
        )
    known["translations"]["settings"]["decoding"] = used
    write_json(project.results / "run.json", known)
    for languages, listed in (
        (["eng_Latn", "zho_Hant"], '["en", "zh"]'),
        (["nb", "no"], '["no"]'),
        (["xx", "deu"], '["de"]'),
    ):
        text = {"languages": languages, "entities": True, "nfc": False, "punctuation": False}
        write_json(folder / "text.json", text)
        assert f"---\nlanguage: {listed}\n" in card(), "the Hub takes codes of ISO 639"
    copied = shutil.copytree(folder, "other/run/average")
    others = card(Path(copied)), card(step=8), card(decoding=dataclasses.replace(PAPER, alpha=1.0)), card(stale=True)
    write_settings(folder, dataclasses.replace(model, h=1), 90, "0" * 64)
    assert all("No score of these weights" in other and "30.00" not in other for other in (*others, card()))
