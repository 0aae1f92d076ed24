"""Print the trainings and searches that would run, and their estimated cost here and on the paper's GPUs.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of studies.yaml

A training is taken to be as fast, in operations per second, as the last one on this machine. If there was none, a product
of matrices is timed for less than a second. The other stages are counted, and take minutes. Changes no file of git.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.commands.status import states
from pipeline.costs.expected import Training, corpus
from pipeline.settings.check import check_study
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.score_files import content, within
from pipeline.settings.searches import search, trial_settings
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import study, with_studies
from pipeline.workflow import stage
from pipeline.workflow.devices import definitions
from pipeline.workflow.results import in_columns
from pipeline.workflow.times import duration, training_times

# (operations of a training) / (operations of a product in the same time): 0.63 to 0.77 and 0.29 to 0.48 on one core of an
# AMD EPYC with AMX, for the models `tiny`, `small` and `base`
OF_PRODUCT = {"float32": 0.6, "bfloat16": 0.3}
# From the seconds of a step of 25,000 tokens of base and big on 8 P100 (5.2), 0.4 and 1.0: the logarithms of the operations
# of a token, and the operations per second
PAPER = (19.077778, 20.292603), (2.258477e13, 3.044159e13)


def power(number: float) -> str:
    return f"{number:.1e}".replace("e+0", "e").replace("e+", "e")


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


# How the columns of the plan are shown. A job is a mapping from columns to values in seconds and bytes.
SHOWN: dict[str, Callable[[float], str]] = {"tokens": power, "operations": power, "time here": duration}
SHOWN |= {"on 8 P100": duration, "memory": gigabytes, "disk": gigabytes}
Job = dict[str, float]


def last_rate() -> tuple[float, str] | None:
    """The operations per second of the last training on this machine, and its run."""
    for path in sorted(Path("work/times").glob("*/training.json"), key=lambda path: -path.stat().st_mtime):
        run = path.parent.name
        seconds = training_times(run).get("seconds")
        counted = within(content(Path("scores", run, "flops.json")), "analytic", "training_flops")
        if seconds and counted:
            return counted / seconds, f"the last training here ({run})"
    return None


def rate_of_product(params: Mapping[str, Any]) -> tuple[float, str]:
    """The operations per second of a training that follow from a product of two matrices."""
    import torch

    from pipeline.workflow.hardware import torch_device
    from transformer.device import precision_of

    device = torch_device(machine(params), threads=params["base"]["training"]["threads"])
    precision, size = precision_of("auto", device), 4096 if device.type == "cuda" else 1024
    matrix, best = torch.ones(size, size, dtype=getattr(torch, precision), device=device), 0.0
    for _ in range(10):
        started = time.perf_counter()
        (matrix @ matrix)[0, 0].item()  # waits for a GPU
        best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return best * OF_PRODUCT[precision], f"a product of matrices in {precision}"


def jobs(params: Mapping[str, Any], stages: Iterable[str], rate: float) -> dict[str, Job]:
    """The costs of the trainings and searches among the stages. `rate` is the operations per second of a training here."""
    found: dict[str, Job] = {}
    for name in stages:
        kind, _, key = name.partition("@")
        if kind == "train":
            data, model, config = run_settings(params, key)
            one = Training(model, config, corpus(params, data))
            on_paper = one.flops / float(np.interp(math.log(one.flops / one.tokens), *PAPER))
            found[name] = {"tokens": one.tokens, "operations": one.flops, "time here": seconds(one, rate)}
            found[name] |= {"on 8 P100": on_paper, "memory": one.memory, "disk": one.disk}
        elif kind == "tune":
            chosen = search(params, key)
            trial = Training(*trial_settings(params, key, chosen, {}), corpus(params, chosen.corpus))
            found[name] = {"time here": chosen.trials * seconds(trial, rate)}
    return found


def seconds(one: Training, rate: float) -> float:
    """The time of a training with its evaluations on dev, which are forward passes only."""
    evaluated = one.config.steps / one.config.evaluate_every * one.corpus.dev * (one.corpus.source + one.corpus.target)
    return one.flops / one.tokens * (one.tokens + evaluated / 3) / rate


def selected(params: Mapping[str, Any]) -> list[str]:
    """The names of all stages of a selection, as in dvc.yaml, without `code`, with which the commands compare."""
    found = []
    for kind, of in definitions().items():
        names = params[of["foreach"].strip("${}")] if "foreach" in of else [None]
        found += [kind if name is None else f"{kind}@{name}" for name in names if kind != "code"]
    return found


def table(jobs: Mapping[str, Job]) -> list[str]:
    """The jobs and the sum of each column; of the memory, the largest value."""
    known = {key: [job[key] for job in jobs.values() if key in job] for key in SHOWN}
    whole = {key: (max if key == "memory" else sum)(values) for key, values in known.items() if values}
    rows = [["job", *SHOWN]]
    for name, job in {**jobs, "all": whole}.items():
        rows.append([name, *(show(job[key]) if key in job else "-" for key, show in SHOWN.items())])
    return in_columns(rows, numbers=True)


def main(arguments: argparse.Namespace) -> None:
    params = load()
    if arguments.study:
        settings = with_studies(params)
        check_study(settings, arguments.study)
        params = {**params, **study(settings, arguments.study)}
    stages = selected(params)
    known = [] if arguments.study else states()
    done = {state.stage for state in known if state.kind == "done"}
    todo = [name for name in stages if name not in done]
    if not todo:
        return print(f"Nothing to do: all {len(stages)} stages are up to date.")
    rate, origin = last_rate() or rate_of_product(params)
    if found := jobs(params, todo, rate):
        print("\n".join(table(found)))
        print(f"Times here: at {rate / 1e9:,.0f} GFLOP/s, estimated from {origin}.")
    if arguments.study:
        return print(f"All {len(stages)} stages of the study are counted, whether or not DVC has their results.")
    perhaps = len([state for state in known if state.kind == "waiting" and state.made])
    where = f", {perhaps} of them only if earlier stages change their outputs" if perhaps else ""
    print(f"{len(todo)} of {len(stages)} stages would run{where}; {len(stages) - len(todo)} are up to date.")


if __name__ == "__main__":
    parser = stage.parser("plan", __doc__)
    parser.add_argument("study", nargs="?", help="a study of studies.yaml instead of what params.yaml selects")
    stage.run(main, parser)
