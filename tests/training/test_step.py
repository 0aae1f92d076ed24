"""Whole optimiser steps of a training, against torch.nn.Transformer, torch's loss, and Adam written out here."""

import json

import pytest
import torch

from tests.support.pairs import Pairs
from tests.support.torch_twin import summed_loss
from tests.support.trainers import build, recorded_masks, run
from transformer.training import batches_of

ALL = {"dropout": 0.3, "attention_dropout": 0.2, "relu_dropout": 0.1}
D_MODEL, WARMUP, STEPS = 32, 4, 6  # the rate rises, peaks and falls


def rate(step):
    """Equation 3."""
    return D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


class Adam:
    """Section 5.3, in float64, with decoupled weight decay."""

    def __init__(self, config):
        self.first, self.second, self.steps, self.config = {}, {}, 0, config

    def step(self, weights, gradients, rate):
        self.steps, (b1, b2), decay = self.steps + 1, (self.config.beta1, self.config.beta2), self.config.weight_decay
        after = {}
        for name, gradient in gradients.items():
            m = self.first[name] = b1 * self.first.get(name, 0) + (1 - b1) * gradient
            v = self.second[name] = b2 * self.second.get(name, 0) + (1 - b2) * gradient**2
            change = m / (1 - b1**self.steps) / ((v / (1 - b2**self.steps)).sqrt() + self.config.epsilon)
            after[name] = weights[name] * (1 - rate * decay) - rate * change
        return after


def doubled(model):
    return {name: parameter.detach().double() for name, parameter in model.named_parameters()}


def watched(trainer, masks):
    """Train to the end. Returns for each step the weights before and after it, the gradients and the masks."""
    model, steps = trainer.state.model, []

    def before(*_):
        gradients = {name: parameter.grad.double() for name, parameter in model.named_parameters()}
        steps.append({"before": doubled(model), "gradients": gradients, "masks": masks[:]})
        masks.clear()

    trainer.state.optimiser.register_step_pre_hook(before)
    trainer.state.optimiser.register_step_post_hook(lambda *_: steps[-1].update(after=doubled(model)))
    assert trainer.run(lambda record: None, lambda: False)
    return steps


@pytest.mark.parametrize(
    "model, training",
    [
        ({}, {}),
        ({}, {"batching": "mixed", "label_smoothing": 0.0}),
        ({"norm": "pre"}, {"threads": 2, "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
        ({"dropout": 0.3}, {}),
        (ALL, {}),
        ({"norm": "pre", **ALL}, {}),
    ],
    ids=str,
)
def test_six_steps_equal_torch_s(tmp_path, monkeypatch, settings, training_settings, model, training):
    """Steps 1 to 6 with parts of at most 50 tokens. Source and target of a batch differ in length."""
    limits = {"batch_tokens": 120, "micro_batch_tokens": 50, "max_length": 20}
    config = training_settings(**{"steps": STEPS, "warmup": WARMUP, "log_every": 2, **limits, **training})
    pairs, model = Pairs(60, 20), settings(**model)
    steps = watched(build(tmp_path, config, model, pairs), recorded_masks(monkeypatch))
    batches, adam, losses, tokens, divided = batches_of(pairs, config), Adam(config), [], [], 0
    for number, seen in enumerate(steps):
        weights = {name: tensor.requires_grad_() for name, tensor in seen["before"].items()}
        parts = list(batches.micro_batches(batches.batch(number), config.micro_batch_tokens))
        of_part = len(seen["masks"]) // len(parts)
        masks = [seen["masks"][place * of_part :][:of_part] for place in range(len(parts))]
        assert bool(of_part) == bool(model.dropout)
        divided += len(parts) > 1
        loss = sum(summed_loss(model, weights, pairs, part, config.label_smoothing) for part in zip(parts, masks))
        losses.append(loss.item())
        tokens.append([sum(len(pairs.pair(pair)[side]) + 1 for pair in batches.batch(number)) for side in (0, 1)])
        expected = torch.autograd.grad(loss / tokens[-1][1], list(weights.values()))
        torch.testing.assert_close(seen["gradients"], dict(zip(weights, expected)), atol=2e-7, rtol=2e-5)
        after = adam.step(seen["before"], seen["gradients"], rate(number + 1))
        torch.testing.assert_close(seen["after"], after, atol=1e-6, rtol=1e-5)
    assert divided >= STEPS - 1, "only the last batch of an epoch may be small"
    records = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    for step, record in zip((2, 4, 6), (record for record in records if "loss" in record), strict=True):
        mean = sum(losses[step - 2 : step]) / sum(targets for _, targets in tokens[step - 2 : step])
        assert record["step"] == step and record["loss"] == pytest.approx(mean, abs=3e-6)
        assert record["learning_rate"] == pytest.approx(rate(step), rel=1e-12)
        assert record["tokens"] == sum(map(sum, tokens[:step]))


@pytest.mark.parametrize("batching", ["by_length", "mixed"])
def test_r_drop_adds_the_divergence_of_two_passes(tmp_path, settings, training_settings, batching):
    """With a weight of 50, it is more than half of the loss (L. Wu et al. 2021). Without dropout, it is 0."""
    losses = []
    for weight, dropout in ((0.0, 0.0), (50.0, 0.0), (50.0, 0.3)):
        config = training_settings(steps=4, log_every=4, r_drop=weight, batching=batching)
        trainer = build(tmp_path / f"{weight}-{dropout}", config, settings(dropout=dropout))
        assert run(trainer)
        losses += [record["loss"] for record in map(json.loads, trainer.store.records()) if "loss" in record]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[2] > losses[0] + 3
