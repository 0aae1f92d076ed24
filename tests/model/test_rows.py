"""Every row of the paper's tables trains for one step, at its real width, with a vocabulary of a hundred pieces."""

from dataclasses import replace

import pytest
import torch

from pipeline.settings.params import load
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import with_studies
from tests.pairs import Pairs
from transformer.data import Batches
from transformer.layout import padded
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.perplexity import batch_loss

PAPER = with_studies(load())["studies"]["paper"]["runs"]


@pytest.mark.slow
@pytest.mark.parametrize("run", PAPER)
def test_one_step(params, run):
    _, model_config, config = run_settings({**params, "runs": PAPER}, run)
    if model_config.N == 6:  # one layer tests as much as six; rows with another N keep theirs
        model_config = replace(model_config, N=1)
    torch.manual_seed(config.seed)
    model, pairs = Transformer(model_config, 100), Pairs(2, 6)
    batch = padded(pairs, Batches(pairs, config.seed, config.batch_tokens, config.max_length).batch(0))
    optimiser = adam(model.parameters(), config)
    optimiser.param_groups[0]["lr"] = 1e-4
    before = batch_loss(model.eval(), batch, 0.0).item()
    batch_loss(model.train(), batch, config.label_smoothing).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimiser.step()
    assert batch_loss(model.eval(), batch, 0.0).item() < before
