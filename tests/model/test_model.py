"""The model equals torch.nn.Transformer. Later positions and padding do not change the output of a position."""

import math

import pytest
import torch

from tests.support.pairs import Pairs
from tests.support.torch_twin import by_torch_names, logits_of, tables, twin_of
from transformer.alignment import attention_weights_of
from transformer.config.vocabulary import PAD
from transformer.decoders.steps import ModelStep
from transformer.layers import REFERENCE, sinusoids
from transformer.model import Transformer

VARIATIONS = [
    {},
    {"h": 1, "d_k": 32, "d_v": 32},
    {"d_k": 4},
    {"h": 3},  # 3 heads do not divide d_model, as d_k and d_v are free
    {"positions": "learned"},
    {"norm": "pre"},
    {"attention": "dot_product"},
    {"attention": "additive"},
    {"neighbourhood": 2},
]
OTHER_THAN_HEADS = [each for each in VARIATIONS if not {*each} & {"h", "d_k"}]


def build(config, vocabulary=50, layers=REFERENCE):
    torch.manual_seed(1)
    model = Transformer(config, vocabulary, layers).eval()
    for name, parameter in model.named_parameters():
        if "bias" in name or "norm" in name:  # the initial values of these would hide an error
            torch.nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.1)
    return model


def random_ids(*shape):
    return torch.randint(4, 50, shape)


def reference_of(model):
    """torch.nn.Transformer with the model's weights, in float64."""
    reference = twin_of(model.config)
    reference.load_state_dict({name: value.double() for name, value in by_torch_names(model.state_dict()).items()})
    return reference


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch_transformer(settings, norm):
    model, pairs = build(settings(norm=norm), 90), Pairs(5, 12)
    weights = {name: parameter.double() for name, parameter in model.named_parameters()}
    logits, _ = logits_of(model.config, weights, pairs, (range(5), []))
    source, target, labels = tables(pairs, range(5))
    torch.testing.assert_close(model(source, target)[labels != PAD], logits.float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variation", VARIATIONS, ids=str)
def test_step_by_step_equals_all_at_once(settings, variation):
    model = build(settings(**variation))
    source, target = random_ids(3, 6), random_ids(3, 7)
    source[0, 4:] = PAD
    with torch.no_grad():
        at_once = model(source, target)
        step, own = ModelStep(model, source), torch.arange(3)[:, None]
        steps = [(step(target[:, t : t + 1], own), step.hidden_BKD) for t in range(7)]
        logits, hidden = (torch.cat(parts, 1) for parts in zip(*steps))
    torch.testing.assert_close(logits, at_once, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(hidden, model.hidden(source, target), atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_attention_weights_equal_torch_s_and_leave_the_model_as_it_was(settings, norm):
    model, kept = build(settings(norm=norm)), {"encoder": [], "decoder": [], "cross": []}
    reference, source, target = reference_of(model), random_ids(2, 6), random_ids(2, 5)

    def of_each_head(module, inputs, options):
        return inputs, options | {"average_attn_weights": False}

    for stack, attention, kind in [
        (reference.encoder, "self_attn", "encoder"),
        (reference.decoder, "self_attn", "decoder"),
        (reference.decoder, "multihead_attn", "cross"),
    ]:
        for layer in stack.layers:
            module = getattr(layer, attention)
            module.register_forward_pre_hook(of_each_head, with_kwargs=True)
            module.register_forward_hook(lambda _, inputs, output, kind=kind: kept[kind].append(output[1].float()))
    scaled = model.embedding.double() * math.sqrt(32)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    reference(scaled[source] + sinusoids(6, 32), scaled[target] + sinusoids(5, 32), tgt_mask=causal)
    before = model(source, target)
    torch.testing.assert_close(attention_weights_of(model)(source, target), kept, atol=1e-5, rtol=1e-5)
    assert torch.equal(model(source, target), before)
    assert not any(module._forward_hooks for module in model.modules())


def test_sinusoids_grow_past_max_positions_and_learned_positions_share_the_last(settings):
    source, target = random_ids(1, 12), random_ids(1, 12)
    short, long = (build(settings(max_positions=m)) for m in (4, 64))
    torch.testing.assert_close(short(source, target), long(source, target))
    learned, longer = (build(settings(max_positions=m, positions="learned")) for m in (4, 12))
    tables = {name: table for name, table in learned.state_dict().items() if name.endswith("table")}
    state = learned.state_dict() | {name: torch.cat([table, table[-1:].expand(8, -1)]) for name, table in tables.items()}
    longer.load_state_dict(state)
    torch.testing.assert_close(learned(source, target), longer(source, target))
    assert len(tables) == 2


def test_initialisation(settings):
    torch.manual_seed(0)
    model = Transformer(settings(d_model=256, d_ff=512, d_k=64, d_v=64, positions="learned"), 4000)
    for table in (model.embedding, model.source_positions.table, model.target_positions.table):
        assert table.std().item() == pytest.approx(256**-0.5, rel=0.03)
    projection = model.encoder[0].self_attention.projection
    theirs = torch.nn.MultiheadAttention(256, 4).in_proj_weight
    assert projection.abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=0.02)
    assert projection.std().item() == pytest.approx(theirs.std().item(), rel=0.02)
    inner = model.decoder[0].feed_forward.inner
    assert inner.weight.abs().max().item() == pytest.approx(math.sqrt(6 / (256 + 512)), rel=0.02)
    assert inner.bias.abs().max() == 0
    vector = Transformer(settings(attention="additive", d_k=256), 9).encoder[0].self_attention.v_HE
    assert vector.abs().max().item() == pytest.approx(math.sqrt(6 / (4 + 256)), rel=0.02)
