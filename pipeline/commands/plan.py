"""Print the stages that would run, and their estimated cost here and on the paper's GPUs. Changes no file of git.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of studies.yaml

A training is taken to be as fast, in operations per second, as the last one on this machine. If there was none, a product
of matrices is timed for less than a second. A dash stands for an unknown value, such as the time of a download or the
energy of a CPU.
"""

import argparse
import functools
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
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

# The stages that share a row of the table
GROUPS = {
    "data of": ("download", "normalise", "learn_bpe", "binarise", "fetch_monolingual", "back_translate", "augment"),
    "scores of": ("average", "decode", "score", "flops", "result"),
}
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


def power(number: float) -> str:
    """For example 2.4e9."""
    return f"{number:.1e}".replace("e+0", "e").replace("e+", "e")


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


def kilowatt_hours(joules: float) -> str:
    return f"{joules / 3.6e6:,.2f} kWh"


# How the columns of the plan are shown. A job is a mapping from columns to values in seconds, bytes and joules.
SHOWN: dict[str, Callable[[float], str]] = {
    "tokens": power,
    "operations": power,
    "time here": duration,
    "on 8 P100": duration,
    "memory": gigabytes,
    "disk": gigabytes,
    "energy": kilowatt_hours,
}
Job = dict[str, float | None]


def last_rate() -> tuple[float, str] | None:
    """The operations per second of the last training on this machine, and its run."""
    for path in sorted(Path("work/times").glob("*/training.json"), key=lambda path: -path.stat().st_mtime):
        run = path.parent.name
        seconds = within(read_times(path, Path("scores", run, "training.json")), "seconds")
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


@dataclass(frozen=True, eq=False)
class Planner:
    """`todo` holds the stages that would run, `known` the seconds that stages took here the last time.

    `rate` is the operations per second of a training on this machine.
    """

    params: Mapping[str, Any]
    todo: Collection[str]
    known: Mapping[str, float]
    rate: float

    @functools.cache  # noqa: B019  # there is one planner
    def training(self, run: str) -> Training:
        name, model, config = run_settings(self.params, run)
        return Training(model, config, expected.corpus(self.params, name))

    def jobs(self) -> dict[str, Job]:
        """The rows of the table: a job for each stage, or for the stages of a group with the same name."""
        found: dict[str, Job] = {}
        for one in self.todo:
            kind, _, name = one.partition("@")
            title = next((f"{title} {name}" for title, kinds in GROUPS.items() if kind in kinds), one)
            job = found.setdefault(title, self.costs(kind, name))
            job["time here"] = total([job.get("time here"), self.seconds(one)])
        return found

    def costs(self, kind: str, name: str) -> Job:
        """The costs of a stage, except its time here."""
        if kind == "train":
            one = self.training(name)
            on_paper = one.flops / float(np.interp(math.log(one.flops / one.tokens), *PAPER))
            energy = within(content(Path("work/times", name, "training.json")), "energy_joules")
            costs: Job = {"tokens": one.tokens, "operations": one.flops, "on 8 P100": on_paper, "energy": energy}
            return costs | {"memory": one.memory, "disk": one.disk}
        pairs = expected.corpus(self.params, name).pairs if kind == "download" else None
        return {"disk": pairs and pairs * expected.BYTES_OF_PAIR * expected.COPIES}

    def seconds(self, name: str) -> float | None:
        """Return the time of a stage: the last one here, otherwise an estimate. None if it is not known.

        A training and a search are always estimated, because earlier ones may have had other settings.
        """
        kind, _, key = name.partition("@")
        if kind == "train":
            return START + self.training_seconds(self.training(key))
        if kind == "tune":
            chosen = search(self.params, key)
            corpus = expected.corpus(self.params, chosen.corpus)
            trial = Training(*trial_settings(self.params, key, chosen, {}), corpus)
            minutes = chosen.minutes
            return START + chosen.trials * (60 * minutes if minutes else self.training_seconds(trial))
        if kind == "decode" and name not in self.known:
            one, model = self.training(key), self.params["runs"][key]["model"]
            pieces = one.corpus.evaluated * one.corpus.target
            pieces *= section(self.params, "models", model, "decoding", DecodingConfig).beam
            return START + pieces * DECODED_PER_TRAINED * one.flops / one.tokens / self.rate
        return self.known.get(name, OTHER if kind in (*GROUPS["scores of"], "report") else None)

    def training_seconds(self, one: Training) -> float:
        evaluations = one.config.steps / one.config.evaluate_every
        # `evaluated` counts dev twice and test once, so a third of it is about the size of dev
        tokens = evaluations * one.corpus.evaluated / 3 * (one.corpus.source + one.corpus.target)
        return one.flops / one.tokens * (one.tokens + tokens / 3) / self.rate  # an evaluation is a forward pass only


def total(values: Iterable[float | None]) -> float | None:
    """The sum of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def selected(params: Mapping[str, Any]) -> list[str]:
    """The names of all stages of a selection, as in dvc.yaml, without `code`, with which the commands compare."""
    found = []
    for kind, of in definitions().items():
        names = params[of["foreach"].strip("${}")] if "foreach" in of else [None]
        found += [kind if name is None else f"{kind}@{name}" for name in names if kind != "code"]
    return found


def table(jobs: Mapping[str, Job]) -> list[str]:
    """The jobs and the sum of each column; of the memory, the largest value. A sum leaves out what is not known."""
    whole = {key: total(job.get(key) for job in jobs.values()) for key in SHOWN}
    whole["memory"] = max((job["memory"] or 0 for job in jobs.values() if "memory" in job), default=None)
    rows = [["job", *SHOWN]]
    for name, job in {**jobs, "all": whole}.items():
        rows.append([name, *("-" if (of := job.get(key)) is None else show(of) for key, show in SHOWN.items())])
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
    print("\n".join(table(Planner(params, todo, content(DURATIONS) or {}, rate).jobs())))
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
