"""Parts `train` and `big`: the first steps of a training from a cold start, and the same steps again.

No kernel is compiled at the start, and none has been chosen for a shape. A shape gets CUDA graphs when it occurs for the
second time, so all shapes have them in the third pass over the same batches. All passes train as pipeline.train does, with
its prefetch thread, copies, optimiser and learning rate, but without dev losses and saving.
"""

import os
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.gpu.bench import Bench, Outcome
from benchmarks.profile import host_waits, profiled
from transformer.flops import Lengths, forward_flops, training_flops
from transformer.training import Trainer

GOALS = {"train": 1_800_000, "big": 700_000}  # real tokens/s on an H200
SECONDS = 160  # the limit of a pass
PASSES = ("from a cold start", "again", "warm")
PROFILED = 10  # steps
SHOWN, NAMED = 20, 60  # kernels, the longest first, and characters of their names


@dataclass(frozen=True)
class Pass:
    """One pass over the first steps of an epoch."""

    steps: int
    seconds: float
    tokens: int
    flops: float  # of the model, without padding and masked scores

    def cells(self) -> list[str]:
        speeds = [f"{self.tokens / self.seconds:,.0f}", f"{self.flops / self.seconds / 1e12:.0f}"]
        return [f"{self.steps:,}", *speeds]


def taken(bench: Bench, trainer: Trainer, steps: int) -> Pass:
    """Train from step 0 for `steps` steps, or until SECONDS are over."""
    state, before = trainer.state, dict(trainer.state.sums)
    began, state.step = time.perf_counter(), 0
    while state.step < steps and time.perf_counter() - began < SECONDS:
        trainer.advance()
        if state.step % trainer.config.log_every == 0:
            trainer.log()
    bench.synchronise()
    took = time.perf_counter() - began
    sums = {key: value - before.get(key, 0) for key, value in state.sums.items()}
    forward = forward_flops(state.model.config, bench.vocabulary, Lengths(**sums), causal_half=True)
    tokens = sums["source_tokens"] + sums["target_tokens"]
    counted = sum(training_flops(forward).values())
    return Pass(state.step, took, tokens, counted)


def run(bench: Bench, outcome: Outcome, part: str) -> None:
    scale = bench.scale
    name, steps = (scale.big, scale.big_steps) if part == "big" else (scale.base, scale.steps)
    rows = outcome.table("pass", "batching", "goal, tokens/s", "steps", "real tokens/s", "TFLOP/s")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder, "kernels"))  # nothing of an earlier run is used
        began = time.perf_counter()
        trainer = bench.trainer(bench.model(name), bench.training(name), bench.epoch(), Path(folder))
        trainer.state.model.train()
        start = time.perf_counter() - began
        with closing(trainer):
            for label in PASSES:
                found = taken(bench, trainer, steps)
                steps = found.steps
                if label == PASSES[0]:
                    found = replace(found, seconds=found.seconds + start)
                rows.append([label, bench.batching, f"{GOALS[part]:,}", *found.cells()])
            outcome.require_graphs(trainer.step.graphs)
            look_inside(bench, outcome, trainer, found)


def look_inside(bench: Bench, outcome: Outcome, trainer: Trainer, warm: Pass) -> None:
    """The kernels of a few steps, the time in which none runs, and the waits of the host."""
    steps = min(PROFILED, warm.steps)

    def some() -> None:
        trainer.state.step = 0
        for _ in range(steps):
            trainer.advance()

    waits = host_waits(trainer.advance, bench.device)
    kernels, _ = profiled(some, bench.device)
    busy, step = kernels.total() / 1e3 / steps, 1e3 * warm.seconds / warm.steps
    rows = outcome.table("a warm step", "ms")
    rows += [[kernel[:NAMED], f"{took / 1e3 / steps:.2f}"] for kernel, took in kernels.most_common(SHOWN)]
    rows.append(["no kernel runs", f"{max(0.0, step - busy):.2f}" if bench.device.type == "cuda" else "–"])
    rows.append(["the whole step", f"{step:.2f}"])
    memory = f"{torch.cuda.max_memory_reserved() / 2**30:.1f}" if bench.device.type == "cuda" else "–"
    outcome.table("host waits in a step", "peak memory, GiB").append([str(len(waits)), memory])
