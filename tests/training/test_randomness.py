"""What is drawn at random: on what weights, orders and masks depend. test_step tests where dropout is."""

from itertools import groupby

import numpy as np
import pytest
import torch

from tests.support import in_process
from tests.support.pairs import Listed
from tests.support.small_run import COMMAND, write_data, write_params
from tests.support.trainers import build, recorded_masks
from transformer.data import MixedBatches
from transformer.parallel import Workers
from transformer.training import Trainer


def run(folder, patch, config, model, until=None, rank=0):
    """Train up to the step `until`. Returns the masks of each step of this start."""
    group = Workers()
    group.rank = rank
    trainer, masks, steps = build(folder, config, model, group=group), recorded_masks(patch), []

    def tick(record):
        if masks:
            steps.append(masks[:])
            masks.clear()

    trainer.run(tick, lambda: trainer.state.step == until)
    return steps


def equal(one, other):
    """Whether two lists hold the same rates and masks. Threads draw theirs in any order."""
    sorted_one, sorted_other = (
        sorted((p, [*mask.shape], mask.flatten().tolist()) for p, mask in each) for each in (one, other)
    )
    return sorted_one == sorted_other


@pytest.mark.parametrize("threads", [1, 2])
def test_masks_depend_on_step_share_and_worker(tmp_path, monkeypatch, settings, training_settings, threads):
    config = training_settings(steps=4, threads=threads, micro_batch_tokens=20)  # several micro-batches a step
    model = settings(dropout=0.3, attention_dropout=0.2, relu_dropout=0.1)
    whole = run(tmp_path / "whole", monkeypatch, config, model)
    first = run(tmp_path / "parts", monkeypatch, config, model, until=2)
    rest = run(tmp_path / "parts", monkeypatch, config, model)
    assert (len(whole), len(first), len(rest)) == (4, 2, 2)
    assert all(equal(*steps) for steps in zip(whole, [*first, *rest]))
    other = run(tmp_path / "other", monkeypatch, config, model, rank=1)
    draws = sorted(mask.flatten()[:60].tolist() for step in [*whole, *other] for _, mask in step if mask.numel() >= 60)
    assert len(draws) > 100 and all(len(list(same)) == 1 for _, same in groupby(draws)), "no two masks are equal"


@pytest.mark.slow
def test_the_seed_decides_on_weights_orders_and_masks(tmp_path):
    """The stage `train` with two seeds, one of them twice. One thread draws from another stream, which is tested below."""
    seen, whole = {}, Trainer.run
    for name, seed in {"one": 1, "again": 1, "two": 2}.items():
        (folder := tmp_path / name).mkdir()
        write_data(folder)
        write_params(folder, seed=seed, threads=2, steps=5, checkpoint_every=1, dropout=0.1)
        started = []

        def noted(trainer, *given, started=started):
            weights = {name: tensor.clone() for name, tensor in trainer.state.model.state_dict().items()}
            started.append((weights, trainer))
            return whole(trainer, *given)

        with in_process.inside(folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trainer, "run", noted)
            masks = recorded_masks(patch)
            in_process.run(COMMAND)
        ((weights, trainer),) = started
        order = [trainer.batches.batch(step).tolist() for step in range(8)]
        seen[name] = weights, order, masks, {path.name: path.read_bytes() for path in (folder / "models").iterdir()}
    one, again, two = seen.values()
    assert one[1] == again[1] and equal(one[2], again[2]) and one[3] == again[3]
    torch.testing.assert_close(one[0], again[0], atol=0, rtol=0)
    drawn = [name for name, tensor in one[0].items() if tensor.std() > 0 and "norm" not in name]
    assert len(drawn) > 10 and not any(torch.equal(one[0][name], two[0][name]) for name in drawn)
    assert one[1] != two[1] and one[3] != two[3]
    assert not any(torch.equal(x.flatten()[:40], y.flatten()[:40]) for (_, x), (_, y) in zip(one[2], two[2]))


def test_the_streams_of_a_training_are_distinct(tmp_path, settings, training_settings, monkeypatch):
    """Numpy pads a seed with zeros, so [seed] and [seed, 0] are one stream."""
    trainers = [build(tmp_path / str(seed), training_settings(threads=2, seed=seed), settings()) for seed in (1, 2)]
    drawn, states = [], []
    original = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: drawn.append(seed) or original(seed))
    for trainer in trainers:
        trainer.step.seed(step=3, rank=0)
        states += [tuple(each.get_state().tolist()) for each in (torch.default_generator, *trainer.step.generators)]
    assert len(set(states)) == 6
    batches = MixedBatches(Listed([[5] * 9] * 40, [[5] * 7] * 40), 1, 60, 20)
    batches.batch(0)
    assert len({original(seed).random() for seed in drawn}) == len(drawn) >= 2
