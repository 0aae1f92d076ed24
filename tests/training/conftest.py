"""The fixture of tests that train a small model."""

import pytest

from tests.support.trainers import build


@pytest.fixture
def training(tmp_path, settings, training_settings):
    """`training("name", model={...}, steps=9, ...)`: a training with these differences, in a folder of the test."""
    started = []

    def made(name="", model=None, precision="float32", **differences):
        config = training_settings(**differences)
        started.append(build(tmp_path / name, config, settings(**model or {}), precision=precision))
        return started[-1]

    yield made
    for trainer in started:
        trainer.close()
