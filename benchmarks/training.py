"""Training speed beside peers, on the same batches, in one process, turn by turn.

    python -m benchmarks.training [--shape tiny|base|big ...] [--rounds 5] [--compile] [--profile]

Prints a table: real tokens (source + target) a second; the time beside that of the first row, which trains as
pipeline.train does on this device, as the median over the rounds; on a GPU the model's FLOPs utilisation and the peak
of memory; and the seconds from nothing to the first step that is as fast as those that follow, compilation and all. A
peer that is not installed (`pip install transformers`, `joeynmt`) is a dash with the reason. Whatever is not started
within --minutes is left out, so that it ends within ten; what torch compiled is kept for the next run. `--profile` says
where the time of our steps goes. On a GPU the batches are the paper's, 25,000 + 25,000 tokens, in bfloat16.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.profile import print_profile
from benchmarks.workload import LogNormalPairs
from pipeline.flops import rate
from pipeline.settings.params import load, section
from pipeline.settings.rates import rates
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer.compilation import compiles, hindrance
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.flops import Lengths, forward_flops, training_flops
from transformer.layout import Batch, Layout, packed, padded
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.perplexity import batch_loss
from transformer.precision import autocast, precision_of

# Tokens a batch and vocabulary by shape on a processor; a GPU takes the paper's batches, too.
SIZES = {"tiny": (2000, 4000), "base": (2000, 37000), "big": (1000, 37000)}
PAPER = (25000, 37000)
STEADY = 1.5  # times the median of a step: a step within that is as fast as those that follow


class System(NamedTuple):
    """One way to train."""

    name: str
    build: Callable[[ModelConfig, int], nn.Module]
    loss: Callable[[nn.Module, Batch, float], Tensor]
    layout: Layout = padded
    compiled: bool = False


OURS = [System(f"ours, {layout.__name__}", Transformer, batch_loss, layout) for layout in (padded, packed)]
PEERS = [
    System("torch.nn.Transformer", peers.TorchTransformer, peers.torch_loss),
    System("Hugging Face MarianMTModel", peers.marian, peers.marian_loss),
    System("JoeyNMT", peers.joeynmt, peers.joeynmt_loss),
]


def compiled(system: System) -> System:
    """A peer with its loss; ours compiles its loss by itself."""
    loss = system.loss if system in OURS else partial(system.loss, smoothed=peers.compiled_loss())
    return system._replace(name=f"{system.name}, compiled", compiled=True, loss=loss)


def systems(cuda: bool, also_compiled: bool) -> list[System]:
    """First what training does on this device, then the peers it is measured by, then the rest."""
    if cuda and compiles("cuda"):
        return [*map(compiled, [OURS[1], *PEERS[:2]]), OURS[1], OURS[0], *PEERS[:2]]
    return [*(reversed(OURS) if cuda else OURS), *PEERS, *map(compiled, [OURS[1], PEERS[0]] if also_compiled else [])]


@dataclass
class Entry:
    """A system at work on its batches, and what was seen of it."""

    system: System
    model: nn.Module
    batches: list[Batch]
    config: TrainingConfig
    times: list[float] = field(default_factory=list)  # of a pass over the batches
    first: list[tuple[float, float]] = field(default_factory=list)  # when each of the first steps ended; its seconds
    memory: int = 0  # bytes at the peak, its weights among them

    def __post_init__(self) -> None:
        started = time.perf_counter()
        self.device = next(self.model.parameters()).device
        before = self.allocated()
        self.optimiser = adam(self.model.parameters(), self.config)
        self.optimiser.param_groups[0]["lr"] = 1e-4
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        self.forward = self.compile() if self.system.compiled else self.model.train()
        for batch in 2 * self.batches:
            begun = time.perf_counter()
            self.step(batch)
            self.wait()
            self.first.append((time.perf_counter() - started, time.perf_counter() - begun))
        self.static = weights + self.allocated() - before  # with Adam's moments

    def compile(self) -> nn.Module:
        """Ours a layer at a time, as it is trained; a peer whole, as one does."""
        if isinstance(self.model, Transformer):
            self.model.train().compile_layers()
            return self.model
        return torch.compile(self.model.train(), dynamic=True)

    def step(self, batch: Batch) -> None:
        with autocast(self.device, precision_of(self.config.precision, self.device)):
            loss = self.system.loss(self.forward, batch, self.config.label_smoothing)
        (loss / len(batch.labels_N)).backward()
        self.optimiser.step()
        self.optimiser.zero_grad()

    def turn(self) -> None:
        """A timed pass over the batches."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        others = self.allocated() - self.static
        started = time.perf_counter()
        for batch in self.batches:
            self.step(batch)
        self.wait()
        self.times.append(time.perf_counter() - started)
        if self.device.type == "cuda":
            self.memory = max(self.memory, torch.cuda.max_memory_allocated() - others)

    def allocated(self) -> int:
        return torch.cuda.memory_allocated() if self.device.type == "cuda" else 0

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def start_up(self) -> float:
        """Seconds until the end of the first step that was as fast as later ones."""
        steady = STEADY * statistics.median(self.times) / len(self.batches)
        return next((ended for ended, seconds in self.first if seconds < steady), self.first[-1][0])


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
        return Entry(system, model, batches, self.config)

    def row(self, entry: Entry, first: Entry) -> str:
        median = statistics.median(entry.times)
        ratio = statistics.median(theirs / ours for theirs, ours in zip(entry.times, first.times))
        sums = [self.batches.sums(self.batches.batch(step)) for step in range(self.steps)]
        lengths = Lengths(**{key: sum(batch[key] for batch in sums) for key in sums[0]})
        forward = forward_flops(self.model, self.vocabulary, lengths, causal_half=True)
        tokens = lengths.source_tokens + lengths.target_tokens
        cells = [self.name, entry.system.name, f"{tokens / median:,.0f}", f"{ratio:.2f}"]
        cells += [utilisation(sum(training_flops(forward).values()) / median, self.config, self.device)]
        cells += [f"{entry.memory / 2**30:.1f}" if entry.memory else "–", f"{entry.start_up():.0f}"]
        return table_row(cells)


def utilisation(flops: float, config: TrainingConfig, device: torch.device) -> str:
    """The model's operations a second over what the GPU can do by its datasheet."""
    if device.type == "cpu":
        return "–"
    peak = rate(rates(load(), "peak_tflops"), torch.cuda.get_device_name(), precision_of(config.precision, device))
    return f"{flops / peak / 1e12:.0%}" if peak else "–"


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def host_waits(entry: Entry) -> int:
    """How often the host waits for the GPU in one step; each wait leaves it without work."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        entry.step(entry.batches[0])
        torch.cuda.set_sync_debug_mode("default")
    return sum("called a synchronizing" in str(warning.message) for warning in seen)


def compare(shape: Shape, chosen: list[System], rounds: int, deadline: float, profile: bool) -> None:
    """Print the rows of one shape."""
    entries, absent = [], []
    for system in chosen:
        try:
            if entries and time.monotonic() > deadline:
                raise TimeoutError("no time was left")
            entries.append(shape.enter(system))
        except Exception as error:  # whatever a peer can fail by, the others' rows are wanted
            if system.build is Transformer and not isinstance(error, TimeoutError):
                raise
            absent.append((system.name, f"{type(error).__name__}: {str(error).split(chr(10))[0]}"))
    for _ in range(rounds):
        for entry in entries:
            entry.turn()
    print("\n".join(shape.row(entry, entries[0]) for entry in entries))
    for name, reason in absent:
        print(table_row([shape.name, name, f"– ({reason})", *4 * "–"]), flush=True)
    if profile or shape.device.type == "cuda":
        print()
    if shape.device.type == "cuda":
        print(f"The host waits for the GPU {host_waits(entries[0])} times in a step of ours.\n")
    if profile:
        print_profile(lambda: [entries[0].step(batch) for batch in entries[0].batches], shape.steps, shape.device)


def options() -> argparse.ArgumentParser:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="benchmarks.training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["base", "big"] if cuda else ["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16 if cuda else 2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=6, help="nothing more is started after so long")
    parser.add_argument("--compile", action="store_true", help="on a processor, compiled ones too")
    parser.add_argument("--profile", action="store_true")
    return parser


def main(arguments: argparse.Namespace) -> None:
    cuda = torch.cuda.is_available()
    torch.set_num_threads(arguments.threads)
    device, deadline = torch.device("cuda" if cuda else "cpu"), time.monotonic() + 60 * arguments.minutes
    name = torch.cuda.get_device_name() if cuda else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    if cuda and not compiles("cuda"):
        print(f"Nothing is compiled: {hindrance()}.\n")
    print(table_row(["shape", "trainer", "real tokens/s", "time, ours = 1", "MFU", "memory, GB", "start-up, s"]))
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    for shape in arguments.shape:
        chosen = systems(cuda, arguments.compile)
        compare(Shape.of(shape, arguments.steps, device), chosen, arguments.rounds, deadline, arguments.profile)


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
