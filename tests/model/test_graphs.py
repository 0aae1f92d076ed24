"""The graphs of the forward and backward passes. A CPU has no graphs: here a captured function is called again instead."""

import gc
import weakref

import numpy as np
import pytest
import torch
from test_model import VARIATIONS, build

from tests.pairs import Pairs
from transformer.fast.graphs import Graphs
from transformer.layout import tabled
from transformer.step import Step
from transformer.training import new_state

CPU = torch.device("cpu")


def again(function):
    """Stands for the capture of a function: the result calls the function, as it was called outside of autograd."""
    return torch.enable_grad()(function)


def table(first: int, rows: int = 6):
    """A batch of ten pairs. Tables with the same number of rows have the same shape."""
    return tabled(Pairs(60, 12), np.arange(first, first + 10), rows, 32)


def gradients(model, config, capture=None):
    warnings: list[str] = []
    graphs = Graphs(model, capture, warnings.append) if capture else None
    own = Step(new_state(model, config, CPU), config, CPU, "float32")
    own.graphs = graphs
    return own, warnings


def stepped(model, own, steps):
    """The losses and the gradients of steps. Each step is a list of batches, whose gradients are added."""
    found = []
    for number, batches in enumerate(steps):
        own.seed(number, 0)
        for parameter in model.parameters():
            parameter.grad = None  # as the optimiser does after a step
        losses = [own.add(batch, 100).item() for batch in batches]
        found.append((losses, [parameter.grad.clone() for parameter in model.parameters()]))
    return found


STEPS = [[table(0)], [table(10)], [table(20), table(30)], [table(0), table(0, 7)], [table(10, 7), table(40)]]


@pytest.mark.parametrize("r_drop", [0.0, 1.0])
@pytest.mark.parametrize("variation", VARIATIONS, ids=str)
def test_losses_and_gradients_are_those_without_graphs(settings, training_settings, variation, r_drop):
    """Shapes with and without a graph take turns within a step, and the random numbers of dropout are the same."""
    model = build(settings(**{"dropout": 0.1, **variation}), 90).train()
    config = training_settings(threads=1, r_drop=r_drop)
    (plain, _), (graphed, warnings) = gradients(model, config), gradients(model, config, again)
    expected, found = stepped(model, plain, STEPS), stepped(model, graphed, STEPS)
    assert len(graphed.graphs.graphs) == 2 and not warnings
    for (losses, grads), (other_losses, other_grads) in zip(expected, found):
        assert losses == pytest.approx(other_losses, rel=1e-6)
        torch.testing.assert_close(other_grads, grads)


def test_a_shape_gets_a_graph_when_it_occurs_again(settings, training_settings):
    model, captured = build(settings(), 90).train(), []

    def counting(function):
        captured.append(function)
        return again(function)

    own, _ = gradients(model, training_settings(threads=1), counting)
    counts = []
    for batches in ([table(0)], [table(0, 7)], [table(10)], [table(20)], [table(30, 7)]):
        stepped(model, own, [batches])
        counts.append(len(captured))
    assert counts == [0, 0, 2, 2, 4], "one graph of the forward and one of the backward pass for each shape"


def test_graphs_read_their_own_copies_of_a_batch_and_the_tables_of_their_capture(settings, training_settings):
    """A graph reads fixed addresses, where later batches are copied to and where its table of positions stays."""
    model, batch = build(settings(), 90).train(), table(10)
    own, _ = gradients(model, training_settings(threads=1), again)
    stepped(model, own, [[table(0)], [batch]])
    (passes,) = own.graphs.graphs.values()
    assert passes.batch.source.ids_BS.data_ptr() != batch.source.ids_BS.data_ptr()
    old = weakref.ref(model.source_positions.table)
    model.source_positions(torch.arange(2), 2 * len(model.source_positions.table))
    gc.collect()
    assert old() is not None and old() is not model.source_positions.table


def fails(function):
    raise RuntimeError("operation not permitted when stream is capturing\nmore")


def forgets(function):
    """The graph of a function that was not captured."""
    return lambda: None


@pytest.mark.parametrize(
    "capture, reason", [(fails, "operation not permitted when stream is capturing"), (forgets, "results differ")]
)
def test_a_training_goes_on_without_graphs_that_fail_or_differ(settings, training_settings, capture, reason):
    model = build(settings(dropout=0.1), 90).train()
    config = training_settings(threads=1)
    (plain, _), (graphed, warnings) = gradients(model, config), gradients(model, config, capture)
    expected, found = stepped(model, plain, STEPS), stepped(model, graphed, STEPS)
    (line,) = warnings
    assert line.startswith("training goes on without CUDA graphs: ") and reason in line and "\n" not in line
    assert not graphed.graphs.graphs
    for (losses, grads), (other_losses, other_grads) in zip(expected, found):
        assert losses == pytest.approx(other_losses, rel=1e-6)
        torch.testing.assert_close(other_grads, grads)


def test_graphs_whose_gradients_are_no_numbers_are_not_used(settings, training_settings):
    def spoils(function):
        return lambda: torch._foreach_mul_(graphed.graphs.sums, float("nan"))

    model = build(settings(), 90).train()
    graphed, warnings = gradients(model, training_settings(threads=1), spoils)
    found = stepped(model, graphed, STEPS[:2])
    assert len(warnings) == 1 and "results differ" in warnings[0]
    assert all(gradient.isfinite().all() for _, grads in found for gradient in grads)


@pytest.mark.parametrize("last, shapes", [(3, 2), (99, 1)])
def test_if_memory_runs_out_again_in_a_repeated_capture_no_further_shape_gets_graphs(
    settings, training_settings, last, shapes
):
    model, config, captured = build(settings(dropout=0.1), 90).train(), training_settings(threads=1), []

    def limited(function):
        captured.append(function)
        if 2 < len(captured) <= last:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")
        return again(function)

    (plain, _), (graphed, warnings) = gradients(model, config), gradients(model, config, limited)
    expected, found = stepped(model, plain, STEPS), stepped(model, graphed, STEPS)
    assert len(graphed.graphs.graphs) == shapes and len(captured) == 3 + shapes and not warnings
    for (losses, grads), (other_losses, other_grads) in zip(expected, found):
        assert losses == pytest.approx(other_losses, rel=1e-6)
        torch.testing.assert_close(other_grads, grads)


@pytest.mark.parametrize("copies", [False, True])
def test_if_memory_runs_out_in_the_first_capture_a_line_says_so(settings, training_settings, monkeypatch, copies):
    """Or just before it, where the gradients are copied."""

    def fails(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")

    if copies:
        monkeypatch.setattr(Graphs, "share_gradients", fails)
    graphed, warnings = gradients(build(settings(), 90).train(), training_settings(threads=1), fails)
    stepped(graphed.model, graphed, STEPS)
    assert warnings == ["training goes on without CUDA graphs: memory does not suffice for them"]


def test_if_memory_runs_out_in_a_step_the_graphs_are_given_up_first(settings, training_settings):
    """The step is repeated without graphs, with the same limit; only then does the limit fall."""
    model, config = build(settings(dropout=0.1), 90).train(), training_settings(threads=1)
    graphed, warnings = gradients(model, config, again)
    stepped(model, graphed, STEPS[:2])
    assert graphed.graphs.graphs and graphed.release() and not graphed.release()
    assert warnings == ["training goes on without CUDA graphs: they need too much memory"]
    stepped(model, graphed, STEPS[:2])
    assert not graphed.graphs.graphs and len(warnings) == 1
