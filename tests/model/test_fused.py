"""The fast layers: which keys attention takes, and their kernels in Triton's interpreter."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.support.projects import ROOT
from transformer.batch import Rows
from transformer.fast import loss, proof
from transformer.fast.fused import FastDecoderLayer, FastEncoderLayer, takes_spans
from transformer.fast.spans import TILE, Spans
from transformer.layers import REFERENCE, EncoderLayer, Layers
from transformer.model import Transformer

GPU = torch.cuda.is_available()


def rows(lengths: list[int], padding: int) -> Rows:
    """One row that holds sentences of these lengths, then padding."""
    numbers = [number for number, length in enumerate(lengths, 1) for _ in range(length)]
    tensor = torch.tensor([numbers + padding * [0]])
    return Rows(tensor, tensor, tensor)


@pytest.mark.parametrize("padding", [0, 5, 100])
def test_the_spans_of_a_tile_hold_its_sentences_and_little_else(padding):
    draw = np.random.default_rng(1)
    lengths = [draw.integers(1, 50, 30).tolist() for _ in range(2)]
    queries, keys = rows(lengths[0], padding=padding), rows(lengths[1], padding=7)
    found = Spans.between(queries, keys)
    for own, other, spans in ((queries, keys, found.keys_BT2), (keys, queries, found.queries_BT2)):
        sentences, others = own.sentence_BS[0], other.sentence_BS[0]
        assert spans.shape == (1, -(-len(sentences) // TILE), 2)
        for tile, (begin, end) in zip(sentences.split(TILE), spans[0].tolist()):
            inside = torch.isin(others, tile[tile > 0])
            assert inside.sum() == max(0, end - begin) and inside[begin:end].all()


def test_padding_attends_to_nothing():
    found = Spans.between(rows([3, 4], padding=9), rows([2, 5], padding=4))
    equal = found.query_BQ[0, :, None] == found.key_BK[0]
    assert not equal[7:].any() and not equal[:, 7:].any() and equal[:3, :2].all()


def test_only_plain_attention_of_fast_layers_has_kernels(settings):
    fast = Layers(FastEncoderLayer, FastDecoderLayer)

    def takes(layers=fast, **changes):
        return takes_spans(Transformer(settings(**{"d_model": 64, "h": 4, "d_k": 16, "d_v": 16, **changes}), 50, layers))

    assert takes() and not takes(REFERENCE)
    for changes in ({"d_k": 8}, {"d_v": 24}, {"attention": "additive"}, {"attention_dropout": 0.1}, {"neighbourhood": 3}):
        assert not takes(**changes), changes


def spoiled(forward: float = 1.0, backward: float = 1.0) -> type[EncoderLayer]:
    """A layer whose output or gradient is multiplied by a factor."""

    class Spoiled(EncoderLayer):
        def forward(self, x, mask):
            x = forward * super().forward(x, mask)
            x.register_hook(lambda gradient: backward * gradient)
            return x

    return Spoiled


def raising(error: Exception) -> type[EncoderLayer]:
    class Raising(EncoderLayer):
        def forward(self, x, mask):
            raise error

    return Raising


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_layers_that_raise_or_lie_are_found_out_and_no_random_number_is_drawn(settings, precision):
    def found(encoder: type[EncoderLayer]) -> str | None:
        return proof.fault(REFERENCE._replace(encoder=encoder), settings(), 400, torch.device("cpu"), precision)

    before = torch.get_rng_state()
    assert found(EncoderLayer) is None
    for factors in ((1.1, 1.0), (1.0, 1.5), (1.0, 0.0), (float("nan"), 1.0), (1.0, float("nan"))):
        assert "they differ from torch's operations" in found(spoiled(*factors)), factors
    for message in ("out of resource: shared memory, Required: 300000", "gcc: error\nmore", ""):
        said = found(raising(RuntimeError(message)))
        assert (message.split("\n")[0] or "no message") in said and "\n" not in said
    with pytest.raises(torch.OutOfMemoryError):
        found(raising(torch.OutOfMemoryError()))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels():
    """On a GPU, or in Triton's interpreter."""
    environment = os.environ | {"TRITON_INTERPRET": str(int(not GPU)), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "tests.interpreted"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_gradient_in_bfloat16_is_scaled_by_a_float32_factor():
    """1 / target tokens in bfloat16 would change all gradients by the same 0.1%."""
    gradient, factor = torch.linspace(1, 2, 1000).bfloat16(), torch.tensor(1 / 23456)
    ours = loss.scaled(gradient, torch.bfloat16, factor)
    assert ours.dtype == torch.bfloat16
    mean = (ours.double() / (gradient.double() / 23456)).mean()
    torch.testing.assert_close(mean, torch.ones_like(mean), atol=2e-4, rtol=0)
