"""Parts `train` and `big`: the first steps of a training from a cold start, and the same steps again.

Nothing is compiled at the start, and no kernel has been chosen for a shape. In the second pass over the same batches all
shapes are known and have CUDA graphs: those that the first pass has not made are made between the passes. The cost of a
cold start is the time before the first step plus the difference between the passes. Both passes train as pipeline.train
does, with its prefetch thread, copies, optimiser and learning rate, but without dev losses and saving.
"""

import os
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.bench import Bench, Outcome, programs, shapes_of
from benchmarks.profile import group_of, host_waits, profiled
from transformer.accumulation import Parts
from transformer.data import Prefetch
from transformer.fast.graphs import Graphs
from transformer.flops import Lengths, forward_flops, training_flops
from transformer.training import Trainer

GOALS = {"train": 1_800_000, "big": 700_000}  # real tokens/s on an H200
SECONDS = 230  # the limit of a pass; the second pass is faster and should not reach it
PROFILED = 10  # steps


class TimedPrefetch:
    """The prepared batches of a training, the seconds that the training waited for them, and their shapes."""

    def __init__(self, coming: Prefetch) -> None:
        self.coming, self.waited, self.shapes = coming, 0.0, set[tuple[int, int, int]]()
        self.steps: dict[tuple[torch.Size, torch.Size], int] = {}  # a step with a batch of this shape

    def __call__(self, step: int) -> tuple[dict[str, int], Parts]:
        began = time.perf_counter()
        sums, parts = self.coming(step)
        self.waited += time.perf_counter() - began
        self.shapes = self.shapes.union(*(shapes_of(batch) for _, batch in parts.parts))
        self.steps |= {(batch.source.ids_BS.shape, batch.target.ids_BS.shape): step for _, batch in parts.parts}
        return sums, parts

    def close(self) -> None:
        self.coming.close()


@dataclass(frozen=True)
class Pass:
    """One pass over the first steps of an epoch."""

    steps: int
    seconds: float
    tokens: int
    waited: float  # seconds, for batches
    compiling: float  # seconds
    programs: int  # compiled
    tflops: float  # 10^12 operations of the model per second, without padding and masked scores

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


def taken(bench: Bench, trainer: Trainer, coming: TimedPrefetch, steps: int) -> Pass:
    """Train from step 0 for `steps` steps, or until SECONDS are over."""
    state, before, waited, made = trainer.state, dict(trainer.state.sums), coming.waited, programs()
    began, state.step = time.perf_counter(), 0
    while state.step < steps and time.perf_counter() - began < SECONDS:
        trainer.advance()
        if state.step % trainer.config.log_every == 0:
            trainer.log()
    bench.synchronise()
    took, after = time.perf_counter() - began, programs()
    sums = {key: value - before.get(key, 0) for key, value in state.sums.items()}
    forward = forward_flops(state.model.config, bench.vocabulary, Lengths(**sums), causal_half=True)
    flops = sum(training_flops(forward).values())
    tokens = sums["source_tokens"] + sums["target_tokens"]
    waited, compiling = coming.waited - waited, after[1] - made[1]
    return Pass(state.step, took, tokens, waited, compiling, after[0] - made[0], flops / took / 1e12)


def run(bench: Bench, outcome: Outcome, part: str) -> None:
    scale = bench.scale
    name, steps = (scale.big, scale.big_steps) if part == "big" else (scale.base, scale.steps)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder, "compiled"))  # nothing of an earlier run is used
        began = time.perf_counter()
        trainer = bench.trainer(bench.model(name), bench.training(name), bench.epoch(), Path(folder))
        trainer.state.model.train()
        coming = TimedPrefetch(trainer.coming)
        trainer.coming = coming  # type: ignore[assignment]
        start = time.perf_counter() - began
        with closing(trainer):
            cold = taken(bench, trainer, coming, steps)
            graphs = trainer.own_gradients.graphs
            report_cold(bench, outcome, part, start, cold, coming, len(graphs.graphs) if graphs else 0)
            if graphs and not graphs.fault:
                make_graphs(trainer, graphs, coming)
            warm = taken(bench, trainer, coming, cold.steps)
            report_warm(outcome, cold, warm, start)
            outcome.require_graphs(graphs)
            if graphs:
                outcome.tables[0]["rows"][-1][-1] = str(len(graphs.graphs))
            look_inside(bench, outcome, trainer, warm)


def make_graphs(trainer: Trainer, graphs: Graphs, coming: TimedPrefetch) -> None:
    """Take a step with each shape that occurred once and has no graphs yet, which makes them.

    Shapes of batches that were divided anew, because memory ran out, are not among those of `coming`.
    """
    for step in sorted({coming.steps[shape] for shape in coming.steps.keys() & (graphs.seen - graphs.graphs.keys())}):
        trainer.state.step = step
        trainer.advance()


def report_cold(
    bench: Bench, outcome: Outcome, part: str, start: float, cold: Pass, coming: TimedPrefetch, captured: int
) -> None:
    columns = ("pass", "batching", "steps", "real tokens/s", "goal", "TFLOP/s", "shapes", "programs", "shapes with graphs")
    seconds = start + cold.seconds
    speed, tflops = cold.tokens / seconds, cold.tflops * cold.seconds / seconds
    cells = [f"{cold.steps:,}", f"{speed:,.0f}", f"{GOALS[part]:,}", f"{tflops:.0f}", str(len(coming.shapes))]
    rows = outcome.table(*columns)
    rows.append(["from a cold start", bench.batching, *cells, str(cold.programs), str(captured)])
    rows.append(["warm", bench.batching, *["–"] * 2, f"{GOALS[part]:,}", *["–"] * 4])
    outcome.figures |= {"start_seconds": start, "cold": vars(cold), "attention_shapes": len(coming.shapes)}
    outcome.figures["shapes_with_graphs"] = captured


def report_warm(outcome: Outcome, cold: Pass, warm: Pass, start: float) -> None:
    warm_row = outcome.tables[-1]["rows"][-1]
    warm_row[2], warm_row[3], warm_row[5] = f"{warm.steps:,}", f"{warm.speed:,.0f}", f"{warm.tflops:.0f}"
    warm_row[7] = str(warm.programs)
    compiling, waited = cold.compiling - warm.compiling, cold.waited - warm.waited
    lost = {
        "making the model and ordering the pairs": start,
        "compilation": compiling,
        "waiting for batches": waited,
        "first use of shapes, and other work of the first pass only": cold.seconds - warm.seconds - compiling - waited,
        "warm: waiting for batches": warm.waited,
    }
    rows = outcome.table("time lost", "seconds")
    rows += [[cause, f"{seconds:.1f}"] for cause, seconds in lost.items()]
    outcome.figures |= {"warm": vars(warm), "lost_seconds": lost}


def look_inside(bench: Bench, outcome: Outcome, trainer: Trainer, warm: Pass) -> None:
    """The kernels of a few steps, the time in which none runs, and the waits of the host."""
    steps = min(PROFILED, warm.steps)

    def some() -> None:
        trainer.state.step = 0
        for _ in range(steps):
            trainer.advance()

    waits = host_waits(trainer.advance, bench.device)
    kernels, _ = profiled(some, bench.device)
    trainer.own_gradients.graphs = None  # the replay of a graph calls no operators
    _, calls = profiled(trainer.advance, bench.device)
    busy, step = kernels.total() / 1e3 / steps, 1e3 * warm.seconds / warm.steps
    groups: dict[str, float] = {}
    for kernel, microseconds in kernels.items():
        group = group_of(kernel)
        groups[group] = groups.get(group, 0) + microseconds / 1e3 / steps
    rows = outcome.table("a warm step", "ms")
    rows += [[group, f"{took:.2f}"] for group, took in sorted(groups.items(), key=lambda item: -item[1])]
    rows.append(["no kernel runs", f"{max(0.0, step - busy):.2f}" if bench.device.type == "cuda" else "–"])
    rows.append(["the whole step", f"{step:.2f}"])
    outcome.inside(bench.device, "host waits in a step", waits, calls)
    outcome.figures["longest_kernels_ms"] = dict[str, Any](
        (kernel[:100], round(microseconds / 1e3 / steps, 3)) for kernel, microseconds in kernels.most_common(20)
    )
