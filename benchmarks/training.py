"""Training speed on a CPU compared with other libraries, on the same batches and in turns.

    python -m benchmarks.training [--shape tiny|base|big ...] [--precision float32] [--rounds 5] [--record NAME]

Each system has its own process. The first row of the table trains as pipeline.train does with `batching: by_length`.
Exception: in bfloat16, pipeline.train pads its batches to fewer shapes (`rounded`), which repeated batches do not need.
The row "portable" trains so, too, in float32 with `arithmetic: portable`.
Ours keeps the memory that it frees, as pipeline.train does. `torch.nn.Transformer` is measured with the default of the
C library, as a user would run it, and also with freed memory kept. The columns are:

- real tokens (source and target, without padding) per second, as the median over the rounds;
- the time relative to the first row, as the median over the rounds.

torch.nn.Transformer also applies `dropout` to the attention weights and after the ReLU.

The row of a library that is not installed (`pip install transformers`) shows a dash and the reason. The threads, and
the precision unless it is given, are those of params.yaml. benchmarks.gpu measures the speed on a GPU.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import record
from benchmarks.record import Table
from benchmarks.turns import Entrant, Turn, take_turns
from benchmarks.workload import random_pairs
from pipeline.running import stage
from pipeline.running.hardware import keep_freed
from pipeline.settings.params import load, section
from transformer import fast
from transformer.arithmetic import make_portable
from transformer.batch import Batch
from transformer.config.arithmetic import VARIABLES
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.data import Batches
from transformer.device import autocast, precision_of
from transformer.layers import sinusoids
from transformer.layout import Layout, packed, padded
from transformer.model import Transformer, loss
from transformer.optimisation import adam
from transformer.step import Step
from transformer.training import new_state

CPU, PAIRS, LONGEST = torch.device("cpu"), 500_000, 512  # `LONGEST`: positions of a sentence
SIZES = {"tiny": (2000, 4000), "base": (2000, 37000), "big": (1000, 37000)}  # tokens per batch, and vocabulary


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with tied embeddings, sinusoidal positions and masks.

    Unlike our model, it also normalises the output of each stack.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.transformer = nn.Transformer(
            config.d_model, config.h, config.N, config.N, config.d_ff, config.dropout, batch_first=True
        )
        self.register_buffer("positions", sinusoids(LONGEST, config.d_model))
        self.dropout, self.scale = nn.Dropout(config.dropout), math.sqrt(config.d_model)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        padding = source_BS == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target_BT.shape[1], device=source_BS.device)
        hidden = self.transformer(
            self.embed(source_BS),
            self.embed(target_BT),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])


def torch_loss(model: nn.Module, batch: Batch, smoothing: float) -> Tensor:
    return loss(model(batch.source.ids_BS, batch.target.ids_BS), padded_labels(batch), smoothing)


def padded_labels(batch: Batch) -> Tensor:
    labels_BT = torch.zeros_like(batch.target.ids_BS)
    labels_BT.view(-1)[batch.real_N] = batch.labels_N
    return labels_BT


def marian(config: ModelConfig, vocabulary: int) -> nn.Module:
    from transformers import MarianConfig, MarianMTModel

    from pipeline.extras.export.__main__ import marian_config

    ids = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    return MarianMTModel(MarianConfig(**marian_config(config, vocabulary), **ids))


def marian_loss(model: nn.Module, batch: Batch, smoothing: float) -> Tensor:
    source_BS = batch.source.ids_BS
    output = model(
        input_ids=source_BS,
        attention_mask=(source_BS != PAD).long(),
        decoder_input_ids=batch.target.ids_BS,
        use_cache=False,
    )
    return loss(output.logits, padded_labels(batch), smoothing)


class System(NamedTuple):
    """A model with its loss, to be trained. The loss of ours is computed by `Step`."""

    build: Callable[[ModelConfig, int], nn.Module]
    loss: Callable[..., Tensor] | None = None  # of a model, a batch and the label smoothing
    layout: Layout = padded
    kept: bool = False  # the process keeps the memory that it frees
    portable: bool = False


def ours(config: ModelConfig, vocabulary: int) -> Transformer:
    return Transformer(config, vocabulary, fast.layers(CPU))


TORCH = System(TorchTransformer, torch_loss)
SYSTEMS = {
    "ours, padded": System(ours, kept=True),
    "ours, padded, portable": System(ours, kept=True, portable=True),
    "ours, packed": System(ours, layout=packed, kept=True),
    "torch.nn.Transformer": TORCH,
    "torch.nn.Transformer, freed memory kept": TORCH._replace(kept=True),
    "Hugging Face MarianMTModel": System(marian, marian_loss),
}


def trained(chosen: tuple[System, str, int, str | None]) -> Turn:
    """A pass of a system over its batches: the system, the shape of the model, the number of steps and the precision."""
    system, shape, steps, precision = chosen
    if system.kept:
        keep_freed()
    if system.portable and (reason := make_portable()):
        raise UserError(f"arithmetic: portable is not possible here: {reason}")
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
    chosen_precision = "float32" if system.portable else precision or config.precision
    precision, optimiser = precision_of(chosen_precision, CPU), adam(model.parameters(), config)
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
        given = shape, arguments.steps, arguments.precision
        chosen = {
            name: Entrant(system.loss is None, trained, (system, *given), VARIABLES if system.portable else {})
            for name, system in SYSTEMS.items()
        }
        turns = take_turns(chosen, arguments.rounds)
        rows = [[shape, name, turns.speed(name), turns.ratio(first, name)] for name in turns.speeds]
        rows += [[shape, name, f"– ({reason})", "–"] for name, reason in turns.reasons.items()]
        yield {"columns": ["shape", "trainer", "real tokens/s", "time, ours = 1"], "rows": rows}


if __name__ == "__main__":
    parser = stage.parser("benchmarks.training", __doc__)
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["tiny", "base"])
    parser.add_argument("--precision", choices=("float32", "bfloat16"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    record.run(measure, parser)
