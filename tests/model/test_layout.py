"""The loss and the gradients of a batch do not depend on its layout, and sentences in one row are independent."""

from functools import partial

import numpy as np
import pytest
import torch
from test_model import OTHER_THAN_HEADS, build

from tests.support.pairs import Listed, Pairs
from transformer import layout
from transformer.config.vocabulary import BOS, EOS
from transformer.device import autocast
from transformer.fast import fused
from transformer.layout import coarse, joined, packed, padded, rounded, tabled
from transformer.perplexity import batch_loss

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def narrow_rows(monkeypatch):
    monkeypatch.setattr(layout, "WIDTH", 24)
    monkeypatch.setattr(layout, "STEP", 8)


def test_rounded():
    pairs = Listed(([[5] * 11, [7] * 3] * 17)[:17], ([[8] * 4, [9] * 8] * 17)[:17])
    batch = rounded(pairs, np.arange(17))
    assert (batch.source.ids_BS.shape, batch.target.ids_BS.shape) == ((18, 16), (18, 16))


def test_joined_rows_are_one_row_of_a_round_length():
    one = joined(Pairs(70, 5), np.arange(70))
    for rows in (one.source, one.target):
        real = rows.sentence_BS > 0
        assert rows.ids_BS.shape == (1, coarse(int(real.sum()), 32)) and not (real[:, 1:] > real[:, :-1]).any()


def sentences(rows):
    """Yield the ids of each sentence, row by row."""
    ids, numbers = rows.ids_BS.tolist(), rows.sentence_BS.tolist()
    for row, of in zip(ids, numbers):
        for number in range(1, max(of) + 1):
            yield [piece for piece, n in zip(row, of) if n == number]


@pytest.mark.parametrize("longest", [20, 90])  # wider than any other row
def test_packing_keeps_every_pair_once_whole_and_beside_its_other_side(longest):
    pairs, numbers = Pairs(300, longest), np.random.default_rng(1).permutation(300)
    batch = packed(pairs, numbers)
    together = list(zip(sentences(batch.source), sentences(batch.target), strict=True))
    expected = [pairs.pair(number) for number in numbers]
    assert together == [([*source, EOS], [BOS, *target]) for source, target in expected]
    assert (batch.source.sentence_BS.amax(1) == batch.target.sentence_BS.amax(1)).all(), "a row's pairs are whole"


def test_a_table_has_its_shape_whatever_is_in_it():
    pairs = Pairs(100, 12)
    for numbers in (np.arange(3), np.arange(30)):
        batch = tabled(pairs, numbers, 18, 24)
        for rows in (batch.source, batch.target):
            assert {tensor.shape for tensor in (rows.ids_BS, rows.position_BS, rows.sentence_BS)} == {(18, 24)}
        assert len(list(sentences(batch.source))) == len(numbers)


def test_a_table_whose_width_is_no_round_number_is_no_wider():
    pairs = Listed(*[[[4] * 10, [4] * 10, [4] * 19]] * 2)  # with EOS, 11 + 11 do not fit into 20
    assert tabled(pairs, np.arange(3), 3, 20).source.ids_BS.shape == (3, 20)


def loss_and_gradients(model, batch, precision):
    model.zero_grad()
    with autocast(CPU, precision):
        loss = batch_loss(model, batch, 0.1)
    loss.backward()
    return loss.item(), torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


@pytest.mark.parametrize(
    "layout", [rounded, packed, joined, partial(tabled, rows=24, width=32)], ids=["rounded", "packed", "joined", "tabled"]
)
@pytest.mark.parametrize(
    "variation, precision, loss_error, error",
    [*((each, "float32", 1e-5, 1e-5) for each in OTHER_THAN_HEADS), ({}, "bfloat16", 1e-3, 5e-2)],
    ids=str,
)
def test_all_layouts_give_the_same_loss_and_gradients(settings, variation, layout, precision, loss_error, error):
    model, pairs, numbers = build(settings(**variation), 90).train(), Pairs(41, 15), np.arange(41)
    loss, gradients = loss_and_gradients(model, padded(pairs, numbers), precision)
    other_loss, other_gradients = loss_and_gradients(model, layout(pairs, numbers), precision)
    assert other_loss == pytest.approx(loss, rel=loss_error)
    assert (other_gradients - gradients).norm() < error * gradients.norm()


def test_padding_beside_a_full_row_is_a_number(settings):
    """A target's padding attends to the source's padding, and a full row of sources has none."""
    model, pairs = build(settings(), 90), Listed([[5] * 23] * 4, [[6] * 2] * 4)
    batch = packed(pairs, np.arange(4))
    assert (batch.source.sentence_BS > 0).all() and (batch.target.sentence_BS == 0).any()
    hidden = fused.hidden(model, batch)
    hidden.sum().backward()
    assert hidden.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters())
