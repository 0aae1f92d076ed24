"""Detects leaks of the training loop: 20,000 steps of a very small model, with records, dev losses, weights and states.

    python -m benchmarks.long_run [--steps 20000]

Prints, every 1,000 steps, the memory (RSS), the open files, and the number and bytes of the files in the training's folder
(bytes without the log). Exits with status 1 if one of them grows by more than 2% after the first quarter.
"""

import argparse
import dataclasses
import os
import tempfile
from pathlib import Path

import torch

from benchmarks.workload import LogNormalPairs
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from transformer import fast
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, require
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.model import Transformer
from transformer.store import Store
from transformer.training import Trainer, new_state

VOCABULARY = 200
EVERY = 1000


def trainer(folder: Path, steps: int) -> Trainer:
    params, device = load(), torch.device("cpu")
    model = section(params, "models", "base", "model", ModelConfig)
    model = dataclasses.replace(model, N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8)
    config = section(params, "models", "base", "training", TrainingConfig)
    config = dataclasses.replace(config, batch_tokens=200, micro_batch_tokens=200, max_length=200, threads=1, warmup=1000)
    config = dataclasses.replace(config, steps=steps, checkpoint_every=100, log_every=100, evaluate_every=500)
    # With patience, any checkpoint may be the last, so the weights of every checkpoint are written.
    config = dataclasses.replace(config, patience=10**9)
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    batches = Batches(LogNormalPairs(VOCABULARY, 5000), config.seed, config.batch_tokens, config.max_length)
    state = new_state(Transformer(model, VOCABULARY, fast.layers(device)), config, device)
    dev = LogNormalPairs(VOCABULARY, 20)
    return Trainer(state, batches, dev, config, Store(folder, config.keep, {}), device, "float32", 1e9)


def reading(folder: Path) -> tuple[int, int, int, int]:
    """Resident memory, open file descriptors, files in the folder, and their bytes without the log."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files if path.name != "training.jsonl")
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), len(files), size


def grown(readings: list[tuple[int, int, int, int]]) -> list[str]:
    """A message for each value that grew by over 2% after the first quarter, when batches of all sizes have occurred."""
    names = ("memory", "open files", "files in the folder", "bytes in the folder")
    values = zip(names, readings[len(readings) // 4], readings[-1])
    return [f"{name} grew from {first:,} to {last:,}" for name, first, last in values if last > 1.02 * first]


def main(arguments: argparse.Namespace) -> None:
    require(arguments.steps >= EVERY, "--steps", arguments.steps, f"at least {EVERY} is expected")
    readings: list[tuple[int, int, int, int]] = []
    with tempfile.TemporaryDirectory() as name:
        training = trainer(Path(name), arguments.steps)

        def stop() -> bool:
            due = training.state.step % EVERY == 0
            training.save_every_seconds = 0.0 if due else 1e9  # the next step saves a state
            if due:
                readings.append(reading(Path(name)))
                memory, descriptors, files, size = readings[-1]
                row = f"| {training.state.step:,} | {memory / 2**20:.1f} | {descriptors} | {files} | {size:,} |"
                print(row, flush=True)
            return False

        print("| step | RSS, MiB | open files | files | bytes |\n|---:|---:|---:|---:|---:|")
        training.run(lambda record: None, stop)
    if found := grown(readings):
        raise UserError("; ".join(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.long_run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=20_000)
    stage.run(main, parser, checked=False)
