"""Training speed beside torch.nn.Transformer, on the same batches, in one process, turn by turn.

    python -m benchmarks.training [--shape tiny|base|big ...] [--rounds 5]

Prints real tokens (source + target) a second and the ratio, as medians over the rounds. On a GPU both run in bfloat16
and the peer is compiled as well.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.machine import processor
from pipeline.params import load, section
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.config.vocabulary import PAD
from transformer.data import Batches
from transformer.layers import sinusoids
from transformer.layout import Batch, padded
from transformer.model import Transformer
from transformer.optimisation import adam
from transformer.training import autocast, batch_loss, precision_of

# Tokens a batch and vocabulary by shape on a processor; a GPU takes the paper's.
SIZES = {"tiny": (2000, 4000), "base": (2000, 8000), "big": (1000, 8000)}


class LogNormalPairs:
    """Random pieces in sentences as long as WMT14's after BPE: log-normal, mean 27."""

    def __init__(self, pairs: int, vocabulary: int) -> None:
        random = np.random.default_rng(1)
        source = np.clip(random.lognormal(3.1, 0.6, pairs), 3, 200)
        target = np.clip(source * random.lognormal(0.05, 0.2, pairs), 3, 200)
        sides = (source.astype(int), target.astype(int))
        self.sides = [[random.integers(4, vocabulary, n) for n in side] for side in sides]

    def __len__(self) -> int:
        return len(self.sides[0])

    def lengths(self, side: str) -> np.ndarray:
        return np.array([len(ids) for ids in self.sides[side == "target"]])

    def pair(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        return self.sides[0][number], self.sides[1][number]


class Peer(nn.Module):
    """What one writes around torch.nn.Transformer: tied embeddings, sinusoids, padding and causal masks."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.transformer = nn.Transformer(
            config.d_model, config.h, config.N, config.N, config.d_ff, config.dropout, batch_first=True
        )
        self.register_buffer("positions", sinusoids(512, config.d_model))
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


def peer_loss(peer: nn.Module, batch: Batch, smoothing: float) -> Tensor:
    labels = torch.zeros_like(batch.target.ids_BS).flatten()
    labels[batch.real_N] = batch.labels_N
    logits = peer(batch.source.ids_BS, batch.target.ids_BS).flatten(0, 1)
    return F.cross_entropy(logits, labels, ignore_index=PAD, label_smoothing=smoothing, reduction="sum")


def seconds(
    model: nn.Module, loss_of: Callable, batches: list[Batch], config: TrainingConfig, optimiser: torch.optim.Adam
) -> float:
    """Time of a training step on each of `batches`."""
    device = next(model.parameters()).device
    started = time.perf_counter()
    for batch in batches:
        with autocast(device, precision_of(config.precision, device)):
            loss = loss_of(model, batch, config.label_smoothing)
        (loss / len(batch.labels_N)).backward()
        optimiser.step()
        optimiser.zero_grad()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def compare(shape: str, rounds: int, steps: int, device: torch.device) -> list[str]:
    """Rows of the table for one shape."""
    params = load()
    config = section(params, "models", shape, "training", TrainingConfig)
    model_config = section(params, "models", shape, "model", ModelConfig)
    tokens, vocabulary = SIZES[shape] if device.type == "cpu" else (25000, 37000)
    pairs = LogNormalPairs(max(2000, 4 * tokens * steps // 27), vocabulary)
    plan = Batches(pairs, 1, tokens, 256)
    batches = [padded(pairs, plan.batch(step)).to(device) for step in range(steps)]
    real = sum(len(batch.labels_N) + int((batch.source.ids_BS != PAD).sum()) for batch in batches)
    torch.manual_seed(1)
    ours, peer = Transformer(model_config, vocabulary).to(device), Peer(model_config, vocabulary).to(device)
    systems = {"ours": (ours, batch_loss), "torch.nn.Transformer": (peer, peer_loss)}
    if device.type == "cuda":
        systems["torch.nn.Transformer, compiled"] = (torch.compile(peer, dynamic=True), peer_loss)
    trained = {name: (*pair, adam(pair[0].parameters(), config)) for name, pair in systems.items()}
    times: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(rounds + 1):
        for name, (model, loss_of, optimiser) in trained.items():
            for group in optimiser.param_groups:
                group["lr"] = 1e-4
            taken = seconds(model.train(), loss_of, batches, config, optimiser)
            if number:  # the first round warms up
                times[name].append(taken)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return [
        f"| {shape} | {name} | {real / median:,.0f} | {median / medians['ours']:.2f} |"
        for name, median in medians.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SIZES, default=["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{processor()}, {arguments.threads} threads"
    print(f"{name}, torch {torch.__version__}\n")
    print("| shape | trainer | real tokens/s | time, ours = 1 |\n|---|---|---:|---:|")
    for shape in arguments.shape:
        print("\n".join(compare(shape, arguments.rounds, arguments.steps, device)), flush=True)


if __name__ == "__main__":
    main()
