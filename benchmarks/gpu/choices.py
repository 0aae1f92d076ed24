"""Both values of each setting that could not be decided without a GPU, side by side.

The batches are those of a real epoch. The layers of the model are not compiled, so that measuring a setting takes seconds.
`first use` is the first pass over the batches, `again` the second. The difference between the passes is the cost of new
shapes. `as in training` (without cuDNN's attention) runs first and pays this cost for all kernels. `cudnn first` then runs
on the same batches and pays it for attention only.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.bench import Bench, Outcome, kernels_of, shapes_of
from benchmarks.profile import profiled
from transformer.attention import KERNELS, kernels
from transformer.device import autocast
from transformer.layout import Batch, packed
from transformer.model import Transformer
from transformer.perplexity import batch_loss

# The contexts in which attention is measured.
ATTENTION: dict[str, Callable[[torch.device], AbstractContextManager]] = {
    "as in training": kernels,
    "cudnn first": lambda device: sdpa_kernel([SDPBackend.CUDNN_ATTENTION, *KERNELS], set_priority=True),
}
SECONDS = 20  # after which a pass ends early


def batches(bench: Bench, batching: str) -> tuple[list[Batch], int]:
    """The parts of the first batches of an epoch on the device, and the source and target tokens of all."""
    config = bench.training(bench.scale.base, batching=batching)
    made, found, tokens = bench.batches(bench.epoch(), config), [], 0
    for step in range(bench.scale.compared):
        numbers = made.batch(step)
        parts = made.micro_batches(numbers, config.micro_batch_tokens)
        found += [made.lay_out(part, config.micro_batch_tokens, packed).to(bench.device) for part in parts]
        tokens += int(made.source[numbers].sum() + made.target[numbers].sum())
    made.orders.close()
    return found, tokens


def train(bench: Bench, model: Transformer, batch: Batch) -> None:
    with autocast(bench.device, "bfloat16"):
        lost = batch_loss(model, batch, 0.1)
    lost.backward()


def passed(bench: Bench, model: Transformer, chosen: list[Batch]) -> tuple[int, float]:
    """Run forward and backward passes over the batches. Returns the number of batches done and the seconds."""
    bench.synchronise()
    began, done = time.perf_counter(), 0
    for batch in chosen:
        train(bench, model, batch)
        done += 1
        if time.perf_counter() - began > SECONDS:
            break
    bench.synchronise()
    return done, time.perf_counter() - began


def compare_batches(bench: Bench, outcome: Outcome) -> None:
    """Compare batching by length with mixed, and attention without and with cuDNN."""
    columns = ("batching", "attention", "steps", "shapes", "tokens/s, first use", "tokens/s, again")
    rows = outcome.table(*columns, "ms per new shape", "kernels")
    model = bench.network(bench.model(bench.scale.base))
    for batching in ("by_length", "mixed"):
        chosen, tokens = batches(bench, batching)
        with kernels(bench.device):
            # Loads the kernels. Torch sets its own order of kernels at its first attention, which must precede ATTENTION.
            train(bench, model, chosen[-1])
        for order in ATTENTION:
            try:
                cells = compared(bench, model, chosen, tokens, order)
            except Exception as error:  # the other kernels are still measured
                cells = ["–"] * 5 + [outcome.failed(f"{batching}, {order}", error)]
            rows.append([batching, order, *cells])


def compared(bench: Bench, model: Transformer, chosen: list[Batch], tokens: int, order: str) -> list[str]:
    """Measure one of ATTENTION. Returns the cells of its row, from `steps` on."""
    with ATTENTION[order](bench.device):
        done, first = passed(bench, model, chosen)
        _, again = passed(bench, model, chosen[:done])
        _, calls = profiled(lambda: train(bench, model, chosen[0]), bench.device)
    shapes = set[tuple[int, int, int]]().union(*map(shapes_of, chosen[:done]))
    share = tokens * done / len(chosen)
    cells = [str(done), str(len(shapes)), f"{share / first:,.0f}", f"{share / again:,.0f}"]
    return [*cells, f"{1000 * (first - again) / len(shapes):.1f}", ", ".join(kernels_of(calls))]
