"""Measure the time and memory of the four layers of Table 1 on this machine (section 4).

    python -m pipeline.layer_costs --out scores/layer-costs.json --times work/times/layer-costs.json

The stage needs no data and no other stage. Reads params.yaml (layer_costs, machine.device). Writes {"settings",
"layers"} without times to --out, where a layer's entry is a LayerCost of pipeline/costs/growth.py. Writes the same with
times to --times, and adds "machine": the hardware and the commit.

The stage `report` shows this machine's costs and the times files in results/layer-costs/, for example a copy of the
times file of a machine with a GPU.
"""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import torch

from pipeline.costs.growth import Growth, LayerCost, Point, upper
from pipeline.costs.measuring import kept_bytes, power_law, seconds
from pipeline.costs.table1_layers import COUNTS, layer, path_length, sequential_operations
from pipeline.settings import layer_costs as settings
from pipeline.settings.layer_costs import LayerCostsConfig
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.workflow import stage
from pipeline.workflow.hardware import commit, hardware, torch_device
from pipeline.workflow.times import write_times
from transformer.files import write_json


def measure(config: LayerCostsConfig, device: torch.device) -> dict[str, list[Point]]:
    """The time and the memory of every layer at every n and d.

    Each of the `repeats` rounds measures the time of every layer at every n and d once. The shortest time is kept. A
    short load on the machine therefore affects only a part of one round. The memory is measured in the first round.
    """
    shortest: dict[tuple[str, int, int], float] = {}
    kept: dict[tuple[str, int, int], int] = {}
    for _ in range(config.repeats):
        for kind, n, d in product(COUNTS, config.lengths, config.widths):
            torch.manual_seed(config.seed)
            made = layer(kind, d, config.kernel, config.neighbourhood).to(device)
            x_BND = torch.randn(config.batch, n, d, device=device, requires_grad=True)
            if (kind, n, d) not in kept:  # this call is also the warm-up
                kept[kind, n, d] = kept_bytes(partial(made, x_BND), made.parameters())
            shortest[kind, n, d] = min(shortest.get((kind, n, d), math.inf), seconds(made, x_BND))
    places = list(product(config.lengths, config.widths))
    return {kind: [Point(n, d, shortest[kind, n, d], kept[kind, n, d]) for n, d in places] for kind in COUNTS}


def layer_cost(kind: str, points: Sequence[Point], config: LayerCostsConfig) -> LayerCost:
    """The measurements of a layer, their growth with n and d, its sequential operations and its path length."""
    lengths, widths, k, r = upper(config.lengths), upper(config.widths), config.kernel, config.neighbourhood
    large = [point for point in points if point.n in lengths and point.d in widths]
    places = [(point.n, point.d) for point in large]

    def growth(expected: Iterable[float], measured: Iterable[float]) -> Growth:
        return Growth(power_law(places, expected), power_law(places, measured))

    counts = COUNTS[kind]
    return LayerCost(
        seconds=growth((counts.operations(n, d, k, r) for n, d in places), (point.time for point in large)),
        bytes=growth((counts.kept(n, d, k, r) for n, d in places), (point.bytes for point in large)),
        sequential_operations=sequential_operations(kind, config.lengths[0]),
        path_length=path_length(kind, config.lengths[0], k, r),
        points=tuple(points),
    )


def content(config: LayerCostsConfig, layers: Mapping[str, LayerCost]) -> dict[str, Any]:
    return {"settings": asdict(config), "layers": {kind: asdict(cost) for kind, cost in layers.items()}}


def main(arguments: argparse.Namespace) -> None:
    params = load()
    config = settings.config(params)
    device = torch_device(machine(params), threads=1)
    layers = {kind: layer_cost(kind, points, config) for kind, points in measure(config, device).items()}
    write_json(arguments.out, content(config, {kind: cost.without_times() for kind, cost in layers.items()}))
    made_on = {**hardware(device), "commit": commit()}
    write_times(arguments.times, arguments.out, {"machine": made_on, **content(config, layers)})
    for kind, cost in layers.items():
        law = cost.time_law
        print(f"{kind}: time grows as n^{law.n:.2f} d^{law.d:.2f} (R^2 {law.r_squared:.3f})")


if __name__ == "__main__":
    stage.script(main, "layer_costs", __doc__, "out times")
