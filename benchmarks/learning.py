"""Learning curves of our trainer and of torch.nn.Transformer: dev loss against time, on the same batches.

    python -m benchmarks.learning DATA [--model base] [--minutes 3] [--every 250] [--out learning.svg]
                                       [--test SOURCE REFERENCE] [--keep FOLDER]

DATA is a folder written by binarise, such as data/CORPUS/binarised. The trainers run one after the other, each to its
first dev loss after --minutes. The time includes compilation, which happens on a GPU only, and excludes the dev losses,
which are computed every --every steps.

Prints the losses and the time that our trainer took to reach the last loss of the other, and draws both curves. --test
translates SOURCE with the last weights of our model and prints BLEU. --keep writes them as a model folder, as
average does but without text.json.
"""

import argparse
import dataclasses
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import torch
from sacrebleu.metrics import BLEU
from torch import nn

from benchmarks.peers import TorchTransformer, compiled_loss, smoothed, torch_loss
from benchmarks.process import Process
from pipeline.corpora.evaluation import read_lines
from pipeline.settings.params import load, section
from pipeline.workflow import stage
from transformer import fast
from transformer.binarised import BinarisedSet, describe, open_binarised
from transformer.checkpoint import WEIGHTS, write_settings, write_tensors
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.data import Batches, Prefetch, in_order
from transformer.device import autocast, precision_of
from transformer.fast.compilation import compiles
from transformer.files import atomic_folder, sha256
from transformer.gradients import seed_of
from transformer.layout import Batch, padded
from transformer.model import Transformer
from transformer.optimisation import adam, learning_rate
from transformer.store import Store
from transformer.training import AHEAD, Trainer, batches_of, new_state
from transformer.translator import Translator
from transformer.vocabulary import Vocabulary

ENDLESS = 10**9  # steps


class Point(NamedTuple):
    seconds: float
    step: int
    loss: float


class Clock:
    """A stopwatch. `stop` returns the seconds so far. After `go_on`, the time since `stop` is not counted."""

    def __init__(self) -> None:
        self.started, self.stopped = time.perf_counter(), 0.0

    def stop(self) -> float:
        self.stopped = time.perf_counter()
        return self.stopped - self.started

    def go_on(self) -> None:
        self.started += time.perf_counter() - self.stopped


class Study(NamedTuple):
    """The settings and the data that both trainers share."""

    model: ModelConfig
    config: TrainingConfig
    train: BinarisedSet
    dev: BinarisedSet
    vocabulary: int
    device: torch.device
    minutes: float

    @property
    def precision(self) -> str:
        return precision_of(self.config.precision, self.device)

    def over(self, seconds: float) -> bool:
        """Whether the training time at the last dev loss exceeds the limit."""
        return seconds > 60 * self.minutes

    def batches(self) -> Batches:
        return batches_of(self.train, self.config, self.train.segmentations)


def ours(study: Study, say: Callable[[Point], None], model: Transformer) -> list[Point]:
    """Train `model` with the trainer of pipeline.train."""
    clock, curve, seconds = Clock(), [], 0.0
    state = new_state(model, study.config, study.device)

    def tick(record: dict | None) -> None:
        nonlocal seconds
        if record and "dev_loss" in record:
            clock.go_on()  # the time since the last `stop` was that of the dev loss
            curve.append(Point(seconds, record["step"], record["dev_loss"]))
            say(curve[-1])
        seconds = clock.stop()  # before a dev loss, the logging of the training loss has already synchronised the device

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), study.config.keep, {})
        parts = (study.batches(), study.dev, study.config, store, study.device, study.precision, math.inf)
        Trainer(state, *parts).run(tick, lambda: bool(curve) and study.over(curve[-1].seconds))
    return curve


def of_peer(study: Study, say: Callable[[Point], None]) -> list[Point]:
    """The curve of the peer, trained in a process of its own."""
    with closing(Process(ours=False)) as process:
        return process.do(peer, study, say)


def peer(study: Study, say: Callable[[Point], None]) -> list[Point]:
    """Train torch.nn.Transformer with the same schedule and the same batches, padded and prefetched."""
    torch.set_num_threads(study.config.threads)
    clock, curve, config, batches = Clock(), [], study.config, study.batches()
    torch.manual_seed(config.seed)
    model = TorchTransformer(study.model, study.vocabulary).to(study.device)
    if compiles(study.device.type):
        model.compile(dynamic=True)
    optimiser = adam(model.parameters(), config)

    def prepare(step: int) -> Batch:
        return padded(study.train, batches.batch(step)).pinned_for(study.device)

    coming = Prefetch(prepare, AHEAD)
    loss_of = partial(torch_loss, smoothed=compiled_loss() if compiles(study.device.type) else smoothed)
    for step in count():
        torch.manual_seed(seed_of(config.seed, step, 0))
        batch = coming(step).to(study.device)
        with autocast(study.device, study.precision):
            loss = loss_of(model, batch, config.label_smoothing)
        (loss / len(batch.labels_N)).backward()
        optimiser.param_groups[0]["lr"] = learning_rate(step + 1, study.model.d_model, config)
        optimiser.step()
        optimiser.zero_grad()
        if (step + 1) % config.evaluate_every == 0:
            loss.item()  # synchronises the device
            seconds = clock.stop()
            curve.append(Point(seconds, step + 1, dev_loss(model, study)))
            say(curve[-1])
            clock.go_on()
            if study.over(seconds):
                break
    coming.close()
    return curve


def dev_loss(model: nn.Module, study: Study) -> float:
    total = tokens = 0.0
    model.eval()
    with torch.no_grad():
        for numbers in in_order(study.dev, study.config.micro_batch_tokens):
            batch = padded(study.dev, numbers).to(study.device)
            total += torch_loss(model, batch, 0.0).item()
            tokens += len(batch.labels_N)
    model.train()
    return total / tokens


def bleu(model: Transformer, vocabulary: Path, decoding: DecodingConfig, texts: list[Path]) -> str:
    """Translate `texts[0]` and score it against `texts[1]`. Returns one line: sacreBLEU's score and its signature."""
    metric, (source, reference) = BLEU(), map(read_lines, texts)
    decoder = Translator(model.eval(), Vocabulary(vocabulary), decoding, {})
    hypotheses = decoder.text(decoder.translate(source, texts[0].name))
    return f"{metric.corpus_score(hypotheses, [reference]).score:.2f} sacreBLEU on {texts[1]}, {metric.get_signature()}"


def keep(model: Transformer, vocabulary: Path, folder: Path) -> None:
    with atomic_folder(folder) as place:
        write_tensors(place / WEIGHTS, model.state_dict(), {})
        write_settings(place, model.config, len(model.embedding), sha256(vocabulary))
        shutil.copyfile(vocabulary, place / "vocabulary.model")


def print_row(name: str, point: Point) -> None:
    print(f"| {name} | {point.seconds:.1f} | {point.step} | {point.loss:.3f} |", flush=True)


def draw(curves: dict[str, list[Point]], title: str, path: Path) -> None:
    from pipeline.reporting.plots import axes

    figure, plot = axes(6, 4)
    for name, curve in curves.items():
        plot.plot([point.seconds / 60 for point in curve], [point.loss for point in curve], marker=".", label=name)
    plot.set(title=title, xlabel="minutes of training", ylabel="dev loss per piece (nats)")
    plot.legend()
    figure.savefig(path)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.learning", description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="base")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--out", type=Path, default=Path("learning.svg"))
    parser.add_argument("--test", type=Path, nargs=2, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    return parser


def main(arguments: argparse.Namespace) -> None:
    params, every = load(), arguments.every
    config = section(params, "models", arguments.model, "training", TrainingConfig)
    config = dataclasses.replace(config, steps=ENDLESS, checkpoint_every=ENDLESS, log_every=every, evaluate_every=every)
    torch.set_num_threads(config.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, vocabulary = section(params, "models", arguments.model, "model", ModelConfig), describe(arguments.data)
    train, dev = (open_binarised(arguments.data, name, verify=False) for name in ("train", "dev"))
    study = Study(model, config, train, dev, vocabulary["vocabulary_size"], device, arguments.minutes)
    torch.manual_seed(config.seed)
    curves, own_model = dict[str, list[Point]](), Transformer(model, study.vocabulary, fast.layers(device))
    print("| trainer | seconds | step | dev loss |\n|---|---:|---:|---:|")
    trainers: dict[str, Callable[[Study, Callable[[Point], None]], list[Point]]]
    trainers = {"ours": partial(ours, model=own_model), "torch.nn.Transformer": of_peer}
    for name, learn in trainers.items():
        curves[name] = learn(study, partial(print_row, name))
    own, others = curves.values()
    if own and others:
        reached = next((point.seconds for point in own if point.loss <= others[-1].loss), None)
        said = f"Ours reached it after {reached:.0f} s." if reached else "Ours did not reach it."
        print(f"\nThe peer's last loss is {others[-1].loss:.3f}, after {others[-1].seconds:.0f} s. {said}")
        draw(curves, f"{arguments.model}, {arguments.data}", arguments.out)
    pieces = arguments.data.parent / "vocabulary.model"
    if arguments.keep:
        keep(own_model, pieces, arguments.keep)
    if arguments.test:
        decoding = section(params, "models", arguments.model, "decoding", DecodingConfig)
        print(bleu(own_model, pieces, decoding, arguments.test))


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
