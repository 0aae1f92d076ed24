"""Portable arithmetic: its bytes, its operations, and which processes use it."""

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pipeline import code
from pipeline.running import hardware
from pipeline.settings import arithmetic as chosen
from pipeline.settings.arithmetic import portable
from pipeline.settings.machine import machine
from tests.support.projects import ROOT
from tests.support.refusals import refused
from transformer import arithmetic
from transformer.config.arithmetic import VARIABLES

# Of `python -m tests.portable`, with torch and numpy of constraints.txt. docs/reference.md lists the CPUs.
WEIGHTS, TRANSLATIONS = "a176698d7899f64d", "c4151a5a6ef9dfbc"
LOSSES = [4.800024, 4.564286, 4.386283]  # of training after 10 and 20 steps, and of dev


def digests(**environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.portable"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def pinned(*packages: str) -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return {name: re.findall(rf"^{name}==(.*)$", text, re.MULTILINE)[0] for name in packages}


@pytest.mark.slow
def test_twenty_steps_and_fifty_translations_have_the_same_bytes_on_every_cpu():
    """With other versions, rounding may differ: then two processes are equal, and the losses are close."""
    found = digests(ATEN_CPU_CAPABILITY="default", OPENBLAS_CORETYPE="Sandybridge")  # both are overridden
    assert found["reason"] is None
    losses = [record.get("loss", record.get("dev_loss")) for record in found["records"]]
    here = {"torch": torch.__version__.partition("+")[0], "numpy": np.__version__}
    if here == pinned("torch", "numpy"):
        assert (found["weights"], found["translations"], losses) == (WEIGHTS, TRANSLATIONS, LOSSES)
    else:
        assert losses == pytest.approx(LOSSES, abs=1e-3) and found == digests()


@pytest.mark.parametrize(
    "stage, name, changes, expected",
    [
        ("train", "demo-tiny", {}, True),
        ("decode", "demo-tiny", {}, True),
        ("train", "base", {}, False),
        ("train", "base", {"runs": {"base": {"arithmetic": "portable"}}}, True),
        ("decode", "base", {"runs": {"base": {"arithmetic": "portable"}}}, False),
        ("decode_set", "one", {}, False),
        ("decode_set", "one", {"decodings": {"one": {"arithmetic": "portable"}}}, True),
        ("decode_set", "one", {"base": {"decoding": {"arithmetic": "portable"}}}, True),
        ("back_translate", "two", {"back_translations": {"two": {"decoding": {"arithmetic": "portable"}}}}, True),
        ("back_translate", "two", {}, False),
        ("reverse_score", "three", {"base": {"decoding": {"arithmetic": "portable"}}}, True),
        ("tune", "four", {}, True),
    ],
)
def test_the_arithmetic_of_a_stage_follows_from_its_settings(params, stage, name, changes, expected):
    """test_end_to_end.py has a process in portable arithmetic."""
    entries = {
        "runs": {"demo-tiny": {"model": "tiny"}, "base": {"model": "base"}},
        "decodings": {"one": {"model": "demo-tiny/average"}},
        "back_translations": {"two": {"decoding": {}}},
        "reverse_scores": {"three": {"model": "demo-tiny/average"}},
        "searches": {"four": {"model": "tiny"}},
    }
    given = params | entries
    for block, of in changes.items():
        given = given | {block: {key: given[block][key] | of.get(key, {}) for key in given[block]}}
    assert portable(given, stage, name) is expected


def test_each_stage_with_this_setting_is_known_by_its_module_in_whatever_folder(monkeypatch):
    asked: list[str] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(chosen, "portable", lambda params, stage, name: asked.append(stage))
    for path in code.scripts().values():
        chosen.prepare(".".join(path.with_suffix("").parts), ["any"])
    assert sorted(asked) == sorted(chosen.STAGES)


def test_a_stage_itself_says_that_params_yaml_cannot_be_read(here):
    """A folder stands for a file of another user: the system refuses both."""
    (here / "params.yaml").mkdir()
    chosen.prepare("pipeline.train", ["any"])


def test_what_keeps_a_process_from_portable_arithmetic_is_said_once(params, monkeypatch, capsys):
    config = machine({"machine": params["machine"] | {"device": "cpu"}})
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(arithmetic, "kernels_of_numpy", lambda: None)
    for _ in range(2):
        hardware.torch_device(config, torch.get_num_threads(), "portable")
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "depend on the type of the CPU: numpy multiplies by another library" in said
    monkeypatch.delenv("MKL_CBWR")
    assert "MKL_CBWR had to be set" in arithmetic.make_portable() and not arithmetic.portable()


def test_portable_arithmetic_is_not_in_bfloat16(training_settings, decoding_settings):
    for settings in (training_settings, decoding_settings):
        with refused("precision: 'bfloat16' is not possible; arithmetic: portable is in float32"):
            settings(precision="bfloat16", arithmetic="portable")


@pytest.mark.parametrize("sizes", [(3, 4, 7, 9, 32, 32), (2, 2, 5, 5, 16, 32), (1, 1, 1, 70, 64, 64)])
@pytest.mark.parametrize("mask", ["none", "some", "all of a row"])
def test_attention_is_torch_s(sizes, mask):
    batch, heads, queries, keys, narrow, wide = sizes
    torch.manual_seed(1)
    shapes = [(queries, narrow), (keys, narrow), (keys, wide)]
    given = [torch.randn(batch, length, heads, width).transpose(1, 2).requires_grad_() for length, width in shapes]
    hidden = torch.rand(batch, 1, queries, keys) < 0.5
    hidden[..., 0] = mask == "all of a row"
    allowed = None if mask == "none" else torch.zeros(hidden.shape).masked_fill_(hidden, -math.inf)
    scale = 1 / math.sqrt(narrow)
    expected = F.scaled_dot_product_attention(*given, allowed, scale=scale)
    gradient = torch.randn_like(expected)
    known = torch.autograd.grad(expected, given, gradient)
    with torch.no_grad():
        out, logarithms = arithmetic.attention(*given, attn_mask=allowed, scale=scale)
        found = arithmetic.attention_backward(gradient, *given, out, logarithms, 0.0, False, attn_mask=allowed, scale=scale)
    for one, other in zip((out, *found), (expected, *known)):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_products_are_torch_s(dtype):
    torch.manual_seed(1)
    a, b, bias = torch.randn(5, 7, dtype=dtype), torch.randn(3, 7, dtype=dtype).T, torch.randn(3, dtype=dtype)
    total = torch.randn(5, 3, dtype=dtype)
    tolerance = 5e-2 if dtype == torch.bfloat16 else 1e-5
    pairs = [
        (arithmetic.product(a, b), a @ b),
        (arithmetic.product(a, b, out=torch.empty(0, dtype=dtype)), a @ b),
        (arithmetic.product(a[None].expand(2, -1, -1), b[None].expand(2, -1, -1)), (a @ b).expand(2, -1, -1)),
        (arithmetic.sum_of(bias, a, b), torch.addmm(bias, a, b)),
        (arithmetic.sum_of(bias, a, b, beta=2, alpha=3), torch.addmm(bias, a, b, beta=2, alpha=3)),
        (arithmetic.sum_of(bias * math.nan, a, b, beta=0), torch.addmm(bias * math.nan, a, b, beta=0)),
        (arithmetic.add(total.clone(), a, b, beta=2, alpha=3), total.clone().addmm_(a, b, beta=2, alpha=3)),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
