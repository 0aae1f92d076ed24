"""Training speed on the batches of a real epoch, compared with torch.nn.Transformer, in turns.

    python -m benchmarks.epoch BINARISED [--model tiny] [--batches 200] [--turn 10] [--threads 2]

BINARISED is a folder that pipeline.binarise made. benchmarks.training repeats a few batches, so their shapes are soon
known. In a training on a CPU with batches by length, many shapes are new. Here the systems take turns of --turn consecutive
batches, which a prefetch thread prepares as in training. Each system has its own process, as a training has, so that none
uses or displaces the plans that oneDNN made for another. Ours keeps the memory that it frees, as the stages do. The peer is
measured with the default of the C library, as a user would run it, and in bfloat16 also with freed memory kept. Our threads
spin as briefly as in the stages, the peer's threads for the default time. The columns are:

- real tokens (source and target, without padding) per second;
- the speed relative to the first row, as the median over the turns, and the smallest and largest ratio of a turn;
- the same ratio for tokens per second of CPU time, which depends less on other work of the machine.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from benchmarks.peers import TorchTransformer, torch_loss
from benchmarks.process import Process
from benchmarks.training import table_row
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer import fast
from transformer.binarised import BinarisedSet, describe, open_binarised
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Prefetch
from transformer.device import autocast
from transformer.gradients import Gradients
from transformer.layout import Batch, Layout, layout_for, padded
from transformer.memory import keep_freed
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.training import AHEAD, batches_of

CPU = torch.device("cpu")
WARM_UP = 3  # batches that are not measured
SYSTEMS = [
    ("ours", "by_length", "float32"),
    ("ours", "mixed", "float32"),
    ("ours", "by_length", "bfloat16"),
    ("ours", "mixed", "bfloat16"),
    ("torch.nn.Transformer", "by_length", "float32"),
    ("torch.nn.Transformer", "by_length", "bfloat16"),
    ("torch.nn.Transformer, freed memory kept", "by_length", "bfloat16"),
]


class System:
    """A model that trains on the batches of an epoch."""

    def __init__(self, precision: str, config: TrainingConfig, model: nn.Module, pairs: BinarisedSet) -> None:
        self.precision, self.config, self.model = precision, config, model
        self.layout: Layout = padded
        self.add_gradients: Callable[[Batch, int], object] = self.add_gradients_of_peer
        if isinstance(model, Transformer):
            self.layout, self.add_gradients = layout_for(CPU, precision), Gradients(model, config, CPU, precision).add
        self.batches = batches_of(pairs, config, pairs.segmentations)
        self.optimiser = adam(model.parameters(), config)
        self.optimiser.param_groups[0]["lr"] = 1e-4
        self.prefetch, self.step = Prefetch(self.prepare, AHEAD), 0

    def prepare(self, step: int) -> tuple[int, list[Batch]]:
        """The real tokens of a step's batch, and its parts."""
        numbers, limit = self.batches.batch(step), self.config.micro_batch_tokens
        sums = self.batches.sums(numbers)
        parts = [self.batches.lay_out(part, limit, self.layout) for part in self.batches.micro_batches(numbers, limit)]
        return sums["source_tokens"] + sums["target_tokens"], parts

    def turn(self, steps: int) -> tuple[float, float]:
        """Take these steps. Returns the tokens per second, and per second of CPU time."""
        tokens, began, began_cpu = 0, time.perf_counter(), time.process_time()
        for _ in range(steps):
            tokens += self.train()
        elapsed, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        return tokens / elapsed, tokens / cpu

    def train(self) -> int:
        """Take one step and return the number of its tokens."""
        tokens, parts = self.prefetch(self.step)
        self.step += 1
        for part in parts:
            self.add_gradients(part, tokens)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return tokens

    def add_gradients_of_peer(self, part: Batch, tokens: int) -> None:
        with autocast(CPU, self.precision):
            loss = torch_loss(self.model, part, self.config.label_smoothing)
        (loss / tokens).backward()


system: System  # of this process


class Training(Process):
    """A new process that trains one system."""

    def __init__(
        self,
        name: str,
        precision: str,
        config: TrainingConfig,
        model: tuple[ModelConfig, int],
        binarised: Path,
        threads: int,
    ) -> None:
        super().__init__(name == "ours")
        self.names = (name, config.batching, precision)
        self.do(start, name, precision, config, model, binarised, threads)
        self.rates: list[tuple[float, float]] = []  # tokens per second and per second of CPU time, of each turn
        self.turn(WARM_UP)

    def turn(self, steps: int) -> tuple[float, float]:
        return self.do(turn, steps)

    def row(self, first: "Training") -> str:
        cells = [*self.names, f"{statistics.median(rate for rate, _ in self.rates):,.0f}"]
        for clock in (0, 1):
            ratios = [rate[clock] / reference[clock] for rate, reference in zip(self.rates, first.rates)]
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        return table_row(cells)


def start(
    name: str, precision: str, config: TrainingConfig, model: tuple[ModelConfig, int], binarised: Path, threads: int
) -> None:
    """Make the system of this process, which `turn` trains. `model` has the settings and the size of the vocabulary."""
    global system
    if name != "torch.nn.Transformer":
        keep_freed()  # as the stages do
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    network = Transformer(*model, fast.layers(CPU)) if name == "ours" else TorchTransformer(*model)
    system = System(precision, config, network.train(), open_binarised(binarised, "train"))


def turn(steps: int) -> tuple[float, float]:
    return system.turn(steps)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.epoch", description=__doc__.split("\n\n")[0])
    parser.add_argument("binarised", type=Path)
    parser.add_argument("--model", default="tiny", help="a model of params.yaml")
    parser.add_argument("--batches", type=int, default=200, help="rounded up to whole turns")
    parser.add_argument("--turn", type=int, default=10, help="batches per turn")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main(arguments: argparse.Namespace) -> None:
    model = section(load(), "models", arguments.model, "model", ModelConfig)
    config = section(load(), "models", arguments.model, "training", TrainingConfig)
    sizes = model, describe(arguments.binarised)["vocabulary_size"]
    processes = []
    for name, batching, precision in SYSTEMS:
        batched = dataclasses.replace(config, batching=batching, threads=arguments.threads)  # type: ignore[arg-type]
        processes.append(Training(name, precision, batched, sizes, arguments.binarised, arguments.threads))
    for _ in range(-(-arguments.batches // arguments.turn)):
        for process in processes:
            process.rates.append(process.turn(arguments.turn))
    print(f"{processor()}, {arguments.threads} threads, torch {torch.__version__}\n")
    print(table_row(["trainer", "batching", "precision", "real tokens/s", "speed, first = 1", "by CPU time"]))
    print("|---|---|---|---:|---:|---:|")
    print("\n".join(process.row(processes[0]) for process in processes))


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
