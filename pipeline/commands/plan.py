"""Print the stages that would run, and their estimated cost here and on the paper's GPUs. Runs no stage.

    python -m pipeline.commands.plan            what params.yaml selects
    python -m pipeline.commands.plan STUDY      a study of studies.yaml

Measures for at most half a minute how fast this machine trains models of these sizes, and writes the result to
work/speed.json. If this file already has the result, nothing is measured. No other file is changed. A dash stands for an
unknown value, such as the time of a download or the energy of a CPU.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.commands.status import states
from pipeline.costs import expected
from pipeline.costs.expected import Training
from pipeline.costs.speed import Point, Speed, measured, of_paper
from pipeline.settings.back_translations import back_translation, decoder
from pipeline.settings.check import check_study
from pipeline.settings.machine import machine
from pipeline.settings.params import load, section
from pipeline.settings.score_files import within
from pipeline.settings.searches import search, trial_settings
from pipeline.settings.selection import run_settings
from pipeline.settings.studies import STUDY, study, with_studies
from pipeline.workflow import hardware, stage
from pipeline.workflow.devices import definitions
from pipeline.workflow.text import content, in_columns
from pipeline.workflow.times import DURATIONS, duration
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.device import precision_of
from transformer.files import digest, write_json

KEPT = Path("work/speed.json")
DATA, SCORES = ("download", "normalise", "learn_bpe", "binarise"), ("average", "decode", "score", "flops")
AUGMENTATION = ("fetch_monolingual", "back_translate", "augment")
GROUPED = (*DATA, *AUGMENTATION, "train", *SCORES)  # every other stage has a row of its own
START = 3.0  # seconds that a stage takes to start: DVC and imports
# Seconds that a stage takes in addition to START, whatever the size of the corpus, measured on two cores. For large
# checkpoints, `average` takes longer, but still little compared with the training.
OWN = {"average": 3.0, "flops": 4.0, "score": 6.0, "report": 8.0, "learn_bpe": 3.0}
# Seconds per pair. docs/benchmarks.md has the sum for normalise, binarise and the sampling in learn_bpe.
PER_PAIR = {"normalise": 15e-6, "binarise": 15e-6, "learn_bpe": 25e-6}
# (time to decode a piece of one hypothesis) / (time to train a token), from benchmarks.decoding
DECODED_PER_TRAINED = 0.7
Estimate = Callable[[str], float | None]  # the seconds of a stage
HEAD = ("job", "tokens", "operations", "time here", "on 8 P100", "memory", "disk", "energy")


@dataclass(frozen=True)
class Job:
    """A row of the plan. Times are in seconds, memory and disk in bytes. An unknown value is None."""

    name: str
    tokens: float | None = None
    flops: float | None = None
    here: float | None = None
    paper: float | None = None
    memory: float | None = None
    disk: float | None = None
    joules: float | None = None
    at_least: bool = False  # `here` leaves out stages whose time is not known

    def cells(self) -> list[str]:
        shown = [self.name, power(self.tokens), power(self.flops)]
        times = ["-" if value is None else duration(value) for value in (self.here, self.paper)]
        shown += [f"> {times[0]}" if self.at_least and self.here is not None else times[0], times[1]]
        shown += ["-" if value is None else f"{value / 1e9:,.1f} GB" for value in (self.memory, self.disk)]
        return [*shown, "-" if self.joules is None else f"{self.joules / 3.6e6:,.2f} kWh"]


def power(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def training(params: Mapping[str, Any], run: str) -> Training:
    name, model, config = run_settings(params, run)
    return Training(model, config, expected.corpus(params, name))


def trial_of(params: Mapping[str, Any], name: str) -> Training:
    """A trial of a search, with the settings of its model."""
    found = search(params, name)
    return Training(*trial_settings(params, name, found, {}), expected.corpus(params, found.config.corpus))


def models_of_paper(params: Mapping[str, Any]) -> Speed:
    size = expected.Corpus(None, *expected.TYPICAL, params["base"]["vocabulary"]["pieces"], 0, 0, False)

    def of(name: str) -> Training:
        model = section(params, "models", name, "model", ModelConfig)
        return Training(model, section(params, "models", name, "training", TrainingConfig), size)

    return of_paper(of("base"), of("big"))


def speed(params: Mapping[str, Any], trainings: list[Training]) -> Speed | None:
    """Return the speed of this machine for these models: an earlier measurement, or a new one."""
    device = hardware.torch_device(machine(params), threads=max(one.config.threads for one in trainings))
    made_on = hardware.hardware(device)
    key = digest([made_on, sorted(f"{one} in {precision_of(one.config.precision, device)}" for one in trainings)])
    kept = content(KEPT) or {}
    if key not in kept:
        print(f"Measuring how fast this machine ({made_on['hardware']}) trains, at most half a minute.", flush=True)
        if not (found := measured(trainings, device)):
            return None  # not kept, because the free memory may be larger the next time
        kept[key] = [asdict(point) for point in found.points]
        write_json(KEPT, kept)
    return Speed([Point(**point) for point in kept[key]])


@dataclass(frozen=True)
class Planner:
    """`todo` holds the stages that would run. `known` holds the seconds that stages took here the last time."""

    params: Mapping[str, Any]
    todo: set[str]
    known: Mapping[str, float]
    speed: Speed | None
    paper: Speed

    def jobs(self) -> Iterator[Job]:
        for name in self.params["corpora_in_use"]:
            corpus = expected.corpus(self.params, name)
            yield from self.job("data of", DATA, name, partial(self.data_seconds, corpus), corpus.disk)
        for name in self.params["back_translations"]:
            yield from self.job("data of", AUGMENTATION, name, partial(self.augmentation_seconds, name))
        for run in self.params["runs"]:
            one = training(self.params, run)
            if f"train@{run}" in self.todo:
                yield self.training_job(run, one)
            yield from self.job("scores of", SCORES, run, partial(self.scoring_seconds, run, one))
        for other in sorted(name for name in self.todo if name.partition("@")[0] not in GROUPED):
            if other.startswith("search@"):  # an earlier search may have had another budget
                yield Job(other, here=self.search_seconds(other))
            else:
                yield Job(other, here=self.seconds(other, self.independent_of_corpus))

    def job(self, what: str, kinds: Iterable[str], name: str, of: Estimate, disk: float | None = None) -> Iterator[Job]:
        """Yield one job for the stages of these kinds that would run. Yields nothing if there are none."""
        stages = [stage for kind in kinds if (stage := f"{kind}@{name}") in self.todo]
        if found := [self.seconds(stage, of) for stage in stages]:
            yield Job(f"{what} {name}", here=total(found), disk=disk, at_least=None in found)

    def seconds(self, stage: str, of: Estimate) -> float | None:
        """Return the recorded time of a stage here, otherwise its estimate."""
        return self.known[stage] if stage in self.known else of(stage)

    def independent_of_corpus(self, name: str) -> float | None:
        """Return the time of a stage if it does not depend on the size of a corpus. None if the time is not known."""
        kind = name.partition("@")[0]
        return START + OWN[kind] if kind in OWN else None

    def search_seconds(self, name: str) -> float | None:
        """Return the time of a search in which no trial is pruned. Steps are those of a trial with the model's settings."""
        key = name.partition("@")[2]
        config = search(self.params, key).config
        trial = 60 * config.minutes if config.minutes else self.training_seconds(trial_of(self.params, key))
        return trial and START + config.trials * trial

    def data_seconds(self, corpus: expected.Corpus, name: str) -> float | None:
        kind = name.partition("@")[0]
        if corpus.pairs is None or (kind == "download" and not corpus.here):
            return None
        sizes = {"learn_bpe": min(corpus.pairs, corpus.sampled), "binarise": corpus.pairs * corpus.segmentations}
        pairs = sizes.get(kind, corpus.pairs)
        return START + OWN.get(kind, 0.0) + pairs * PER_PAIR.get(kind, 0.0)

    def training_job(self, run: str, one: Training) -> Job:
        seconds = self.training_seconds(one)
        here = seconds and START + seconds
        memory = one.memory(self.speed.at(one).bytes_per_token) if self.speed else None
        joules = within(content(Path("work/times", run, "training.json")), "energy_joules")
        return Job(f"train@{run}", one.tokens, one.flops, here, self.paper.seconds(one), memory, one.disk, joules)

    def training_seconds(self, one: Training) -> float | None:
        if self.speed is None:
            return None
        evaluations = one.config.steps / one.config.evaluate_every
        # `evaluated` counts dev twice and test once, so a third of it is about the size of dev
        tokens = evaluations * one.corpus.evaluated / 3 * (one.corpus.source + one.corpus.target)
        return self.speed.seconds(one) + tokens * self.speed.at(one).seconds_per_token / 3  # forward only

    def scoring_seconds(self, run: str, one: Training, name: str) -> float | None:
        if not name.startswith("decode@"):
            return self.independent_of_corpus(name)
        config = section(self.params, "models", self.params["runs"][run]["model"], "decoding", DecodingConfig)
        return self.decoding_seconds(one, one.corpus.evaluated, config.beam)

    def augmentation_seconds(self, back: str, name: str) -> float | None:
        if not name.startswith("back_translate@"):
            return self.independent_of_corpus(name)
        settings, decoding = back_translation(self.params, back), decoder(self.params, back)
        beam = decoding.config.beam if "beam" in decoding.own.USES else 1
        return self.decoding_seconds(training(self.params, settings.run), settings.monolingual.first, beam)

    def decoding_seconds(self, one: Training, sentences: int | None, beam: int) -> float | None:
        if self.speed is None or sentences is None:
            return None
        return START + sentences * one.corpus.target * beam * DECODED_PER_TRAINED * self.speed.at(one).seconds_per_token


def total(values: list[float | None]) -> float | None:
    """The sum of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def selected(params: Mapping[str, Any]) -> set[str]:
    """The names of all stages of a selection, as in dvc.yaml."""
    stages = definitions()
    blocks = {kind: stage["foreach"].strip("${}") for kind, stage in stages.items() if "foreach" in stage}
    return {f"{kind}@{name}" for kind, block in blocks.items() for name in params[block]} | (stages.keys() - blocks.keys())


def same_stage(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two selections define a stage alike. Code, and blocks that no study selects, are not compared."""
    kind, _, key = name.partition("@")
    if kind in DATA:
        return True
    whole = {"report": STUDY, "reverse_score": ["decodings"]}.get(kind, [])  # blocks that the stage reads as a whole
    names = [key, *now["decodings"]] if kind == "reverse_score" else [key]
    return all(before[block] == now[block] for block in whole) and all(
        definition(before, name) == definition(now, name) for name in names
    )


def definition(params: Mapping[str, Any], name: str) -> dict[tuple[str, str], Any]:
    """The entries called `name`, and the entries that these name, such as the model of a decoding."""
    found: dict[tuple[str, str], Any] = {}
    names = [name]
    while names:
        one = names.pop()
        for block in STUDY:
            if one in params[block] and (block, one) not in found:
                found[block, one] = params[block][one]
                names += re.findall(r"[\w.-]+", json.dumps(found[block, one]))
    return found


def table(jobs: list[Job]) -> list[str]:
    columns = [field.name for field in fields(Job)[1:] if field.name != "at_least"]
    whole = {key: total([getattr(job, key) for job in jobs]) for key in columns}
    whole["memory"] = max((job.memory for job in jobs if job.memory is not None), default=None)
    partly = any(job.at_least or job.here is None for job in jobs)
    rows = [list(HEAD), *(job.cells() for job in [*jobs, Job("all", **whole, at_least=partly)])]
    return in_columns(rows, numbers=True)


def main(arguments: argparse.Namespace) -> None:
    selection = params = load()
    if arguments.study:
        settings = with_studies(params)
        check_study(settings, arguments.study)
        params = {**params, **study(settings, arguments.study)}
    same = [state for state in states() if same_stage(state.stage, selection, params)]
    stages = selected(params)
    todo = stages - {state.stage for state in same if state.kind == "done"}
    if not todo:
        return print(f"Nothing to do: all {len(stages)} stages are up to date.")
    trainings = [training(params, run) for run in params["runs"]]
    searches = [name for name in params["searches"] if f"search@{name}" in todo and search(params, name).config.steps]
    trainings += [trial_of(params, name) for name in searches]
    timed = ("train", "decode", "back_translate")
    found = speed(params, trainings) if searches or any(name.partition("@")[0] in timed for name in todo) else None
    known = content(DURATIONS) or {}
    print("\n".join(table(list(Planner(params, todo, known, found, models_of_paper(params)).jobs()))))
    if arguments.study:
        print("Stages that params.yaml does not select now are counted as not yet run, even if DVC has their results.")
    perhaps = len([state for state in same if state.kind == "waiting" and state.made and state.stage in todo])
    where = f", {perhaps} of them only if earlier stages change their outputs" if perhaps else ""
    print(f"{len(todo)} of {len(stages)} stages would run{where}; {len(stages) - len(todo)} are up to date.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="plan", description=__doc__.split("\n\n")[0])
    parser.add_argument("study", nargs="?", help="a study of studies.yaml instead of what params.yaml selects")
    stage.run(main, parser)
