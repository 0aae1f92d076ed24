"""The graphs of the forward and backward passes. A CPU has no graphs: here a captured function is called again instead."""

import gc
import weakref

import numpy as np
import pytest
import torch
from test_model import OTHER_THAN_HEADS, build

from tests.support.pairs import Pairs
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


def step_of(model, config, capture=None):
    """A step of the model, with graphs if there is a `capture`, and the list of its warnings."""
    warnings: list[str] = []
    own = Step(new_state(model, config, CPU), config, CPU, "float32")
    own.graphs = Graphs(model, capture, warnings.append) if capture else None
    return own, warnings


def stepped(own, steps):
    """The losses and the gradients of steps. Each step is a list of batches, whose gradients are added."""
    found, parameters = [], list(own.state.model.parameters())
    for number, batches in enumerate(steps):
        own.seed(number, 0)
        for parameter in parameters:
            parameter.grad = None  # as the optimiser does after a step
        losses = [own.add(batch, 100).item() for batch in batches]
        found.append((losses, [parameter.grad.clone() for parameter in parameters]))
    return found


STEPS = [[table(0)], [table(10)], [table(20), table(30)], [table(0), table(0, 7)], [table(10, 7), table(40)]]


def compared(model, config, capture):
    """Assert that losses and gradients are those without graphs. Returns the graphs and the warnings."""
    (plain, _), (graphed, warnings) = step_of(model, config), step_of(model, config, capture)
    for (losses, grads), (other_losses, other_grads) in zip(stepped(plain, STEPS), stepped(graphed, STEPS), strict=True):
        assert losses == pytest.approx(other_losses, rel=1e-6)
        torch.testing.assert_close(other_grads, grads)
    return graphed.graphs.graphs, warnings


@pytest.fixture
def config(training_settings):
    return training_settings(threads=1)


@pytest.fixture
def model(settings):
    return build(settings(dropout=0.1), 90).train()


@pytest.mark.parametrize(
    "variation, r_drop",
    [(each, float("norm" in each)) for each in OTHER_THAN_HEADS],
    ids=str,
)
def test_losses_and_gradients_are_those_without_graphs(settings, training_settings, variation, r_drop):
    """Shapes with and without a graph take turns within a step, and the random numbers of dropout are the same."""
    model = build(settings(**{"dropout": 0.1, **variation}), 90).train()
    graphs, warnings = compared(model, training_settings(threads=1, r_drop=r_drop), again)
    assert len(graphs) == 2 and not warnings


def test_graphs_read_their_own_copies_of_a_batch_and_the_tables_of_their_capture(model, config):
    """A graph reads fixed addresses, where later batches are copied to and where its table of positions stays."""
    batch = table(10)
    own, _ = step_of(model, config, again)
    stepped(own, [[table(0)], [batch]])
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
def test_a_training_goes_on_without_graphs_that_fail_or_differ(model, config, capture, reason):
    graphs, (line,) = compared(model, config, capture)
    assert line.startswith("training goes on without CUDA graphs: ") and reason in line and "\n" not in line
    assert not graphs


def test_graphs_whose_gradients_are_no_numbers_are_not_used(model, config):
    def spoils(function):
        return lambda: torch._foreach_mul_(graphed.graphs.sums, float("nan"))

    graphed, warnings = step_of(model, config, spoils)
    found = stepped(graphed, STEPS[:2])
    assert len(warnings) == 1 and "results differ" in warnings[0]
    assert all(gradient.isfinite().all() for _, grads in found for gradient in grads)


def no_memory(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")


@pytest.mark.parametrize("last, shapes", [(3, 2), (99, 1)])
def test_if_memory_runs_out_again_in_a_repeated_capture_no_further_shape_gets_graphs(model, config, last, shapes):
    captured = []

    def limited(function):
        captured.append(function)
        return no_memory() if 2 < len(captured) <= last else again(function)

    graphs, warnings = compared(model, config, limited)
    assert len(graphs) == shapes and len(captured) == 3 + shapes and not warnings


@pytest.mark.parametrize("copies", [False, True])
def test_if_memory_runs_out_in_the_first_capture_a_line_says_so(model, config, monkeypatch, copies):
    """Or just before it, where the gradients are copied."""
    if copies:
        monkeypatch.setattr(Graphs, "share_gradients", no_memory)
    _, warnings = compared(model, config, no_memory)
    assert warnings == ["training goes on without CUDA graphs: memory does not suffice for them"]


def test_if_memory_runs_out_in_a_step_the_graphs_are_given_up_first(model, config):
    """The step is repeated without graphs, with the same limit; only then does the limit fall."""
    graphed, warnings = step_of(model, config, again)
    stepped(graphed, STEPS[:2])
    limits, limit = [], config.micro_batch_tokens

    def work(given):
        limits.append(given)
        assert bool(graphed.graphs.graphs) == (len(limits) == 1)
        return no_memory() if len(limits) < 3 else stepped(graphed, STEPS[:2])

    graphed.warn = lambda text: None  # of the lower limit
    graphed.repeated(work)
    assert limits == [limit, limit, limit // 2] and not graphed.graphs.graphs
    assert warnings == ["training goes on without CUDA graphs: they need too much memory"]
