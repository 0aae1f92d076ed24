"""Attention gives the results of torch.nn.functional and of torch.nn.MultiheadAttention."""

import contextlib

import pytest
import torch
import torch.nn.functional as F

from transformer.attention import MultiHeadAttention, attention_weights, kernels, position_mask
from transformer.device import autocast


def random_heads(queries=5, keys=7, d_k=8, d_v=8):
    torch.manual_seed(0)
    return torch.randn(2, 4, queries, d_k), torch.randn(2, 4, keys, d_k), torch.randn(2, 4, keys, d_v)


@pytest.mark.parametrize("d_v", [8, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_scaled_dot_product_attention(masked, d_v):
    q, k, v = random_heads(d_v=d_v)
    mask = torch.rand(2, 1, 5, 7) < 0.7 if masked else None
    if masked:
        mask[..., 0] = True
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(attention_weights(q, k, mask, 8**-0.5) @ v, expected, atol=1e-6, rtol=1e-5)


def test_attention_on_a_gpu_does_not_use_cudnn():
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with kernels(torch.device("cuda")):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_threads_that_decode_and_trace_at_once_use_no_cudnn_until_the_last_has_ended():
    before = torch.backends.cuda.cudnn_sdp_enabled()
    first, second = kernels(torch.device("cuda")), kernels(torch.device("cuda"))
    with contextlib.ExitStack() as outer:
        with contextlib.ExitStack() as inner:
            inner.enter_context(first)
            outer.enter_context(second)
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


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
    module, x = MultiHeadAttention(settings()), torch.randn(2, 6, 32)
    torch.nn.init.normal_(module.projection, std=0.3)
    outputs = {}
    for precision in ("bfloat16", "float32"):
        with autocast(torch.device("cpu"), precision):
            outputs[precision] = module(*module.self_projections(x), None, causal=True)
    assert seen == [torch.float32, "fused"]
    assert outputs["bfloat16"].dtype == torch.bfloat16
    torch.testing.assert_close(outputs["bfloat16"].float(), outputs["float32"], atol=0.02, rtol=0.02)


@pytest.mark.parametrize("kind", ["scaled_dot_product", "dot_product", "additive"])
def test_the_output_is_that_of_the_weights(settings, kind):
    module = MultiHeadAttention(settings(attention=kind))
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    q, k, v = module.self_projections(torch.randn(2, 6, 32))
    weights = module.weights(q, k, None, causal=True)
    torch.testing.assert_close(module(q, k, v, None, causal=True), module.attended(weights, v), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 6))
    assert weights.triu(1).abs().max() == 0, "a weight on a later position"


def test_heads_equal_torch_multi_head_attention(settings):
    module = MultiHeadAttention(settings())
    reference = torch.nn.MultiheadAttention(32, 4, batch_first=True)
    torch.nn.init.normal_(reference.in_proj_bias)
    torch.nn.init.normal_(reference.out_proj.bias)
    reference_state = reference.state_dict()
    names = {"projection": "in_proj_weight", "projection_bias": "in_proj_bias"}
    names |= {"output.weight": "out_proj.weight", "output.bias": "out_proj.bias"}
    module.load_state_dict({ours: reference_state[theirs] for ours, theirs in names.items()})
    x, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    expected = reference(x, memory, memory, key_padding_mask=padding)[0]
    result = module.output(module(module.queries(x), *module.keys_values(memory), ~padding[:, None, None, :]))
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


def test_position_mask():
    cpu = torch.device("cpu")
    assert position_mask(3, False, 0, cpu) is None
    assert position_mask(3, True, 0, cpu).tolist() == torch.ones(3, 3).tril().bool().tolist()
    near = position_mask(4, True, 1, cpu)
    assert near.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_additive_attention_by_hand(settings):
    module = MultiHeadAttention(settings(attention="additive"))
    torch.nn.init.normal_(module.v_HE)
    q, k, _ = random_heads(2, 3)
    weights = module.weights(q, k, None)
    scores = torch.stack([(module.v_HE[1] * torch.tanh(q[0, 1, 1] + k[0, 1, key])).sum() for key in range(3)])
    torch.testing.assert_close(weights[0, 1, 1], scores.softmax(0))
