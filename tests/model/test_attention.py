"""Attention gives the results of torch.nn.functional and of torch.nn.MultiheadAttention."""

import pytest
import torch
import torch.nn.functional as F

from transformer.attention import Masks, MultiHeadAttention, attention_weights, position_mask
from transformer.device import autocast
from transformer.model import Transformer

CPU = torch.device("cpu")


def random_heads(queries=5, keys=7, d_k=8, d_v=8):
    torch.manual_seed(0)
    return torch.randn(2, 4, queries, d_k), torch.randn(2, 4, keys, d_k), torch.randn(2, 4, keys, d_v)


def filled(config):
    module = MultiHeadAttention(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module


def test_a_module_scales_by_its_own_d_k(settings):
    """Also where it is not d_model / h, as in rows B of Table 3."""
    module, x = filled(settings(d_k=2, d_v=3)), torch.randn(2, 5, 32)
    q, k, v = module.projections(x, x)
    expected = module.output(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    output = module(x, x, torch.ones(2, 1, 5, 5, dtype=torch.bool))
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=1e-5)


def test_a_process_with_a_model_does_not_use_cudnn_s_attention(settings):
    torch.backends.cuda.enable_cudnn_sdp(True)
    Transformer(settings(), 10)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()


def test_a_query_without_keys_spoils_neither_output_nor_gradients():
    q, k, v = (tensor.requires_grad_() for tensor in random_heads())
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[:, :, 3] = False
    output = attention_weights(q, k, mask, 8**-0.5) @ v
    output.sum().backward()
    assert all(tensor.isfinite().all() for tensor in (output, q.grad, k.grad, v.grad))


def test_on_a_cpu_no_fused_attention_is_trained_in_bfloat16(settings, monkeypatch):
    """The backward pass of fused attention would take several times as long as in float32. The softmax is in float32."""
    seen, softmax = [], torch.Tensor.softmax
    monkeypatch.setattr(torch.Tensor, "softmax", lambda x, dim: seen.append(x.dtype) or softmax(x, dim))
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *q, **k: seen.append("fused") or fused(*q, **k))
    module, x, outputs = MultiHeadAttention(settings()), torch.randn(2, 6, 32), {}
    torch.nn.init.normal_(module.projection, std=0.3)
    for precision in ("bfloat16", "float32"):
        with autocast(CPU, precision):
            outputs[precision] = module(x, x, position_mask(torch.arange(6), True, 0))
    assert seen == [torch.float32, "fused"]
    assert outputs["bfloat16"].dtype == torch.bfloat16
    torch.testing.assert_close(outputs["bfloat16"].float(), outputs["float32"], atol=0.02, rtol=0.02)


@pytest.mark.parametrize("kind", ["scaled_dot_product", "dot_product", "additive"])
def test_the_output_is_that_of_the_weights(settings, kind):
    module, x, causal = filled(settings(attention=kind)), torch.randn(2, 6, 32), position_mask(torch.arange(6), True, 0)
    q, k, v = module.projections(x, x)
    weights = module.weights(q, k, causal)
    expected = module.output((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(module(x, x, causal), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 6))
    assert weights.triu(1).abs().max() == 0, "a weight on a later position"


def test_masks_of_padded_rows():
    assert position_mask(torch.arange(3), False, 0).all()
    assert position_mask(torch.arange(3), True, 0).tolist() == torch.ones(3, 3).tril().bool().tolist()
    near = position_mask(torch.arange(4), True, 1)
    assert near.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    masks = Masks.of(torch.tensor([[5, 6, 0]]), torch.tensor([[2, 7]]), 1)
    assert masks.cross.tolist() == [[[[True, True, False]]]] and masks.decoder.tolist() == [[True, False], [True, True]]
    assert masks.encoder.int().tolist() == [[[[1, 1, 0], [1, 1, 0], [0, 1, 0]]]]


def test_other_kinds_of_weights_by_hand(settings):
    q, k, _ = random_heads(2, 3)
    module = filled(settings(attention="additive"))
    scores = torch.stack([(module.v_HE[1] * torch.tanh(q[0, 1, 1] + k[0, 1, key])).sum() for key in range(3)])
    torch.testing.assert_close(module.weights(q, k, None)[0, 1, 1], scores.softmax(0))
    weights = filled(settings(attention="dot_product")).weights(q, k, None)
    torch.testing.assert_close(weights, (q @ k.transpose(2, 3)).softmax(3))
