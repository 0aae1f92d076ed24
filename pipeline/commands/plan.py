"""Say what would run and what it would take here and on the paper's GPUs, before anything runs.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of params.yaml's catalogue instead

Measures for at most half a minute how fast this machine trains models of these sizes, and keeps that in work/speed.json.
Changes nothing else. A dash is what is not known, such as the time of a download or the energy of a CPU.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pipeline.commands.status import states
from pipeline.costs import expected
from pipeline.costs.expected import Training
from pipeline.costs.speed import Point, Speed, measured, of_paper
from pipeline.settings.check import check
from pipeline.settings.digest import digest
from pipeline.settings.machine import machine
from pipeline.settings.params import load, section
from pipeline.settings.score_files import within
from pipeline.settings.selection import run_settings, study
from pipeline.workflow import hardware, stage
from pipeline.workflow.times import DURATIONS, duration
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.files import read_json, write_json

KEPT = Path("work/speed.json")
DATA, SCORES = ("download", "normalise", "learn_bpe", "binarise"), ("average", "decode", "score", "flops")
START = 3.0  # seconds in which a stage starts: DVC, imports
OWN = {"layer_costs": 40.0, "score": 6.0, "report": 8.0, "learn_bpe": 3.0}  # seconds besides, on two cores
PER_PAIR = {"normalise": 15e-6, "binarise": 15e-6, "learn_bpe": 25e-6}  # seconds; README's line of benchmarks.text
GENERATED = 250e-6  # seconds a pair of the demonstration's grammar
PER_PIECE = 0.7  # a decoded piece and beam takes so many times what a trained token takes (benchmarks.decoding)
HEAD = ("job", "tokens", "operations", "time here", "on 8 P100", "memory", "disk", "energy")


@dataclass(frozen=True)
class Job:
    """A row of the plan. None where a value is not known; times in seconds, memory and disk in bytes."""

    name: str
    tokens: float | None = None
    flops: float | None = None
    here: float | None = None
    paper: float | None = None
    memory: float | None = None
    disk: float | None = None
    joules: float | None = None

    def cells(self) -> list[str]:
        shown = [self.name, power(self.tokens), power(self.flops)]
        shown += ["-" if value is None else duration(value) for value in (self.here, self.paper)]
        shown += ["-" if value is None else f"{value / 1e9:,.1f} GB" for value in (self.memory, self.disk)]
        return [*shown, "-" if self.joules is None else f"{self.joules / 3.6e6:,.2f} kWh"]


def power(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


KINDS = {"model": ModelConfig, "training": TrainingConfig}
OTHERS = ("layer_costs", "fetch_set", "value", "decoding", "report")


def training(params: Mapping[str, Any], run: str) -> Training:
    name, model, config = run_settings(params, run)
    return Training(model, config, expected.corpus(params, name))


def models_of_paper(params: Mapping[str, Any]) -> Speed:
    size = expected.Corpus(None, *expected.TYPICAL, params["base"]["vocabulary"]["pieces"], 0, False)
    both = [
        Training(*(section(params, "models", name, key, kind) for key, kind in KINDS.items()), size)
        for name in ("base", "big")
    ]
    return of_paper(*both)


def speed(params: Mapping[str, Any], trainings: list[Training]) -> Speed | None:
    """As measured before on this machine for these models, or measured now."""
    device = hardware.torch_device(machine(params), threads=max(one.config.threads for one in trainings))
    made_on = hardware.hardware(device)
    key = digest([made_on, sorted(str(one) for one in trainings)])
    kept = read_json(KEPT) if KEPT.is_file() else {}
    if key not in kept:
        print(f"Measuring how fast this machine ({made_on['hardware']}) trains, about half a minute.", flush=True)
        found = measured(trainings, device)
        kept[key] = found and [asdict(point) for point in found.points]
        write_json(KEPT, kept)
    return kept[key] and Speed([Point(**point) for point in kept[key]])


@dataclass(frozen=True)
class Planner:
    """`todo` are the stages that would run; `known` the seconds that stages took here the last time."""

    params: Mapping[str, Any]
    todo: set[str]
    known: Mapping[str, float]
    speed: Speed | None
    paper: Speed

    def jobs(self) -> Iterator[Job]:
        for corpus_name in self.params["corpora_in_use"]:
            if stages := self.wanted(DATA, corpus_name):
                corpus = expected.corpus(self.params, corpus_name)
                here = total([self.of_data(name, corpus) for name in stages])
                yield Job(f"data of {corpus_name}", here=here, disk=corpus.disk)
        for run in self.params["runs"]:
            one = training(self.params, run)
            if self.wanted(("train",), run):
                yield self.of_training(run, one)
            if stages := self.wanted(SCORES, run):
                yield Job(f"scores of {run}", here=total([self.of_scores(name, run, one) for name in stages]))
        for other in sorted(name for name in self.todo if name.partition("@")[0] in OTHERS):
            yield Job(other, here=self.known.get(other, self.least(other)))

    def wanted(self, kinds: tuple[str, ...], name: str) -> list[str]:
        return [f"{kind}@{name}" for kind in kinds if f"{kind}@{name}" in self.todo]

    def least(self, name: str) -> float | None:
        """Of a stage whose time depends on little; None where it depends on a network or a model."""
        kind = name.partition("@")[0]
        return None if kind in ("fetch_set", "ensemble", "value", "decoding") else START + OWN.get(kind, 0.0)

    def of_data(self, name: str, corpus: expected.Corpus) -> float | None:
        if name in self.known:
            return self.known[name]
        kind = name.partition("@")[0]
        if corpus.pairs is None or (kind == "download" and not corpus.generated):
            return None
        return START + OWN.get(kind, 0.0) + corpus.pairs * PER_PAIR.get(kind, GENERATED)

    def of_training(self, run: str, one: Training) -> Job:
        here = memory = None
        if self.speed:
            point = self.speed.at(one)
            evaluations = one.config.steps / one.config.evaluate_every
            tokens = evaluations * one.corpus.evaluated / 3 * (one.corpus.source + one.corpus.target)
            here = START + self.speed.seconds(one) + tokens * point.seconds_per_token / 3  # a forward pass alone
            memory = one.memory(point.bytes_per_token)
        path = Path("work/times", run, "training.json")
        joules = within(read_json(path), "energy_joules") if path.is_file() else None
        return Job(f"train@{run}", one.tokens, one.flops, here, self.paper.seconds(one), memory, one.disk, joules)

    def of_scores(self, name: str, run: str, one: Training) -> float | None:
        if name in self.known:
            return self.known[name]
        if not name.startswith("decode@"):
            return self.least(name)
        config = section(self.params, "models", self.params["runs"][run]["model"], "decoding", DecodingConfig)
        pieces = one.corpus.evaluated * one.corpus.target * config.beam * PER_PIECE
        return START + pieces * self.speed.at(one).seconds_per_token if self.speed else None


def total(values: list[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def selected(params: Mapping[str, Any]) -> set[str]:
    """The names of all stages of a selection, as dvc.yaml makes them."""
    by_corpus = {f"{kind}@{name}" for kind in DATA for name in params["corpora_in_use"]}
    by_run = {f"{kind}@{name}" for kind in ("train", *SCORES) for name in params["runs"]}
    blocks = {"fetch_set": "sets", "ensemble": "ensembles", "value": "values", "decoding": "decodings"}
    more = {f"{kind}@{name}" for kind, block in blocks.items() for name in params[block]}
    return by_corpus | by_run | more | {"layer_costs", "report"}


def table(jobs: list[Job]) -> list[str]:
    columns = [field.name for field in fields(Job)[1:]]
    whole = {key: total([getattr(job, key) for job in jobs]) for key in columns}
    whole["memory"] = max((job.memory for job in jobs if job.memory is not None), default=None)
    rows = [list(HEAD), *(job.cells() for job in [*jobs, Job("all", **whole)])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def main(arguments: argparse.Namespace) -> None:
    from dvc.exceptions import DvcException

    params = load()
    if arguments.study:
        params = {**params, **study(params, arguments.study)}
        check(params)
    try:
        done = {state.stage for state in states() if state.kind == "done"}
    except DvcException as error:
        raise UserError(str(error)) from None
    stages = selected(params)
    todo = stages - done
    if not todo:
        return print(f"Nothing to do: all {len(stages)} stages are up to date.")
    trainings = [training(params, run) for run in params["runs"]]
    found = speed(params, trainings) if any(name.partition("@")[0] in ("train", "decode") for name in todo) else None
    known = read_json(DURATIONS) if DURATIONS.is_file() else {}
    print("\n".join(table(list(Planner(params, todo, known, found, models_of_paper(params)).jobs()))))
    print(f"{len(todo)} of {len(stages)} stages would run; {len(stages) - len(todo)} are up to date, in DVC's cache.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="plan", description=__doc__.split("\n\n")[0])
    parser.add_argument("study", nargs="?", help="a study of params.yaml instead of what it selects")
    stage.run(main, parser)
