"""What a training cost: the paper's estimate from its time (6.1, Table 2), and a count of its operations.

    python -m pipeline.flops RUN --training scores/RUN/training.json --timing scores/RUN/timing.json \\
        --corpus scores/corpora/CORPUS/binarise.json --out scores/RUN/flops.json

Reads what the training left, the vocabulary's size from the corpus' report, and of params.yaml `hardware`, sustained
TFLOPS by GPU, and `peak_tflops`. Their keys are part of the GPU's name as torch gives it (`P100` of `Tesla
P100-SXM2-16GB`; the longest that fits counts), with the precision behind unless it is single: `H200 bfloat16`.

Writes {"paper_estimate": {"flops", "seconds", "gpus", "hardware", "sustained_tflops", "reason"}, "analytic":
{"training_flops", "training_flops_causal_half", "per_step", "components"}, "peak_tflops", "mfu", "hfu",
"energy_joules"}, null where something is not known; `reason` says why the estimate is. The utilisations are operations
over what the GPUs could have done at their peak in the time that the training took, its evaluations included: of the
model (MFU), those it needs, without the scores that the causal mask hides; of the hardware (HFU), all that a plain
implementation computes. Padding counts in neither.
"""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.settings.params import load
from pipeline.settings.rates import rates
from pipeline.settings.score_files import count, within
from pipeline.tracking import client as tracking
from pipeline.workflow import stage
from transformer.config.model import ModelConfig
from transformer.config.reading import keys, read, read_saved, require
from transformer.files import read_json, write_json
from transformer.flops import Lengths, forward_flops, training_flops

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Timing:
    """What is needed of timing.json; the energy stands there only where the GPU reports it."""

    seconds: float
    gpus: int
    hardware: str
    precision: str
    energy_joules: float | None

    def __post_init__(self) -> None:
        require(self.seconds > 0, "seconds", self.seconds, "a time above 0 is expected")
        require(self.gpus >= 0, "gpus", self.gpus, "0 (a processor) or a number of GPUs is expected")


def estimate(seconds: float, gpus: int, tflops: float) -> float:
    """The paper's estimate of a training's operations: time x GPUs x sustained TFLOPS of one (6.1, footnote 5)."""
    return seconds * gpus * tflops * 1e12


def rate(table: Mapping[str, float], hardware: str, precision: str) -> float | None:
    """The entry of a GPU in a table by name and precision, the longest name that fits; None without one."""
    fitting = []
    for key in table:
        name, _, last = key.rpartition(" ")
        name, key_precision = (name, last) if last in PRECISIONS else (key, "float32")
        if key_precision == precision and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", hardware):
            fitting.append(key)
    return table[max(fitting, key=len)] if fitting else None


def paper_estimate(timing: Timing, sustained: Mapping[str, float]) -> dict[str, Any]:
    """The estimate and what it is made of; where it cannot be made, why."""
    tflops = rate(sustained, timing.hardware, timing.precision) if timing.gpus else None
    reason = None
    if not timing.gpus:
        reason = f"it ran on a processor ({timing.hardware}), and the estimate is of GPU time"
    elif tflops is None:
        key = timing.hardware if timing.precision == "float32" else f"{timing.hardware} {timing.precision}"
        reason = f"params.yaml: hardware has no rate of {timing.hardware} in {timing.precision}; add the key {key!r}"
    return {
        "flops": None if tflops is None else estimate(timing.seconds, timing.gpus, tflops),
        "seconds": timing.seconds,
        "gpus": timing.gpus,
        "hardware": timing.hardware,
        "sustained_tflops": tflops,
        "reason": reason,
    }


def analytic(config: ModelConfig, vocabulary_size: int, lengths: Lengths, steps: int) -> dict[str, Any]:
    """The operations of a training on all the pairs that `lengths` sums, counted (transformer/flops.py)."""
    components = training_flops(forward_flops(config, vocabulary_size, lengths))
    half = training_flops(forward_flops(config, vocabulary_size, lengths, causal_half=True))
    total = sum(components.values())
    return {
        "training_flops": total,
        "training_flops_causal_half": sum(half.values()),
        "per_step": total / steps,
        "components": components,
    }


def flops(counted: Mapping[str, Any], timing: Timing, params: Mapping[str, Any]) -> dict[str, Any]:
    """All that flops.json holds; `counted` is what `analytic` makes."""
    peak = rate(rates(params, "peak_tflops"), timing.hardware, timing.precision) if timing.gpus else None
    at_peak = peak and estimate(timing.seconds, timing.gpus, peak)
    return {
        "paper_estimate": paper_estimate(timing, rates(params, "hardware")),
        "analytic": counted,
        "peak_tflops": peak,
        "mfu": at_peak and counted["training_flops_causal_half"] / at_peak,
        "hfu": at_peak and counted["training_flops"] / at_peak,
        "energy_joules": timing.energy_joules,
    }


def counted_of(path: Path, corpus: Path) -> dict[str, Any]:
    """The count of the training that training.json tells of, with the vocabulary that the corpus' report does."""
    training, where = read_json(path), str(path)
    config = read_saved(ModelConfig, within(training, "settings", "model"), f"{where}: settings.model")
    lengths = Lengths(**{key: count(training, key, where) for key in keys(Lengths)})
    vocabulary_size = count(read_json(corpus), "vocabulary_size", str(corpus))
    return analytic(config, vocabulary_size, lengths, count(training, "steps", where))


def timing_of(path: Path) -> Timing:
    timing = read_json(path)
    return read(Timing, {key: within(timing, key) for key in keys(Timing)}, str(path))


def main(arguments: argparse.Namespace) -> None:
    counted = counted_of(arguments.training, arguments.corpus)
    result = flops(counted, timing_of(arguments.timing), load())
    write_json(arguments.out, result)
    tracking.mirror_scores(arguments.run, arguments.out.parent)
    made = result["paper_estimate"]
    made = made["reason"] if made["flops"] is None else f"{made['flops']:.1e} by the paper's estimate"
    print(f"{arguments.run}: {result['analytic']['training_flops']:.2e} operations counted; {made}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="flops", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--training", type=Path, required=True)
    parser.add_argument("--timing", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="what binarise reported of the run's corpus")
    parser.add_argument("--out", type=Path, required=True)
    stage.run(main, parser)
