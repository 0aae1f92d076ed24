"""Settings of earlier and of newer code. test_translator has the translations of a model of earlier code."""

import dataclasses
import shutil
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from tests.support.refusals import refused
from transformer import checkpoint
from transformer.checkpoint import load_model, read_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import hints, read_saved
from transformer.config.training import TrainingConfig
from transformer.files import read_json, write_json

OLD = Path(__file__).parent / "data/commit-3b4f273"


@dataclasses.dataclass(frozen=True)
class Later(ModelConfig):
    """The settings of a model after a new setting has been added."""

    gate: str

    ABSENT: ClassVar = {**ModelConfig.ABSENT, "gate": "none"}


@pytest.fixture
def old_model(tmp_path) -> Path:
    """A copy of the old model's folder."""
    return Path(shutil.copytree(OLD / "model", tmp_path / "model"))


def test_a_setting_that_an_old_model_lacks_has_its_value_of_then(old_model, monkeypatch):
    monkeypatch.setattr(checkpoint, "ModelConfig", Later)
    config, *_, longest = read_settings(old_model)
    assert longest is None, "it is not known"
    assert config.gate == "none" and config.d_model == 8
    content = read_json(old_model / "settings.json")
    write_json(old_model / "settings.json", content | {"model": content["model"] | {"gate": "half"}})
    assert read_settings(old_model)[0].gate == "half"
    write_json(old_model / "settings.json", content)
    monkeypatch.setattr(Later, "ABSENT", {})
    with refused("settings.json: model.gate is missing; text is expected"):
        read_settings(old_model)


def test_a_model_of_newer_code_is_refused_as_such(old_model):
    content = read_json(old_model / "settings.json")
    write_json(old_model / "settings.json", content | {"model": content["model"] | {"rotary": True}})
    with refused("settings.json: model: unknown settings ['rotary']", "made by newer code"):
        load_model(old_model / "model.safetensors", torch.device("cpu"))


@pytest.mark.parametrize("config", [ModelConfig, TrainingConfig])
def test_the_values_of_then_are_values_of_the_settings(params, config):
    now = params["base"][config.__name__.removesuffix("Config").lower()]
    assert config.ABSENT.keys() <= set(hints(config))
    saved = {key: value for key, value in now.items() if key not in config.ABSENT}
    assert {key: getattr(read_saved(config, saved, "saved"), key) for key in config.ABSENT} == config.ABSENT
