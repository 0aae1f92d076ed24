"""Small trainings in this process, and what their dropout drew."""

import contextlib

import pytest
import torch

from tests.support.pairs import Pairs
from transformer import fast
from transformer.fast.dropout import Dropout
from transformer.model import Transformer
from transformer.parallel import SINGLE_PROCESS
from transformer.store import Store
from transformer.training import Trainer, batches_of, new_state

CPU = torch.device("cpu")


def build(folder, config, model_config, pairs=None, group=SINGLE_PROCESS, precision="float32"):
    """A training of 90 pieces on random pairs, resumed if `folder` has its state."""
    torch.manual_seed(config.seed)
    model = Transformer(model_config, 90, fast.layers(CPU))
    pairs = pairs or Pairs(60, 12)
    batches = batches_of(pairs, config)
    identity = {"device": "cpu", "precision": precision, "threads": 1}
    place = Store(folder, config.keep, identity, writes=group.rank == 0)
    state = new_state(model, config, CPU)
    place.resume(state)
    return Trainer(state, batches, Pairs(10, 12, seed=9), config, place, CPU, precision, 1e9, workers=group)


class Killed(Exception):
    pass


def run(trainer, until=None, states=(), killed=None):
    """Train to the end, or stop at the step `until`. After each step in `states`, a state is due.

    At the step `killed` the training ends as a killed process does, without saving anything.
    """

    def tick(record):
        if trainer.state.step == killed:
            raise Killed
        trainer.save_every_seconds = -1 if trainer.state.step in states else 1e9

    with contextlib.suppress(Killed):
        return trainer.run(tick, lambda: trainer.state.step == until)


def files(folder):
    """The content of each file in a folder, by its path there."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def recorded_masks(patch: pytest.MonkeyPatch) -> list[tuple[float, torch.Tensor]]:
    """A list to which each dropout in training from now on appends its rate and its mask, which is 0 or 1 / (1 - rate)."""
    masks, whole = [], Dropout.forward

    def noted(module, x):
        if not module.training or module.p == 0:
            return whole(module, x)
        mask = whole(module, torch.ones_like(x))
        masks.append((module.p, mask.detach()))
        return x * mask

    patch.setattr(Dropout, "forward", noted)
    return masks
