"""All measurements that need a GPU, in parts of a few minutes.

    python -m benchmarks.gpu --part check|train|big [--record NAME]

Needs torch 2.11 or newer, numpy, sentencepiece, safetensors, ruamel.yaml, filelock, langcodes and tqdm. On a CPU
all parts run with a small model, to show that they work.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import record
from benchmarks.gpu import checks, speed
from benchmarks.gpu.bench import Bench
from benchmarks.record import Table
from pipeline.running import stage
from transformer import fast
from transformer.config.reading import UserError
from transformer.device import device_of

PARTS: dict[str, Callable[[Bench], Iterator[Table]]] = {
    "check": checks.run,
    "train": partial(speed.run, part="train"),
    "big": partial(speed.run, part="big"),
}


def measure(arguments: argparse.Namespace) -> Iterator[Table]:
    bench = Bench(device_of("auto"))
    if bench.device.type == "cuda" and (reason := fast.hindrance()):
        raise UserError(f"our kernels are not used: {reason}")
    return PARTS[arguments.part](bench)


if __name__ == "__main__":
    parser = stage.parser("benchmarks.gpu", __doc__)
    parser.add_argument("--part", choices=PARTS, required=True)
    record.run(measure, parser)
