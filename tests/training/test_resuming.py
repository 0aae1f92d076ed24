"""A training that is stopped, killed and resumed at any step is the training that was not."""

import pytest
import torch

from tests.support.trainers import build, files, run
from transformer.checkpoint import read_tensors

DROPOUT = {"dropout": 0.3, "attention_dropout": 0.2, "relu_dropout": 0.1}
PATIENCE = {"steps": 40, "patience": 2, "evaluate_every": 2, "checkpoint_every": 4, "lr_scale": 5.0}
KINDS = {
    "by length": ({"checkpoint_every": 1, "patience": 100}, DROPOUT, "float32"),
    "mixed": ({"batching": "mixed", "r_drop": 5.0, "checkpoint_every": 2}, DROPOUT, "float32"),
    "bfloat16": ({"threads": 2, "checkpoint_every": 3, "weight_decay": 0.1}, DROPOUT, "bfloat16"),
    "patience": (PATIENCE, {}, "float32"),
}
# The steps of each start, the steps after which a state is due, and whether the start ends as a killed process does: after
# a state, without one, as one is due, and where the training would have ended; or with a stop, also just after another.
STARTS = [
    [(4, {2}, True), (3, set(), False), (1, set(), True), (6, {7, 10}, True)],
    [(1, set(), False), (1, set(), False), (7, {9}, True), (8, {3, 6}, False), (9, set(), True)],
]


def tensors(folder):
    return read_tensors(folder / "state.safetensors")[0]


def all_but_the_state(folder):
    """The files without the state, which has the time of the training."""
    return {path: content for path, content in files(folder).items() if path.name != "state.safetensors"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_stop_and_no_kill_changes_a_byte(tmp_path, settings, training_settings, kind):
    differences, model, precision = KINDS[kind]
    config, folder = training_settings(**differences), tmp_path / "whole"

    def built(place, keep=config.keep):
        return build(place, training_settings(**differences, keep=keep), settings(**model), precision=precision)

    assert run(built(folder))
    assert run(built(tmp_path / "every", 100))
    whole, weights = tensors(folder), files(tmp_path / "every/checkpoints")
    end = int(max(weights).stem[5:])
    assert (end < config.steps) == (kind == "patience"), "which ends it early"

    def needed(step):
        """The checkpoints of which averaging may take the last: all with patience, otherwise those near the end."""
        steps = [s for s in range(1, step + 1) if (config.steps - s) % config.checkpoint_every == 0]
        near = [s for s in steps if config.patience or config.steps - s < config.keep * config.checkpoint_every]
        return {f"step-{s:08d}" for s in near[-config.keep :]}

    for number, starts in enumerate(STARTS):
        place, saved = tmp_path / str(number), 0
        for steps, states, kill in starts:
            trainer = built(place)
            assert trainer.state.step == saved
            held = files(place / "checkpoints")
            assert {path.stem for path in held} == needed(saved)
            assert all(content == weights[path] for path, content in held.items())
            stop = min(saved + steps, end)
            run(trainer, states=states, **{"killed" if kill else "until": stop})
            saved = max([saved, *(s for s in states if s < stop and s > saved)]) if kill else stop
        assert run(built(place))
        assert all_but_the_state(place) == all_but_the_state(folder)
        assert [name for name, tensor in tensors(place).items() if not torch.equal(tensor, whole[name])] == []
