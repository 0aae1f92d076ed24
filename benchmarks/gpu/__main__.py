"""All measurements that need a GPU, in parts of at most nine minutes, the most valuable first.

    python -m benchmarks.gpu [--part check|train|big ...] [--data work/gpu/data] [--out work/gpu/results]
                             [--batching by_length|mixed]

Needs Python 3.11 to 3.13, torch 2.11 or newer, numpy, sentencepiece and safetensors. `python -m benchmarks.gpu.prepare`
makes the data. Each part runs in a process of its own, prints its tables and writes one JSON file, even if it fails or
its time is up. The files of a GPU belong into benchmarks/results/. On a CPU all parts
run with a small model, to show that they work.
"""

import argparse
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import torch

from benchmarks.gpu import checks, speed
from benchmarks.gpu.bench import Bench, Outcome, versions
from benchmarks.provenance import shown, write_record
from transformer import fast
from transformer.config.reading import UserError
from transformer.device import device_of

PARTS: dict[str, Callable[[Bench, Outcome], None]] = {
    "check": checks.run,
    "train": partial(speed.run, part="train"),
    "big": partial(speed.run, part="big"),
}


class TimeUp(BaseException):
    """The time of a part is up. As a BaseException, it passes the `except Exception` of a part."""


def time_up(number: int, frame: FrameType | None) -> None:
    raise TimeUp


def name_of(part: str, bench: Bench) -> str:
    return f"gpu-{part}" if bench.batching == "by_length" else f"gpu-{part}-{bench.batching}"


def run(part: str, bench: Bench) -> Outcome:
    """Run one part, write its JSON file and print its tables."""
    outcome, began = Outcome(), time.perf_counter()
    signal.signal(signal.SIGALRM, time_up)
    signal.alarm(bench.scale.seconds)
    if bench.device.type == "cuda" and (reason := fast.hindrance()):
        outcome.failures.append(f"our kernels are not used: {reason}")
    try:
        PARTS[part](bench, outcome)
    except TimeUp:
        outcome.failures.append(f"stopped after {bench.scale.seconds} seconds")
    except Exception as error:
        outcome.failures.append(f"{type(error).__name__}: {error}")
        raise
    finally:
        signal.alarm(0)
        command = f"python -m benchmarks.gpu {shlex.join(sys.argv[1:])}"
        write_record(
            bench.out / f"{name_of(part, bench)}.json",
            command,
            bench.hardware(),
            versions(),
            bench.settings["commit"],  # that of benchmarks.gpu.prepare, because the code may have been copied without git
            outcome.tables,
            device=bench.device.type,
            seconds=round(time.perf_counter() - began, 1),
            failures=outcome.failures,
        )
        print(*map(shown, outcome.tables), sep="\n", flush=True)
    return outcome


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--data", type=Path, default=Path("work/gpu/data"))
    parser.add_argument("--out", type=Path, default=Path("work/gpu/results"))
    parser.add_argument("--batching", choices=("by_length", "mixed"), default="by_length", help="batching of train and big")
    return parser


def main(arguments: argparse.Namespace) -> int:
    """Exit status 1 if a part failed."""
    bench = Bench(device_of("auto"), arguments.data, arguments.out, arguments.batching)
    _ = bench.settings  # raises UserError for missing data before anything is written
    if len(arguments.part) > 1:
        shared = ["--data", arguments.data, "--out", arguments.out, "--batching", arguments.batching]
        commands = [[sys.executable, "-m", "benchmarks.gpu", *shared, "--part", part] for part in arguments.part]
        return int(any([subprocess.run(each, check=False).returncode for each in commands]))
    print(f"{bench.hardware()}, torch {torch.__version__}, part {arguments.part[0]}\n", flush=True)
    outcome = run(arguments.part[0], bench)
    for failure in outcome.failures:
        print(f"benchmarks.gpu: {failure}", file=sys.stderr)
    return int(bool(outcome.failures))


if __name__ == "__main__":
    try:
        status = main(options().parse_args())
    except (UserError, OSError) as error:
        print(f"benchmarks.gpu: {' '.join(str(error).split())}", file=sys.stderr)
        status = 1
    sys.exit(status)
