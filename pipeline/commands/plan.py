"""Print the trainings and searches that would run, and their estimated cost here and on the paper's GPUs.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of studies.yaml, all of it

A training is taken to be as fast, in operations per second, as the last one on this machine. If there was none, a product
of matrices is timed for less than a second, in the slowest precision of the trainings. The other stages are counted, and
take minutes. Changes no file of git.

The lengths of sentences, in pieces with EOS, come from the report of `binarise`. Until the corpus is built, those of
WMT14 are used.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.commands.status import states
from pipeline.orchestrating.results import in_columns
from pipeline.running import stage
from pipeline.running.times import duration, training_times
from pipeline.scoring.costs import Lengths, forward_flops, training_flops
from pipeline.settings.blocks import STUDY, study, with_studies
from pipeline.settings.check import check_study
from pipeline.settings.machine import machine
from pipeline.settings.params import load, text_corpus
from pipeline.settings.score_files import content, within
from pipeline.settings.selection import run_settings
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig

# From the seconds of a step of 25,000 tokens of base and big on 8 P100 (5.2), 0.4 and 1.0: the logarithms of the operations
# of a token, and the operations per second
PAPER = (19.077778, 20.292603), (2.258477e13, 3.044159e13)

# (operations of a training) / (operations of a product in the same time): 0.63 to 0.77 and 0.29 to 0.48 on one core of a
# CPU with units for bfloat16, for the models `tiny`, `small` and `base`
OF_PRODUCT = {"float32": 0.6, "bfloat16": 0.3}
TYPICAL = (27.0, 29.0)  # pieces of the source and the target of a WMT14 pair (benchmarks/workload.py)
DEV = 3000  # pairs of the dev set, as in newstest2013
FULL = 0.97  # tokens of the longer side of a batch / batch_tokens: 0.96 to 0.985 in results/, 0.94 with `batching: mixed`
SPREAD = 1.25  # sum of n^2 / (sum of n * mean n): 1.13 in the demonstration, 1.4 for log-normal lengths
COPIES = 2  # DVC's cache holds a second copy of the outputs if the file system cannot share blocks
PROCESS = 330e6  # memory in bytes of a training of a small model, on a CPU
TRAINED_WEIGHT = 16  # bytes of a weight, its gradient and Adam's two moments
# Bytes kept for the backward pass / (tokens x N (8 d_model + 2 d_ff)), in float32: 4.7 to 5.1 with the widths of `base`
KEPT = 4.9


class Sizes(NamedTuple):
    """The sizes of a corpus: the mean numbers of pieces of a sentence, the vocabulary, and the pairs of its dev set."""

    source: float
    target: float
    vocabulary: int
    dev: int


def sizes(params: Mapping[str, Any], corpus: str) -> Sizes:
    vocabulary = params["base"]["vocabulary"] | params["corpora"][text_corpus(params, corpus)]["vocabulary"]
    built = within(content(Path("scores/corpora", corpus, "binarise.json")), "sets")
    if not built:
        return Sizes(*TYPICAL, vocabulary["pieces"], DEV)
    source, target = (built["train"][f"{side}_tokens"] / built["train"]["pairs"] + 1 for side in ("source", "target"))
    return Sizes(source, target, vocabulary["pieces"], built["dev"]["pairs"])


# How the columns of the plan are shown. A job is a mapping from columns to values in seconds and bytes.
SHOWN: dict[str, Callable[[float], str]] = {
    "tokens": "{:.1e}".format,
    "operations": "{:.1e}".format,
    "time here": duration,
    "on 8 P100": duration,
    "memory": lambda size: f"{size / 1e9:,.1f} GB",
    "disk": lambda size: f"{size / 1e9:,.1f} GB",
}
Job = dict[str, float]
Planned = tuple[int, str, ModelConfig, TrainingConfig]  # how many trainings, their data and their settings


def training(model: ModelConfig, config: TrainingConfig, of: Sizes, rate: float) -> Job:
    """The estimated cost of a training, in seconds and bytes. `rate` is the operations per second of a training here."""
    longer = max(of.source, of.target)
    pairs = config.steps * config.batch_tokens * FULL / longer
    n, m = pairs * of.source, pairs * of.target
    sums = Lengths(*map(round, (n, m, n * of.source * SPREAD, m * of.target * SPREAD, m * of.source * SPREAD)))
    passes = 2 if config.r_drop else 1
    flops = sum(training_flops(forward_flops(model, of.vocabulary, sums), passes).values())
    tokens = sums.source_tokens + sums.target_tokens
    evaluated = config.steps / config.evaluate_every * of.dev * (of.source + of.target)  # by forward passes only
    weights = parameters(model, of.vocabulary)
    part = min(config.micro_batch_tokens, config.batch_tokens) * FULL * (of.source + of.target) / longer
    kept = KEPT * model.N * (8 * model.d_model + 2 * model.d_ff)
    # The checkpoints and the average with their copies in DVC's cache, and the folder in work/, which `average` removes
    files = COPIES * (config.keep + 1) + config.keep + 3
    return {
        "tokens": tokens,
        "operations": flops,
        "time here": flops / tokens * (tokens + evaluated / 3) / rate,
        "on 8 P100": flops / float(np.interp(math.log(flops / tokens), *PAPER)),
        "memory": PROCESS + weights * TRAINED_WEIGHT + part * kept,
        "disk": files * weights * 4,
    }


def parameters(model: ModelConfig, vocabulary: int) -> int:
    """The number of weights, counted in a model that takes no memory for them."""
    import torch  # other plans do not need it

    from transformer.model import Transformer

    with torch.device("meta"):
        return sum(weight.numel() for weight in Transformer(model, vocabulary).parameters())


def last_rate() -> tuple[float, str] | None:
    """The operations per second of a process of the last training on this machine, and its run."""
    for path in sorted(Path("work/times").glob("*/training.json"), key=lambda path: -path.stat().st_mtime):
        run = path.parent.name
        times = training_times(run)
        counted = within(content(Path("scores", run, "flops.json")), "analytic", "training_flops")
        if times.get("seconds") and counted:
            return counted / times["seconds"] / times.get("processes", 1), f"the last training here ({run})"
    return None


def rate_of_product(params: Mapping[str, Any], configs: Iterable[TrainingConfig]) -> tuple[float, str]:
    """The operations per second of these trainings that follow from a product of two matrices, in the slowest precision."""
    import torch

    from pipeline.running.hardware import torch_device
    from transformer.decoding import precision_with

    device, measured = torch_device(machine(params), threads=params["base"]["training"]["threads"]), dict[str, float]()
    size = 4096 if device.type == "cuda" else 1024
    for precision in {precision_with(config.arithmetic, config.precision, device) for config in configs}:
        matrix, best = torch.ones(size, size, dtype=getattr(torch, precision), device=device), 0.0
        for _ in range(10):
            started = time.perf_counter()
            (matrix @ matrix)[0, 0].item()  # waits for a GPU
            best = max(best, 2 * size**3 / (time.perf_counter() - started))
        measured[precision] = best * OF_PRODUCT[precision]
    slowest = min(measured, key=lambda precision: measured[precision])
    return measured[slowest], f"a product of matrices in {slowest}"


def planned(params: Mapping[str, Any], stages: Iterable[str]) -> dict[str, Planned]:
    """The stages that train, those of extras among them."""
    found, extras = dict[str, Planned](), {block.trains: block.trainings for block in STUDY.values() if block.trainings}
    for name in stages:
        kind, _, key = name.partition("@")
        if kind == "train":
            found[name] = 1, *run_settings(params, key)
        elif kind in extras:
            found[name] = extras[kind](params, key)
    return found


def jobs(params: Mapping[str, Any], stages: Mapping[str, Planned], rate: float) -> dict[str, Job]:
    """The costs of the stages that train. `rate`: operations per second of a process here."""
    found, processes = dict[str, Job](), machine(params).nodes * machine(params).processes
    for name, (number, data, model, config) in stages.items():
        if name.startswith("train@"):
            found[name] = training(model, config, sizes(params, data), rate * processes)
        else:
            found[name] = {"time here": number * training(model, config, sizes(params, data), rate)["time here"]}
    return found


def table(jobs: Mapping[str, Job]) -> list[str]:
    """The jobs and the sum of each column; of the memory, the largest value."""
    known = {key: [job[key] for job in jobs.values() if key in job] for key in SHOWN}
    whole = {key: (max if key == "memory" else sum)(values) for key, values in known.items() if values}
    rows = [
        [name, *(show(job[key]) if key in job else "-" for key, show in SHOWN.items())]
        for name, job in {**jobs, "all": whole}.items()
    ]
    return in_columns([["job", *SHOWN], *rows], numbers=True)


def main(arguments: argparse.Namespace) -> None:
    params = load()
    if arguments.study:
        settings = with_studies(params)
        check_study(settings, arguments.study)
        params = {**params, **study(settings, arguments.study)}
        kinds = {"train": "runs"} | {block.trains: name for name, block in STUDY.items() if block.trains}
        todo = [f"{kind}@{name}" for kind, block in kinds.items() for name in params[block]]
        last = "All of the study is counted, whether or not DVC has its results."
    else:
        known = [state for state in states() if state.stage != "code"]
        todo = [state.stage for state in known if state.kind != "done"]
        perhaps = sum(state.kind == "waiting" and state.made for state in known)
        where = f", {perhaps} of them only if earlier stages change their outputs" if perhaps else ""
        last = f"{len(todo)} of {len(known)} stages would run{where}; {len(known) - len(todo)} are up to date."
    if found := planned(params, todo):
        rate, origin = last_rate() or rate_of_product(params, [config for *_, config in found.values()])
        print(*table(jobs(params, found, rate)), f"Times here assume {rate / 1e9:,.0f} GFLOP/s, from {origin}.", sep="\n")
    print(last)


if __name__ == "__main__":
    parser = stage.parser("plan", __doc__)
    parser.add_argument("study", nargs="?", help="a study of studies.yaml instead of what params.yaml selects")
    stage.run(main, parser)
