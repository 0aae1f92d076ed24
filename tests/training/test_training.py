"""Training: the paper's loss and schedule, gradient accumulation, and exact resumption."""

import importlib.util
import json
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pipeline.scoring.calibration import confidences
from tests.support.refusals import refused
from tests.support.torch_twin import summed_loss
from tests.support.trainers import CPU, files, run
from transformer import fast, perplexity
from transformer import step as one_step
from transformer.checkpoint import average, read_tensors, write_tensors
from transformer.config.reading import UserError
from transformer.data import Batches
from transformer.device import precision_of
from transformer.fast import proof
from transformer.fast.dropout import SOURCE, Dropout
from transformer.layers import REFERENCE, EncoderLayer
from transformer.memory import out_of_memory
from transformer.optimisation import learning_rate
from transformer.store import Store


def saved(folder):
    """The state and the weights in a folder, without the log."""
    return {path: content for path, content in files(folder).items() if path.suffix == ".safetensors"}


@pytest.mark.parametrize("key, value", [("threads", 2), ("precision", "bfloat16"), ("device", "cuda")])
def test_a_state_made_otherwise_is_refused_and_a_resumed_one_is_not_kept_mapped(training, tmp_path, key, value):
    trainer = training()
    run(trainer, until=4)
    with pytest.raises(UserError, match=key):
        Store(tmp_path, trainer.store.keep, trainer.store.identity | {key: value}).resume(trainer.state)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(UserError, match=r"lacks 'patience', .* code that saved it"):
        patch.setattr(trainer.state, "patience", 1, raising=False)  # as later code would save
        Store(tmp_path, trainer.store.keep, trainer.store.identity).resume(trainer.state)
    assert training().state.step == 4 and str(tmp_path) not in Path("/proc/self/maps").read_text()


def gradients(trainer):
    """Compute the gradients of the first batch. Returns its loss."""
    return trainer.step.gradients(trainer.batches, trainer.prepare(0)[1], 150, (0, 0))


@pytest.mark.parametrize("batching", ["by_length", "mixed"])
def test_threads_share_a_batch_and_change_no_gradient(training, batching):
    """In parts of 50 tokens, some shares have no rows, or only rows of padding."""
    results, sizes = [], {"batch_tokens": 200, "micro_batch_tokens": 50, "batching": batching}
    for threads in (1, 2, 3):
        trainer = training(f"{threads}", precision="bfloat16", threads=threads, **sizes)
        loss = gradients(trainer)
        results.append([loss.float(), *(p.grad for p in trainer.state.model.parameters())])
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, atol=5e-3, rtol=3e-2)
    exact = gradients(training("exact", **sizes))
    assert not torch.isclose(results[0][0].double(), exact, rtol=2e-6), "it is rounded"


def test_the_time_adds_up_over_starts(training):
    seconds = 0.0
    for until in (4, 8):
        trainer = training()
        run(trainer, until)
        assert seconds < trainer.state.seconds < seconds + 1000
        seconds = trainer.state.seconds = trainer.state.seconds + 1000
        trainer.store.save(trainer.state)


def test_a_state_is_saved_in_time_also_between_checkpoints(training, monkeypatch):
    """A step takes a second. A checkpoint, which is only the weights, does not put the next state off."""
    trainer, now, saved = training(steps=20, checkpoint_every=4, keep=5, evaluate_every=20), [0.0], []
    trainer.save_every_seconds, whole = 5.0, trainer.store.save
    monkeypatch.setattr("transformer.training.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(trainer.store, "save", lambda state: saved.append(state.step) or whole(state))
    trainer.run(lambda record: now.append(now.pop() + 1), lambda: False)
    assert saved == [6, 12, 18, 20]


def REFUSED():
    return RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12")


def short_of_memory(monkeypatch, tokens, error=REFUSED, module=one_step):
    """Make `module.batch_loss` fail for more than `tokens` target tokens, in training after a backward pass."""
    whole = module.batch_loss

    def batch_loss(model, batch, *options):
        summed = whole(model, batch, *options)
        if len(batch.labels_N) > tokens:
            if torch.is_grad_enabled():
                summed.backward()
            raise error()
        return summed

    monkeypatch.setattr(module, "batch_loss", batch_loss)


@pytest.fixture
def two(training):
    """`two(...)`: two equal trainings with large parts, and the list of what the second warns of."""

    def made(**differences):
        one, other = (training(name, **{"batch_tokens": 200, "micro_batch_tokens": 200, **differences}) for name in "ab")
        said: list[str] = []
        other.step.warn = said.append
        return one, other, said

    return made


@pytest.mark.parametrize("batching, threads, error", [("by_length", 1, REFUSED), ("mixed", 2, torch.OutOfMemoryError)])
def test_a_step_redone_in_smaller_parts_has_the_gradients_of_one_that_was_not(two, monkeypatch, batching, threads, error):
    """The lower limit is reported once and kept."""
    undisturbed, short, said = two(batching=batching, threads=threads)
    expected = gradients(undisturbed)
    short_of_memory(monkeypatch, 60, error)
    for _ in range(2):
        torch.testing.assert_close(gradients(short), expected, rtol=1e-5, atol=0)
        for one, other in zip(undisturbed.state.model.parameters(), short.state.model.parameters()):
            torch.testing.assert_close(one.grad, other.grad, atol=1e-6, rtol=1e-5)
    assert len(said) == 1 and f"at most {short.state.micro_batch_tokens} tokens" in said[0]
    assert 20 <= short.state.micro_batch_tokens <= 100


def test_a_step_is_repeated_when_every_share_has_ended_and_its_tensors_are_freed(training, monkeypatch):
    """A share that still ran would draw from the generator that the repeated step seeds."""
    trainer = training(threads=2)
    first, ended, kept, seen = trainer.step.generators[0], threading.Event(), [], []
    whole, divide = one_step.batch_loss, trainer.step.divide

    def batch_loss(model, batch, *options):
        if not seen and SOURCE.generator is first:
            tensor = torch.zeros(1000)
            kept.append(weakref.ref(tensor))
            raise torch.OutOfMemoryError
        if not seen:
            time.sleep(0.5)
            ended.set()
        return whole(model, batch, *options)

    monkeypatch.setattr(one_step, "batch_loss", batch_loss)
    trainer.step.warn = print
    parts = trainer.prepare(0)
    trainer.prepare = lambda step: parts
    trainer.step.divide = lambda *given: seen.append((ended.is_set(), kept[0]())) or divide(*given)
    gradients(trainer)
    assert seen == [(True, None)]


def no_memory(*_, **__):
    raise torch.OutOfMemoryError


@pytest.mark.parametrize(
    "place, name, said",
    [
        (perplexity, "batch_loss", ["on a single pair: lower training.max_length"]),
        (one_step, "batch_loss", ["on a single pair: lower training.max_length"]),
        (torch.optim.AdamW, "step", ["for Adam's moments: lower training"]),
        (Batches, "lay_out", ["for the next batches: lower training"]),
    ],
)
def test_memory_that_does_not_suffice_is_one_line(training, monkeypatch, place, name, said):
    monkeypatch.setattr(place, name, no_memory)
    with refused("out of memory ", *said):
        run(training())


def test_a_dev_loss_for_which_memory_runs_out_is_of_smaller_batches(two, monkeypatch):
    undisturbed, short, said = two(steps=2, checkpoint_every=2, evaluate_every=2)
    run(undisturbed)
    short_of_memory(monkeypatch, 60, torch.OutOfMemoryError, perplexity)
    run(short)
    assert short.state.best_dev_loss == pytest.approx(undisturbed.state.best_dev_loss, rel=1e-5)
    assert len(said) == 1 and f"at most {short.state.micro_batch_tokens} tokens" in said[0]


@pytest.mark.slow
def test_a_training_for_which_memory_ran_out_resumes_exactly(tmp_path, monkeypatch, training):
    """Memory is short in the first two steps only. The parts stay small afterwards, although memory would suffice."""
    for name, stops in {"whole": [None], "parts": [6, None]}.items():
        for stop in stops:
            trainer = training(name, model={"dropout": 0.3}, batch_tokens=200, micro_batch_tokens=200)
            trainer.step.warn = print
            with monkeypatch.context() as patch:
                if trainer.state.step == 0:
                    short_of_memory(patch, 60)
                run(trainer, until=min(stop or 2, 2))
            run(trainer, until=stop)
    one, other = (read_tensors(tmp_path / name / "state.safetensors")[0] for name in ("whole", "parts"))
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


def test_out_of_memory_is_told_from_other_errors():
    for allocate in (lambda: torch.empty(2**58), lambda: torch.empty(2**32, 2**32), lambda: np.empty(2**50)):
        with pytest.raises((RuntimeError, MemoryError)) as raised:
            allocate()
        assert out_of_memory(raised.value)
    of_library = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    assert out_of_memory(torch.OutOfMemoryError()) and out_of_memory(RuntimeError(of_library))
    assert not out_of_memory(RuntimeError("shapes do not match"))


def dev_steps(trainer):
    return [record["step"] for record in map(json.loads, trainer.store.records()) if "dev_loss" in record]


def test_the_last_dev_loss_is_of_the_last_weights(training):
    """Patience ends the training at a checkpoint where no dev loss is due."""
    trainer = training(steps=40, patience=1, evaluate_every=3, checkpoint_every=4, lr_scale=5.0)
    assert run(trainer)
    end = trainer.state.step
    assert end < 40 and end % 3 and end % 4 == 0
    assert dev_steps(trainer) == [*range(3, end, 3), end]
    assert trainer.store.weights()[-1][0] == end


@pytest.mark.parametrize("losses", [{3: 3.0, 6: 4.0, 8: 2.0, 9: 3.5, 12: 3.6}, {3: 3.0, 6: 3.0, 8: 3.0}])
def test_a_new_best_at_the_checkpoint_of_patience_goes_on_and_an_equal_loss_is_none(training, monkeypatch, losses):
    trainer = training(steps=40, patience=1, evaluate_every=3, checkpoint_every=4)
    monkeypatch.setattr(trainer, "dev_loss", lambda: losses[trainer.state.step])
    assert run(trainer)
    assert dev_steps(trainer) == list(losses)


@pytest.mark.parametrize(
    "spoil, said",
    [
        ("start", r"no longer a number at step 5; .*state\.safetensors\. Try .* lr_scale"),
        ("weight", "a weight or a moment of Adam is not finite at step 8"),
        ("moment", "a weight or a moment of Adam is not finite at step 8"),
    ],
)
def test_what_is_not_finite_is_not_saved(training, tmp_path, spoil, said):
    """Step 8 is a checkpoint. No loss up to that step shows the NaN that the optimiser makes in it."""
    trainer = training(log_every=4)
    run(trainer, until=4)
    good, step = saved(tmp_path), trainer.state.optimiser.step
    weight = trainer.state.model.embedding

    def spoilt():
        step()
        tensor = weight if spoil == "weight" else trainer.state.optimiser.state[weight]["exp_avg_sq"]
        if trainer.state.step == 8:
            tensor.data[5, 0] = float("nan")

    if spoil == "start":
        weight.data[5] = float("nan")
    else:
        trainer.state.optimiser.step = spoilt
    with pytest.raises(UserError, match=said):
        run(trainer)
    assert saved(tmp_path) == good
    assert [json.loads(line)["step"] for line in trainer.store.records()] == ([4] if spoil == "start" else [4, 5, 8])


@pytest.mark.parametrize("log_every", [10, 60])
def test_a_loss_that_explodes_stops_before_a_state_is_saved(training, tmp_path, log_every):
    trainer = training(steps=60, lr_scale=30.0, log_every=log_every, checkpoint_every=30, evaluate_every=60)
    with pytest.raises(UserError, match=r"exploded: .* per piece \(limit 22\.5\) at step \d0; no state was saved before"):
        run(trainer)
    assert not saved(tmp_path)
    assert run(training(schedule="no_warmup", warmup=40, lr_scale=3.0, log_every=1)), "this loss does not explode"


@pytest.mark.parametrize("p", [0.1, 0.3, 0.999995])
def test_dropout_drops_and_scales(p):
    torch.manual_seed(0)
    x = torch.ones(1000, 1001, requires_grad=True)
    module = Dropout(p)
    y = module(x)
    assert y.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)])
    assert (y == 0).float().mean().item() == pytest.approx(p, abs=0.002)
    for column in range(4):  # four elements share a draw
        assert (y[:, column::4] == 0).float().mean().item() == pytest.approx(p, abs=0.004)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert module.eval()(x) is x
    torch.manual_seed(0)
    assert torch.equal(module.train()(x), y)


def test_without_warmup_the_rate_starts_at_the_peak_and_falls_as_with_it(training_settings):
    rise, none = (training_settings(warmup=4000, schedule=name) for name in ("warmup", "no_warmup"))
    peak = learning_rate(4000, 512, rise)
    assert [learning_rate(step, 512, none) for step in (1, 2000, 4000)] == pytest.approx([peak] * 3)
    assert learning_rate(7, 512, training_settings(warmup=4000, lr_scale=2.0)) == 2 * learning_rate(7, 512, rise)
    for step in (4001, 16_000, 100_000):
        assert learning_rate(step, 512, none) == learning_rate(step, 512, rise) < peak


@pytest.mark.parametrize(
    "device, found, expected",
    [
        ("cpu", {"amx_bf16": True, "avx512_bf16": False}, "bfloat16"),
        ("cpu", {"amx_bf16": False, "avx512_bf16": True}, "bfloat16"),
        ("cpu", {"amx_bf16": False, "avx512_f": True}, "float32"),
        ("cpu", None, "float32"),  # a torch that cannot tell
        ("cuda", (7, 5), "float32"),
        ("cuda", (8, 0), "bfloat16"),
    ],
)
def test_auto_is_bfloat16_where_there_are_units_for_it(monkeypatch, device, found, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: found)
    if found is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert precision_of("auto", torch.device(device)) == expected
    assert [precision_of(name, CPU) for name in ("float32", "bfloat16")] == ["float32", "bfloat16"]


def test_what_keeps_a_gpu_from_our_kernels_is_said_and_torch_s_operations_are_used(monkeypatch, tmp_path, settings):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Tesla V100")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    for capability, triton, said in [
        ((7, 0), "found", "Tesla V100 is too old for the kernels"),
        ((9, 0), "found", "no C compiler"),
        ((9, 0), None, "Triton is not installed"),
    ]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_, found=capability: found)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=triton: found)
        assert said in fast.hindrance.__wrapped__()
    cuda = torch.device("cuda")
    for found, failed in (("a reason", None), (None, "a failure"), (None, None)):
        monkeypatch.setattr(fast, "hindrance", lambda found=found: found)
        monkeypatch.setattr(proof, "fault", lambda *_, failed=failed: failed)
        assert (fast.layers(cuda).encoder is not EncoderLayer) == (not found)
        chosen, reason = proof.proved(cuda, "auto", settings(), 99, "bfloat16")
        assert reason == (found or failed) and (chosen == REFERENCE) == bool(reason)
        assert proof.proved(cuda, "off", settings(), 99, "bfloat16") == (REFERENCE, None)
        assert fast.layers(cuda, "off") == REFERENCE
        assert fast.layers(CPU).encoder is EncoderLayer and proof.proved(CPU, "auto", settings(), 99, "float32")[1] is None


@pytest.mark.parametrize("trains", [True, False])
def test_a_dev_loss_is_the_mean_of_torch_s_over_all_pieces_in_float32(settings, training, trains):
    """Also in a training in bfloat16 with dropout. The mode of the model is restored."""
    trainer = training(model={"dropout": 0.5}, precision="bfloat16")
    if trains:
        assert run(trainer)
    model, dev = trainer.state.model.train(trains), trainer.dev
    weights = {name: parameter.double() for name, parameter in model.named_parameters()}
    pieces = sum(len(ids) + 1 for ids in dev.sides[1])
    mean = summed_loss(settings(), weights, dev, (range(len(dev)), []), 0.0).item() / pieces
    assert confidences(model, dev, 50, CPU)[0] == pytest.approx(mean, rel=1e-6) and model.training == trains
    recorded = [json.loads(line) for line in trainer.store.records()][-1:] if trains else []
    assert [record["dev_loss"] for record in recorded] == pytest.approx([mean] * trains, abs=2e-6)


def test_average_is_the_mean(tmp_path):
    paths = [tmp_path / f"{i}" for i in range(3)]
    for value, path in enumerate(paths):
        write_tensors(path, {"w": torch.full((2, 2), float(value))}, {"step": value})
    assert torch.equal(average(list(enumerate(paths)))["w"], torch.ones(2, 2))
    for tensors in ({"v": torch.ones(2, 2)}, {"w": torch.ones(2)}):
        write_tensors(tmp_path / "other", tensors, {"step": 1})
        with pytest.raises(UserError, match="other holds other weights"):
            average([(0, paths[0]), (1, tmp_path / "other")])
    with pytest.raises(UserError, match="1 holds the weights of step 1, not 2: swapped"):
        average([(0, paths[0]), (2, paths[1])])
    for step, (value, path) in enumerate(zip((2.0**30, 1.0, -(2.0**30)), paths)):
        write_tensors(path, {"w": torch.tensor(value)}, {"step": step})
    assert average(list(enumerate(paths)))["w"].item() == pytest.approx(1 / 3), "summed in float64"
