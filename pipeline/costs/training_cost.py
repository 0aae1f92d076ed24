"""The cost of a training: its operations by the paper's estimate (6.1), and the utilisation of the GPUs.

A key of `hardware` and `peak_tflops` in params.yaml begins with a part of the GPU's name in torch: `P100` matches `Tesla
P100-SXM2-16GB`. A precision other than float32 follows: `H200 bfloat16`. The longest matching key counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.score_files import within
from transformer.config.reading import Positive, Whole, hints, read

PRECISIONS = ("float32", "bfloat16")
COSTS = ("sustained TFLOPS", "FLOPs, estimated", "MFU (%)", "HFU (%)")


@dataclass(frozen=True)
class Timing:
    """The entries of a times file from which the cost is computed."""

    seconds: Positive
    gpus: Whole  # 0: a CPU
    hardware: str
    precision: str


def cost(times: Any, where: str, counted: Mapping[str, Any] | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of COSTS. None means that a value is not known. In place of an estimate stands why there is none.

    `times` is the content of a times file, which `where` names, or None. `counted` is the content of flops.json.
    The utilisations are the counted operations divided by the operations at the GPUs' peak rate in the training time. This
    time includes evaluations. The model's utilisation (MFU) excludes the attention scores that the causal mask hides; the
    hardware's (HFU) includes them. Both exclude padding.
    """
    if not times:
        return dict.fromkeys(COSTS)
    timing = read(Timing, {key: within(times, key) for key in hints(Timing)}, where)
    if not timing.gpus:
        reason = f"it ran on a CPU ({timing.hardware}), and the estimate is of GPU time"
        return dict.fromkeys(COSTS) | {"FLOPs, estimated": reason}
    sustained, peak = (rate(params[table], timing.hardware, timing.precision) for table in ("hardware", "peak_tflops"))
    key = timing.hardware if timing.precision == "float32" else f"{timing.hardware} {timing.precision}"
    missing = f"params.yaml: hardware has no rate of {timing.hardware} in {timing.precision}; add the key {key!r}"
    estimated = estimate(timing.seconds, timing.gpus, sustained) if sustained else missing
    at_peak = peak and estimate(timing.seconds, timing.gpus, peak)
    operations = [within(counted, "analytic", f"training_flops{half}") for half in ("_causal_half", "")]
    used = [at_peak and number and 100 * (number / at_peak) for number in operations]
    return dict(zip(COSTS, (sustained, estimated, *used)))


def estimate(seconds: float, gpus: int, tflops: float) -> float:
    """The paper's estimate of a training's operations: time x GPUs x sustained TFLOPS of one GPU (6.1, footnote 5)."""
    return seconds * gpus * tflops * 1e12


def rate(table: Mapping[str, float], hardware: str, precision: str) -> float | None:
    """Return the rate of a GPU in a precision, or None if the table has none. The longest matching key counts."""
    fitting = []
    for key in table:
        name, _, last = key.rpartition(" ")
        name, key_precision = (name, last) if last in PRECISIONS else (key, "float32")
        if key_precision == precision and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", hardware):
            fitting.append(key)
    return table[max(fitting, key=len)] if fitting else None
