"""Training speed compared with other libraries, on the same batches; on a CPU in turns.

    python -m benchmarks.training [--shape tiny|base|big ...] [--rounds 5] [--compile] [--profile]

Each system has its own process. The first row of the table trains as pipeline.train does on this device with `batching:
by_length`. Exception: in bfloat16 on a CPU, pipeline.train pads its batches to fewer shapes (`rounded`), which repeated
batches do not need. Ours keeps the memory that it frees, as pipeline.train does. `torch.nn.Transformer` is measured with
the default of the C library, as a user would run it, and on a CPU also with freed memory kept. The columns are:

- real tokens (source and target, without padding) per second;
- the time relative to the first row, as the median over the rounds;
- on a GPU, the model FLOPs utilisation (MFU) and the peak memory;
- the start-up, from the construction of the optimiser to the end of the first step at full speed, including compilation.

The row of a library that is not installed (`pip install transformers`) shows dashes and the reason. A system
whose turn to start comes after --minutes is skipped, so that the benchmark ends within ten minutes. torch caches compiled
code for the next run. --profile prints where the time of our steps goes. On a GPU the batches have the paper's size (25,000
source and 25,000 target tokens). The precision is `auto`.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.process import Process
from benchmarks.profile import host_waits, print_profile
from benchmarks.workload import LogNormalPairs
from pipeline.costs.training_cost import rate
from pipeline.settings.params import load, section
from pipeline.settings.rates import rates
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer import fast
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.device import autocast, precision_of
from transformer.fast.compilation import compiles, hindrance
from transformer.fast.graphs import Graphs
from transformer.flops import Lengths, forward_flops, training_flops
from transformer.gradients import Gradients
from transformer.layout import Batch, Layout, joined, packed, padded
from transformer.memory import keep_freed
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.perplexity import batch_loss

# Tokens per batch and vocabulary size of each shape on a CPU. A GPU uses the batches of the paper for all shapes.
SIZES = {"tiny": (2000, 4000), "base": (2000, 37000), "big": (1000, 37000)}
PAPER = (25000, 37000)
STEADY = 1.5  # a step is at full speed if it takes at most this multiple of the median


class System(NamedTuple):
    """A model with its loss, to be trained."""

    name: str
    build: Callable[[ModelConfig, int], nn.Module]
    loss: Callable[..., Tensor]  # of a model, a batch and the label smoothing; ours is computed by `Gradients`
    layout: Layout = padded
    compiled: bool = False
    kept: bool = False  # the process keeps the memory that it frees


def ours(config: ModelConfig, vocabulary: int, kernels: Literal["auto", "off"] = "off") -> Transformer:
    """Our model, on a GPU without kernels or with them. They are compiled."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Transformer(config, vocabulary, fast.layers(device, kernels))


OURS = [System(f"ours, {layout.__name__}", ours, batch_loss, layout, kept=True) for layout in (padded, packed, joined)]
PEERS = [
    System("torch.nn.Transformer", peers.TorchTransformer, peers.torch_loss),
    System("Hugging Face MarianMTModel", peers.marian, peers.marian_loss),
]


def compiled(system: System) -> System:
    """The compiled variant of a system. Ours compiles itself, on a GPU only; another system gets a compiled loss."""
    name = f"{system.name}, compiled"
    if system in OURS:
        return system._replace(name=name, build=partial(ours, kernels="auto"))
    return system._replace(name=name, compiled=True, loss=partial(system.loss, smoothed=peers.compiled_loss()))


def systems(cuda: bool, also_compiled: bool) -> list[System]:
    """The systems in the order of the table. The first one is closest to pipeline.train on this device."""
    if cuda and compiles("cuda"):
        return [*map(compiled, [OURS[2], OURS[1], *PEERS[:2]]), OURS[1], OURS[0], *PEERS[:2]]
    if cuda:
        return [OURS[1], OURS[0], *PEERS]
    kept = PEERS[0]._replace(name=f"{PEERS[0].name}, freed memory kept", kept=True)
    return [OURS[0], OURS[1], PEERS[0], kept, *PEERS[1:], *map(compiled, PEERS[:1] if also_compiled else [])]


@dataclass
class Entry:
    """A system that trains on its batches, and its measurements."""

    system: System
    model: nn.Module
    batches: list[Batch]
    config: TrainingConfig
    times: list[float] = field(default_factory=list)  # seconds of each pass over the batches
    first: list[tuple[float, float]] = field(default_factory=list)  # end and duration of each warm-up step
    memory: int = 0  # bytes that torch reserved, at the peak

    def __post_init__(self) -> None:
        started = time.perf_counter()
        self.device = next(self.model.parameters()).device
        self.precision = precision_of(self.config.precision, self.device)
        self.gradients: Gradients | None = None
        if isinstance(self.model, Transformer):
            self.gradients = Gradients(self.model, self.config, self.device, self.precision, Graphs.on_gpu(self.model))
        self.optimiser = adam(self.model.parameters(), self.config)
        self.optimiser.param_groups[0]["lr"] = 1e-4
        self.forward: Callable = self.model.train()
        if self.system.compiled:
            self.forward = torch.compile(self.forward, dynamic=True)
        for batch in 2 * self.batches:
            begun = time.perf_counter()
            self.step(batch)
            self.wait()
            self.first.append((time.perf_counter() - started, time.perf_counter() - begun))

    def step(self, batch: Batch) -> None:
        if self.gradients:
            self.gradients.add(batch, len(batch.labels_N))
        else:
            with autocast(self.device, self.precision):
                loss = self.system.loss(self.forward, batch, self.config.label_smoothing)
            (loss / len(batch.labels_N)).backward()
        self.optimiser.step()
        self.optimiser.zero_grad()

    def turn(self) -> None:
        """A timed pass over the batches."""
        started = time.perf_counter()
        for batch in self.batches:
            self.step(batch)
        self.wait()
        self.times.append(time.perf_counter() - started)
        if self.device.type == "cuda":
            self.memory = torch.cuda.max_memory_reserved()

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def start_up(self) -> float:
        """Seconds until the end of the first step at full speed."""
        steady = STEADY * statistics.median(self.times) / len(self.batches)
        return next((ended for ended, seconds in self.first if seconds < steady), self.first[-1][0])


class Measured(NamedTuple):
    """What the process of a system measured."""

    times: list[float]  # seconds of each pass over the batches
    memory: int  # bytes that torch reserved, at the peak; 0 on a CPU
    start_up: float  # seconds


@dataclass
class Shape:
    """The batches of one shape of model, and the systems that train on them."""

    name: str
    config: TrainingConfig
    model: ModelConfig
    vocabulary: int
    pairs: LogNormalPairs
    batches: Batches
    steps: int
    device: torch.device

    @classmethod
    def of(cls, name: str, steps: int, device: torch.device) -> "Shape":
        config = section(load(), "models", name, "training", TrainingConfig)
        model = section(load(), "models", name, "model", ModelConfig)
        tokens, vocabulary = SIZES[name] if device.type == "cpu" else PAPER
        pairs = LogNormalPairs(vocabulary)
        return cls(name, config, model, vocabulary, pairs, Batches(pairs, 1, tokens, 256), steps, device)

    def enter(self, system: System) -> Entry:
        torch.manual_seed(1)
        model = system.build(self.model, self.vocabulary).to(self.device)
        numbers = (self.batches.batch(step) for step in range(self.steps))
        batches = [system.layout(self.pairs, chosen).to(self.device) for chosen in numbers]
        config = dataclasses.replace(self.config, threads=torch.get_num_threads())
        return Entry(system, model, batches, config)

    def row(self, name: str, measured: Measured, first: Measured) -> str:
        median = statistics.median(measured.times)
        ratio = statistics.median(theirs / ours for theirs, ours in zip(measured.times, first.times))
        sums = [self.batches.sums(self.batches.batch(step)) for step in range(self.steps)]
        lengths = Lengths(**{key: sum(batch[key] for batch in sums) for key in sums[0]})
        forward = forward_flops(self.model, self.vocabulary, lengths, causal_half=True)
        tokens = lengths.source_tokens + lengths.target_tokens
        cells = [self.name, name, f"{tokens / median:,.0f}", f"{ratio:.2f}"]
        cells += [utilisation(sum(training_flops(forward).values()) / median, self.config, self.device)]
        cells += [f"{measured.memory / 2**30:.1f}" if measured.memory else "–", f"{measured.start_up:.0f}"]
        return table_row(cells)


def utilisation(flops: float, config: TrainingConfig, device: torch.device) -> str:
    """`flops`, operations per second, divided by the GPU's peak rate in params.yaml; a dash on a CPU or without a rate."""
    if device.type == "cpu":
        return "–"
    peak = rate(rates(load(), "peak_tflops"), torch.cuda.get_device_name(), precision_of(config.precision, device))
    return f"{flops / peak / 1e12:.0%}" if peak else "–"


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


entry: Entry  # of this process


def start(number: int, shape: str, arguments: argparse.Namespace) -> None:
    """Make the entry of this process: the system with this number, on the batches of the shape."""
    global entry
    cuda = torch.cuda.is_available()
    system = systems(cuda, arguments.compile)[number]
    torch.set_num_threads(arguments.threads)
    if system.kept:
        keep_freed()
    entry = Shape.of(shape, arguments.steps, torch.device("cuda" if cuda else "cpu")).enter(system)


def turn() -> None:
    entry.turn()


def measured() -> Measured:
    return Measured(entry.times, entry.memory, entry.start_up())


def waits() -> int:
    """How often the host waits for the GPU in one step."""
    return len(host_waits(lambda: entry.step(entry.batches[0]), entry.device))


def profile() -> None:
    """Print where the time of a step goes. On a CPU with one thread, as torch's profiler follows only this thread."""
    if (ours := entry.gradients) and ours.device.type == "cpu":
        torch.set_num_threads(1)
        entry.gradients = Gradients(ours.model, dataclasses.replace(ours.config, threads=1), ours.device, ours.precision)
    print_profile(entry.turn, len(entry.batches), entry.device)


def compare(shape: Shape, arguments: argparse.Namespace, deadline: float) -> None:
    """Print the rows of one shape.

    The systems take turns. On a GPU, whose memory does not suffice for all of them, one follows the other.
    """
    cuda, running, results, absent = shape.device.type == "cuda", dict[str, Process](), dict[str, Measured](), []
    for number, system in enumerate(systems(cuda, arguments.compile)):
        process = Process(system.name.startswith("ours"))
        try:
            if number and time.monotonic() > deadline:
                raise TimeoutError("no time left")
            process.do(start, number, shape.name, arguments)
            running[system.name] = process
            if cuda:
                results |= taken(running, arguments.rounds)
        except Exception as error:  # a failure of another library must not hide the other rows
            if system.name.startswith("ours") and not isinstance(error, TimeoutError):
                raise
            process.close()
            running.pop(system.name, None)
            absent.append((system.name, f"{type(error).__name__}: {str(error).split(chr(10))[0]}"))
    results |= taken(running, arguments.rounds)
    first = next(iter(results.values()))
    print("\n".join(shape.row(name, each, first) for name, each in results.items()))
    for name, reason in absent:
        print(table_row([shape.name, name, f"– ({reason})", *4 * "–"]), flush=True)
    if arguments.profile or cuda:
        look_inside(shape, arguments)


def taken(processes: dict[str, Process], rounds: int) -> dict[str, Measured]:
    """Take the turns of these systems, and end their processes, which frees their memory."""
    for _ in range(rounds):
        for process in processes.values():
            process.do(turn)
    results = {name: process.do(measured) for name, process in processes.items()}
    for process in processes.values():
        process.close()
    processes.clear()
    return results


def look_inside(shape: Shape, arguments: argparse.Namespace) -> None:
    """Print the waits of the host and the profile of our first system, which starts again."""
    process = Process(True)
    process.do(start, 0, shape.name, arguments)
    print()
    if shape.device.type == "cuda":
        print(f"The host waits for the GPU {process.do(waits)} times in one of our steps.\n", flush=True)
    if arguments.profile:
        process.do(profile)
    process.close()


def options() -> argparse.ArgumentParser:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="benchmarks.training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["base", "big"] if cuda else ["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16 if cuda else 2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=6, help="start no system after this time")
    parser.add_argument("--compile", action="store_true", help="on a CPU, also measure compiled systems")
    parser.add_argument("--profile", action="store_true")
    return parser


def main(arguments: argparse.Namespace) -> None:
    cuda = torch.cuda.is_available()
    device, deadline = torch.device("cuda" if cuda else "cpu"), time.monotonic() + 60 * arguments.minutes
    name = torch.cuda.get_device_name() if cuda else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    if cuda and not compiles("cuda"):
        print(f"torch.compile is not available: {hindrance()}.\n")
    print(table_row(["shape", "trainer", "real tokens/s", "time, ours = 1", "MFU", "memory, GiB", "start-up, s"]))
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    for shape in arguments.shape:
        compare(Shape.of(shape, arguments.steps, device), arguments, deadline)


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
