"""Training speed on a CPU compared with other libraries, on the same batches and in turns.

    python -m benchmarks.training [--shape tiny|base|big ...] [--rounds 5]

Each system has its own process. The first row of the table trains as pipeline.train does with `batching: by_length`.
Exception: in bfloat16, pipeline.train pads its batches to fewer shapes (`rounded`), which repeated batches do not need.
Ours keeps the memory that it frees, as pipeline.train does. `torch.nn.Transformer` is measured with the default of the
C library, as a user would run it, and also with freed memory kept. The columns are:

- real tokens (source and target, without padding) per second;
- the time relative to the first row, as the median over the rounds.

The row of a library that is not installed (`pip install transformers`) shows a dash and the reason. The precision is
`auto`. benchmarks.gpu measures the speed on a GPU.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.process import Process
from benchmarks.provenance import shown
from benchmarks.workload import LogNormalPairs
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer import fast
from transformer.batch import Batch
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.device import autocast, precision_of
from transformer.layout import Layout, packed, padded
from transformer.memory import keep_freed
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.step import Step
from transformer.training import new_state

CPU = torch.device("cpu")
SIZES = {"tiny": (2000, 4000), "base": (2000, 37000), "big": (1000, 37000)}  # tokens per batch, and vocabulary
COLUMNS = ["shape", "trainer", "real tokens/s", "time, ours = 1"]


class System(NamedTuple):
    """A model with its loss, to be trained. The loss of ours is computed by `Step`."""

    name: str
    build: Callable[[ModelConfig, int], nn.Module]
    loss: Callable[..., Tensor] | None = None  # of a model, a batch and the label smoothing
    layout: Layout = padded
    kept: bool = False  # the process keeps the memory that it frees


def ours(config: ModelConfig, vocabulary: int) -> Transformer:
    return Transformer(config, vocabulary, fast.layers(CPU))


TORCH = System("torch.nn.Transformer", peers.TorchTransformer, peers.torch_loss)
SYSTEMS = [
    System("ours, padded", ours, kept=True),
    System("ours, packed", ours, layout=packed, kept=True),
    TORCH,
    TORCH._replace(name=f"{TORCH.name}, freed memory kept", kept=True),
    System("Hugging Face MarianMTModel", peers.marian, peers.marian_loss),
]


def batches_of(shape: str) -> tuple[Batches, LogNormalPairs]:
    tokens, vocabulary = SIZES[shape]
    pairs = LogNormalPairs(vocabulary)
    return Batches(pairs, 1, tokens, 256), pairs


class Entry:
    """A system that trains on its batches."""

    def __init__(self, system: System, shape: str, steps: int) -> None:
        batches, pairs = batches_of(shape)
        config = section(load(), "models", shape, "training", TrainingConfig)
        self.config = dataclasses.replace(config, threads=torch.get_num_threads())
        torch.manual_seed(1)
        model = system.build(section(load(), "models", shape, "model", ModelConfig), SIZES[shape][1])
        self.batches = [system.layout(pairs, batches.batch(step)) for step in range(steps)]
        self.precision = precision_of(config.precision, CPU)
        self.loss: Callable[..., Tensor] | None = system.loss
        self.own: Step | None = None
        if isinstance(model, Transformer):
            self.own = Step(new_state(model, self.config, CPU), self.config, CPU, self.precision)
        self.optimiser = adam(model.parameters(), self.config)
        self.optimiser.param_groups[0]["lr"] = 1e-4
        self.model = model.train()
        for batch in 2 * self.batches:  # a warm-up
            self.step(batch)

    def step(self, batch: Batch) -> None:
        if self.own:
            self.own.add(batch, len(batch.labels_N))
        else:
            assert self.loss is not None
            with autocast(CPU, self.precision):
                loss = self.loss(self.model, batch, self.config.label_smoothing)
            (loss / len(batch.labels_N)).backward()
        self.optimiser.step()
        self.optimiser.zero_grad()

    def turn(self) -> float:
        """Take a pass over the batches. Returns its time in seconds."""
        started = time.perf_counter()
        for batch in self.batches:
            self.step(batch)
        return time.perf_counter() - started


entry: Entry  # of this process


def start(number: int, shape: str, steps: int, threads: int) -> None:
    """Make the entry of this process: the system with this number."""
    global entry
    torch.set_num_threads(threads)
    if SYSTEMS[number].kept:
        keep_freed()
    entry = Entry(SYSTEMS[number], shape, steps)


def turn() -> float:
    return entry.turn()


def compare(shape: str, arguments: argparse.Namespace) -> list[list[str]]:
    """The rows of one shape. The systems take turns."""
    running, rows = dict[str, Process](), []
    for number, system in enumerate(SYSTEMS):
        process = Process(system.loss is None)
        try:
            process.do(start, number, shape, arguments.steps, arguments.threads)
            running[system.name] = process
        except Exception as error:  # a failure of another library must not hide the other rows
            process.close()
            if system.loss is None:
                raise
            rows.append([shape, system.name, f"– ({type(error).__name__}: {str(error).splitlines()[0]})", "–"])
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(arguments.rounds):
        for name, process in running.items():
            times[name].append(process.do(turn))
    for process in running.values():
        process.close()
    batches, _ = batches_of(shape)
    sums = [batches.sums(batches.batch(step)) for step in range(arguments.steps)]
    tokens, first = sum(one["source_tokens"] + one["target_tokens"] for one in sums), times[SYSTEMS[0].name]
    speeds = {name: f"{tokens / statistics.median(own):,.0f}" for name, own in times.items()}
    ratios = {name: statistics.median(map(float.__truediv__, own, first)) for name, own in times.items()}
    return [[shape, name, speeds[name], f"{ratios[name]:.2f}"] for name in times] + rows


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main(arguments: argparse.Namespace) -> None:
    load()  # refuses an missing params.yaml before the processes start
    print(f"{processor()}, {arguments.threads} threads, torch {torch.__version__}\n")
    rows = [row for shape in arguments.shape for row in compare(shape, arguments)]
    print(shown({"columns": COLUMNS, "rows": rows}))


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
