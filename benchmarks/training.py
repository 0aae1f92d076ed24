"""Training speed on a CPU compared with other libraries, on the same batches and in turns.

    python -m benchmarks.training [--shape tiny|base|big ...] [--rounds 5] [--record NAME]

Each system has its own process. The first row of the table trains as pipeline.train does with `batching: by_length`.
Exception: in bfloat16, pipeline.train pads its batches to fewer shapes (`rounded`), which repeated batches do not need.
Ours keeps the memory that it frees, as pipeline.train does. `torch.nn.Transformer` is measured with the default of the
C library, as a user would run it, and also with freed memory kept. The columns are:

- real tokens (source and target, without padding) per second, as the median over the rounds;
- the time relative to the first row, as the median over the rounds.

The row of a library that is not installed (`pip install transformers`) shows a dash and the reason. The precision and
the threads are those of params.yaml. benchmarks.gpu measures the speed on a GPU.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import peers, record
from benchmarks.record import Table
from benchmarks.turns import Turn, take_turns
from benchmarks.workload import random_pairs
from pipeline.running import stage
from pipeline.running.hardware import keep_freed
from pipeline.settings.params import load, section
from transformer import fast
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.device import autocast, precision_of
from transformer.layout import Layout, packed, padded
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.step import Step
from transformer.training import new_state

CPU, PAIRS = torch.device("cpu"), 500_000
SIZES = {"tiny": (2000, 4000), "base": (2000, 37000), "big": (1000, 37000)}  # tokens per batch, and vocabulary


class System(NamedTuple):
    """A model with its loss, to be trained. The loss of ours is computed by `Step`."""

    build: Callable[[ModelConfig, int], nn.Module]
    loss: Callable[..., Tensor] | None = None  # of a model, a batch and the label smoothing
    layout: Layout = padded
    kept: bool = False  # the process keeps the memory that it frees


def ours(config: ModelConfig, vocabulary: int) -> Transformer:
    return Transformer(config, vocabulary, fast.layers(CPU))


TORCH = System(peers.TorchTransformer, peers.torch_loss)
SYSTEMS = {
    "ours, padded": System(ours, kept=True),
    "ours, packed": System(ours, layout=packed, kept=True),
    "torch.nn.Transformer": TORCH,
    "torch.nn.Transformer, freed memory kept": TORCH._replace(kept=True),
    "Hugging Face MarianMTModel": System(peers.marian, peers.marian_loss),
}


def trained(chosen: tuple[System, str, int]) -> Turn:
    """A pass of a system over its batches: the system, the shape of the model and the number of steps."""
    system, shape, steps = chosen
    if system.kept:
        keep_freed()
    tokens, vocabulary = SIZES[shape]
    config = section(load(), "models", shape, "training", TrainingConfig)
    torch.set_num_threads(config.threads)
    torch.manual_seed(1)
    model = system.build(section(load(), "models", shape, "model", ModelConfig), vocabulary).train()
    pairs = random_pairs(vocabulary, PAIRS)
    of_pairs = Batches(pairs, 1, tokens, 256)
    numbers = [of_pairs.batch(step) for step in range(steps)]
    sums = [of_pairs.sums(each) for each in numbers]
    real = sum(each["source_tokens"] + each["target_tokens"] for each in sums)
    batches = [system.layout(pairs, each) for each in numbers]
    precision, optimiser = precision_of(config.precision, CPU), adam(model.parameters(), config)
    optimiser.param_groups[0]["lr"] = 1e-4
    own = Step(new_state(model, config, CPU), config, CPU, precision) if isinstance(model, Transformer) else None

    def turn() -> tuple[int, None]:
        for batch in batches:
            if own:
                own.add(batch, len(batch.labels_N))
            else:
                assert system.loss is not None
                with autocast(CPU, precision):
                    loss = system.loss(model, batch, config.label_smoothing)
                (loss / len(batch.labels_N)).backward()
            optimiser.step()
            optimiser.zero_grad()
        return real, None

    return turn


def measure(arguments: argparse.Namespace) -> Iterator[Table]:
    load()  # refuses a missing params.yaml before the processes start
    first, *_ = SYSTEMS
    for shape in arguments.shape:
        chosen = {
            name: (system.loss is None, trained, (system, shape, arguments.steps)) for name, system in SYSTEMS.items()
        }
        turns = take_turns(chosen, arguments.rounds)
        rows = [[shape, name, turns.speed(name), turns.ratio(first, name)] for name in turns.speeds]
        rows += [[shape, name, f"– ({reason})", "–"] for name, reason in turns.reasons.items()]
        yield {"columns": ["shape", "trainer", "real tokens/s", "time, ours = 1"], "rows": rows}


if __name__ == "__main__":
    parser = stage.parser("benchmarks.training", __doc__)
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    record.run(measure, parser)
