"""Print the stages that would run, and their estimated cost here and on the paper's GPUs. Runs only `code`.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of studies.yaml

A training is taken to be as fast, in operations per second, as the last one on this machine. If there was none, a product
of matrices is timed for less than a second. A dash stands for an unknown value, such as the time of a download or the
energy of a CPU.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.commands.status import states
from pipeline.costs import expected
from pipeline.costs.expected import Training
from pipeline.settings.check import check_study
from pipeline.settings.machine import machine
from pipeline.settings.params import load, section
from pipeline.settings.score_files import content, within
from pipeline.settings.searches import search, trial_settings
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import study, with_studies
from pipeline.workflow import stage
from pipeline.workflow.devices import definitions
from pipeline.workflow.results import in_columns
from pipeline.workflow.times import DURATIONS, duration, read_times
from transformer.config.decoding import DecodingConfig

DATA, SCORES = ("download", "normalise", "learn_bpe", "binarise"), ("average", "decode", "score", "flops", "result")
AUGMENTATION = ("fetch_monolingual", "back_translate", "augment")
START = 3.0  # seconds that a stage takes to start: DVC and imports
OTHER = 10.0  # seconds of a stage whose time hardly depends on the text, such as `score` and `report`, on two cores
# (time to decode a piece of one hypothesis) / (time to train a token), from benchmarks.decoding
DECODED_PER_TRAINED = 0.7
# (operations of a training) / (operations of a product in the same time): 0.63 to 0.77 and 0.29 to 0.48 on one core of an
# AMD EPYC with AMX, for the models `tiny`, `small` and `base`
OF_PRODUCT = {"float32": 0.6, "bfloat16": 0.3}
# From the seconds of a step of 25,000 tokens of base and big on 8 P100 (5.2), 0.4 and 1.0: the logarithms of the operations
# of a token, and the operations per second
PAPER = (19.077778, 20.292603), (2.258477e13, 3.044159e13)


def power(value: float) -> str:
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def gigabytes(value: float) -> str:
    return f"{value / 1e9:,.1f} GB"


# How the columns of the plan are shown. A job is a mapping from columns to values in seconds, bytes and joules.
SHOWN: dict[str, Callable[[float], str]] = {
    "tokens": power,
    "operations": power,
    "time here": duration,
    "on 8 P100": duration,
    "memory": gigabytes,
    "disk": gigabytes,
    "energy": lambda joules: f"{joules / 3.6e6:,.2f} kWh",
}
Job = dict[str, float | None]


def last_rate() -> tuple[float, str] | None:
    """The operations per second of the last training on this machine, and its run."""
    for path in sorted(Path("work/times").glob("*/training.json"), key=lambda path: -path.stat().st_mtime):
        run = path.parent.name
        times = read_times(path, Path("scores", run, "training.json"))
        seconds = within(times, "seconds")
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


def training(params: Mapping[str, Any], run: str) -> Training:
    name, model, config = run_settings(params, run)
    return Training(model, config, expected.corpus(params, name))


@dataclass(frozen=True)
class Planner:
    """`todo` holds the stages that would run, `known` the seconds that stages took here the last time.

    `rate` is the operations per second of a training on this machine.
    """

    params: Mapping[str, Any]
    todo: set[str]
    known: Mapping[str, float]
    rate: float

    def jobs(self) -> Iterator[tuple[str, Job]]:
        left = set(self.todo)
        for name in self.params["corpora_in_use"]:
            yield from self.job(f"data of {name}", DATA, name, left, disk=expected.corpus(self.params, name).disk)
        for name in self.params["back_translations"]:
            yield from self.job(f"data of {name}", AUGMENTATION, name, left)
        for run in self.params["runs"]:
            one = training(self.params, run)
            costs: Job = {"tokens": one.tokens, "operations": one.flops, "memory": one.memory, "disk": one.disk}
            costs["on 8 P100"] = one.flops / float(np.interp(math.log(one.flops / one.tokens), *PAPER))
            costs["energy"] = within(content(Path("work/times", run, "training.json")), "energy_joules")
            yield from self.job(f"train@{run}", ("train",), run, left, **costs)
            yield from self.job(f"scores of {run}", SCORES, run, left)
        yield from ((other, {"time here": self.seconds(other)}) for other in sorted(left))

    def job(
        self, title: str, kinds: Iterable[str], name: str, left: set[str], **costs: float | None
    ) -> Iterator[tuple[str, Job]]:
        """Yield one job for the stages of these kinds in `left`, and remove them from it. Yields nothing for none."""
        chosen = [stage for kind in kinds if (stage := f"{kind}@{name}") in left]
        left -= {*chosen}
        if chosen:
            yield title, {**costs, "time here": total(map(self.seconds, chosen))}

    def seconds(self, name: str) -> float | None:
        """Return the time of a stage: the last one here, otherwise an estimate. None if it is not known.

        A training and a search are always estimated, because earlier ones may have had other settings.
        """
        kind, _, key = name.partition("@")
        if kind == "train":
            return START + self.training_seconds(training(self.params, key))
        if kind == "tune":
            config = search(self.params, key).config
            trial = Training(
                *trial_settings(self.params, key, search(self.params, key), {}), expected.corpus(self.params, config.corpus)
            )
            return START + config.trials * (60 * config.minutes if config.minutes else self.training_seconds(trial))
        if kind == "decode" and name not in self.known:
            model = self.params["runs"][key]["model"]
            one, beam = training(self.params, key), section(self.params, "models", model, "decoding", DecodingConfig).beam
            pieces = one.corpus.evaluated * one.corpus.target * beam
            return START + pieces * DECODED_PER_TRAINED * one.flops / one.tokens / self.rate
        return self.known.get(name, OTHER if kind in (*SCORES, "report") else None)

    def training_seconds(self, one: Training) -> float:
        evaluations = one.config.steps / one.config.evaluate_every
        # `evaluated` counts dev twice and test once, so a third of it is about the size of dev
        tokens = evaluations * one.corpus.evaluated / 3 * (one.corpus.source + one.corpus.target)
        return one.flops / one.tokens * (one.tokens + tokens / 3) / self.rate  # an evaluation is a forward pass only


def total(values: Iterable[float | None]) -> float | None:
    """The sum of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def selected(params: Mapping[str, Any]) -> set[str]:
    """The names of all stages of a selection, as in dvc.yaml, without `code`, which the commands keep up to date."""
    stages = {kind: stage for kind, stage in definitions().items() if kind != "code"}
    blocks = {kind: stage["foreach"].strip("${}") for kind, stage in stages.items() if "foreach" in stage}
    return {f"{kind}@{name}" for kind, block in blocks.items() for name in params[block]} | (stages.keys() - blocks.keys())


def table(jobs: Mapping[str, Job]) -> list[str]:
    """The jobs and the sum of each column; of the memory, the largest value. A sum leaves out what is not known."""
    columns = {key: [job.get(key) for job in jobs.values()] for key in SHOWN}
    whole = {key: total(values) for key, values in columns.items()}
    whole["memory"] = max((value for value in columns["memory"] if value is not None), default=None)
    rows = [["job", *SHOWN]]
    for name, job in {**jobs, "all": whole}.items():
        values = {key: job.get(key) for key in SHOWN}
        rows.append([name, *("-" if value is None else SHOWN[key](value) for key, value in values.items())])
    return in_columns(rows, numbers=True)


def main(arguments: argparse.Namespace) -> None:
    params = load()
    if arguments.study:
        settings = with_studies(params)
        check_study(settings, arguments.study)
        params = {**params, **study(settings, arguments.study)}
    stages = selected(params)
    known = [] if arguments.study else states()
    todo = stages - {state.stage for state in known if state.kind == "done"}
    if not todo:
        return print(f"Nothing to do: all {len(stages)} stages are up to date.")
    rate, origin = last_rate() or rate_of_product(params)
    print("\n".join(table(dict(Planner(params, todo, content(DURATIONS) or {}, rate).jobs()))))
    print(f"Times of trainings and translations: at {rate / 1e9:,.0f} GFLOP/s, estimated from {origin}.")
    if arguments.study:
        return print(f"All {len(stages)} stages of the study are counted, whether or not DVC has their results.")
    perhaps = len([state for state in known if state.kind == "waiting" and state.made])
    where = f", {perhaps} of them only if earlier stages change their outputs" if perhaps else ""
    print(f"{len(todo)} of {len(stages)} stages would run{where}; {len(stages) - len(todo)} are up to date.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="plan", description=__doc__.split("\n\n")[0])
    parser.add_argument("study", nargs="?", help="a study of studies.yaml instead of what params.yaml selects")
    stage.run(main, parser)
