"""Parts `train` and `big`: the first steps of a training from a cold start, and the same steps again.

No kernel is compiled at the start, and none has been chosen for a shape. A shape gets CUDA graphs when it occurs for the
second time, so all shapes have them in the third pass over the same batches. All passes train as pipeline.train does, with
its prefetch thread, copies, optimiser and learning rate, but without dev losses and saving.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.gpu.bench import Bench
from benchmarks.gpu.profile import profiled
from benchmarks.record import Table
from pipeline.costs.flops import Lengths, forward_flops, training_flops
from transformer.config.reading import UserError
from transformer.training import Trainer

GOALS = {"train": 1_800_000, "big": 700_000}  # real tokens/s on an H200
SECONDS = 160  # the limit of a pass
PASSES = ("from a cold start", "again", "warm")
PROFILED = 10  # steps
SHOWN, NAMED = 20, 60  # kernels, the longest first, and characters of their names


class Pass(NamedTuple):
    steps: int
    seconds: float
    tokens: int
    flops: float  # of the model, without padding and masked scores


def taken(bench: Bench, trainer: Trainer, steps: int) -> Pass:
    """Train from step 0 for `steps` steps, or until SECONDS are over."""
    state, before = trainer.state, dict(trainer.state.sums)
    began, state.step = time.perf_counter(), 0
    while state.step < steps and time.perf_counter() - began < SECONDS:
        trainer.advance()
        if state.step % trainer.config.log_every == 0:
            trainer.log()
    if bench.device.type == "cuda":
        torch.cuda.synchronize()
    took = time.perf_counter() - began
    sums = {key: value - before.get(key, 0) for key, value in state.sums.items()}
    forward = forward_flops(state.model.config, bench.scale.vocabulary, Lengths(**sums), causal_half=True)
    tokens = sums["source_tokens"] + sums["target_tokens"]
    return Pass(state.step, took, tokens, sum(training_flops(forward).values()))


def run(bench: Bench, part: str) -> Iterator[Table]:
    """Raises UserError if the training went on without CUDA graphs."""
    scale, rows = bench.scale, []
    name, steps = (scale.big, scale.big_steps) if part == "big" else (scale.base, scale.steps)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder, "kernels"))  # nothing of an earlier run is used
        began = time.perf_counter()
        trainer = bench.trainer(bench.model(name), bench.training(name), Path(folder))
        trainer.state.model.train()
        start = time.perf_counter() - began
        with closing(trainer):
            for label in PASSES:
                found = taken(bench, trainer, steps)
                steps, seconds = found.steps, found.seconds + start * (label == PASSES[0])
                speeds = [f"{found.tokens / seconds:,.0f}", f"{found.flops / seconds / 1e12:.0f}"]
                rows.append([label, f"{GOALS[part]:,}", f"{steps:,}", *speeds])
            yield {"columns": ["pass", "goal, tokens/s", "steps", "real tokens/s", "TFLOP/s"], "rows": rows}
            if (graphs := trainer.step.graphs) and graphs.fault:
                raise UserError(f"the training went on without CUDA graphs: {graphs.fault}")
            yield from look_inside(bench, trainer, found)


def look_inside(bench: Bench, trainer: Trainer, warm: Pass) -> Iterator[Table]:
    """The kernels of a few steps, the time in which none runs, and the memory."""
    steps, cuda = min(PROFILED, warm.steps), bench.device.type == "cuda"

    def some() -> None:
        trainer.state.step = 0
        for _ in range(steps):
            trainer.advance()

    kernels, _ = profiled(some, bench.device)
    busy, step = kernels.total() / 1e3 / steps, 1e3 * warm.seconds / warm.steps
    rows = [[kernel[:NAMED], f"{took / 1e3 / steps:.2f}"] for kernel, took in kernels.most_common(SHOWN)]
    rows.append(["no kernel runs", f"{max(0.0, step - busy):.2f}" if cuda else "–"])
    rows.append(["the whole step", f"{step:.2f}"])
    yield {"columns": ["a warm step", "ms"], "rows": rows}
    memory = f"{torch.cuda.max_memory_reserved() / 2**30:.1f}" if cuda else "–"
    yield {"columns": ["peak memory, GiB"], "rows": [[memory]]}
