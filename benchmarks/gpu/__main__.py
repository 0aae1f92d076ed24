"""All measurements that need a GPU, in parts of a few minutes.

    python -m benchmarks.gpu --part check|train|big [--record NAME]

Needs torch 2.11 or newer, numpy, sentencepiece, safetensors, ruamel.yaml, filelock, langcodes and tqdm. On a CPU
all parts run with a small model, to show that they work.

`train` and `big` measure the first steps of a training from a cold start, and the same steps again. No kernel is compiled
at the start, and none has been chosen for a shape. A shape gets CUDA graphs when it occurs for the second time, so all
shapes have them in the third pass over the same batches. All passes train as pipeline.train does, with its prefetch thread,
copies, optimiser and learning rate, but without dev losses and saving.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import torch

from benchmarks import record
from benchmarks.gpu import checks
from benchmarks.gpu.bench import Bench
from benchmarks.record import Table
from pipeline.running import stage
from pipeline.scoring.costs import Lengths, forward_flops, training_flops
from transformer import fast
from transformer.config.reading import UserError
from transformer.device import device_of
from transformer.training import Trainer

# The model, the goal in real tokens/s on an H200, and the steps of a pass
TRAININGS = {"train": ("base", 1_800_000, 2000), "big": ("big", 700_000, 1000)}
SECONDS = 160  # the limit of a pass


def taken(bench: Bench, trainer: Trainer, steps: int) -> tuple[int, float, int, float]:
    """Train from step 0 for `steps` steps, or until SECONDS are over.

    Returns the steps, the seconds, the real tokens, and the FLOPs of the model without padding and masked scores.
    """
    state, before = trainer.state, dict(trainer.state.sums)
    began, state.step = time.perf_counter(), 0
    while state.step < steps and time.perf_counter() - began < SECONDS:
        trainer.advance()
        if state.step % trainer.config.log_every == 0:
            trainer.log()
    if bench.cuda:
        torch.cuda.synchronize()
    took = time.perf_counter() - began
    sums = {key: value - before.get(key, 0) for key, value in state.sums.items()}
    forward = forward_flops(state.model.config, bench.vocabulary, Lengths(**sums), causal_half=True)
    return state.step, took, sums["source_tokens"] + sums["target_tokens"], sum(training_flops(forward).values())


def train(bench: Bench, part: str) -> Iterator[Table]:
    """Raises UserError if the training went on without CUDA graphs."""
    name, goal, steps = TRAININGS[part]
    rows, steps = [], steps if bench.cuda else 6
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder, "kernels"))  # nothing of an earlier run is used
        began = time.perf_counter()
        with closing(bench.trainer(bench.model(name), bench.training(name), Path(folder))) as trainer:
            trainer.state.model.train()
            start = time.perf_counter() - began
            for label in ("from a cold start", "again", "warm"):
                steps, seconds, tokens, flops = taken(bench, trainer, steps)
                seconds, start = seconds + start, 0.0
                speeds = [f"{tokens / seconds:,.0f}", f"{flops / seconds / 1e12:.0f}"]
                memory = f"{torch.cuda.max_memory_reserved() / 2**30:.1f}" if bench.cuda else "–"
                rows.append([label, f"{goal:,}", f"{steps:,}", *speeds, memory])
            columns = ["pass", "goal, tokens/s", "steps", "real tokens/s", "TFLOP/s", "peak memory, GiB"]
            yield {"columns": columns, "rows": rows}
            if (graphs := trainer.step.graphs) and graphs.fault:
                raise UserError(f"the training went on without CUDA graphs: {graphs.fault}")


def measure(arguments: argparse.Namespace) -> Iterator[Table]:
    bench = Bench(device_of("auto"))
    if bench.cuda and (reason := fast.hindrance()):
        raise UserError(f"our kernels are not used: {reason}")
    return checks.run(bench) if arguments.part == "check" else train(bench, arguments.part)


if __name__ == "__main__":
    parser = stage.parser("benchmarks.gpu", __doc__)
    parser.add_argument("--part", choices=("check", *TRAININGS), required=True)
    record.run(measure, parser)
