"""The training speed of this machine.

A few models are trained for a few seconds on random pieces. The speed of other models is interpolated.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch

from pipeline.costs.expected import TRAINED_WEIGHT, Training
from pipeline.costs.measuring import kept_bytes
from transformer.binarised import BinarisedSet
from transformer.device import precision_of
from transformer.fused import layout_on
from transformer.gradients import Gradients
from transformer.graphs import Graphs
from transformer.layout import Batch
from transformer.model import Transformer
from transformer.optimisation import adam

MODELS = 3  # the largest number of measured models
SECONDS = 6.0  # of timed steps for all models together; creating the models and warming up takes about as long
LIMIT = 20.0  # seconds for all models; the larger models are left out if they would take longer
# Limits for the first batch: tokens of the longer side, operations. Its time determines the size of the second batch.
FIRST = (256, 4e10)
PAPER_STEPS = {"base": 0.4, "big": 1.0}  # seconds of a step of 25,000 tokens on 8 P100 (5.2)


@dataclass(frozen=True)
class Point:
    """The measurements of one model. `work` is the number of operations per token."""

    work: float
    seconds_per_token: float  # forward and backward pass
    seconds_per_weight: float  # of an update
    bytes_per_token: float  # kept for the backward pass


@dataclass(frozen=True)
class Speed:
    """The measured models of a machine, by rising work.

    For other models, three rates are interpolated: the operations per second, the seconds for the update of a weight,
    and the bytes per token kept for the backward pass divided by the square root of `work`. The square root is about
    proportional to the width of a layer.
    """

    points: Sequence[Point]

    def at(self, training: Training) -> Point:
        """The estimated point of a training's model.

        Its rates are interpolated between two measured models. Outside their range, they are those of the nearest one.
        """
        work = training.flops / training.tokens
        places = np.log([point.work for point in self.points])

        def between(values: list[float]) -> float:
            return float(np.interp(np.log(work), places, values))

        return Point(
            work,
            work / between([point.work / point.seconds_per_token for point in self.points]),
            between([point.seconds_per_weight for point in self.points]),
            between([point.bytes_per_token / point.work**0.5 for point in self.points]) * work**0.5,
        )

    def seconds(self, training: Training) -> float:
        """The time of all steps, without evaluations."""
        point = self.at(training)
        updates = training.config.steps * training.parameters
        return training.tokens * point.seconds_per_token + updates * point.seconds_per_weight


def of_paper(base: Training, big: Training) -> Speed:
    """The speed of the paper's 8 P100, whose steps took PAPER_STEPS seconds for its two models."""
    points = []
    for training, seconds in ((base, PAPER_STEPS["base"]), (big, PAPER_STEPS["big"])):
        whole = training.config.steps * seconds
        points.append(Point(training.flops / training.tokens, whole / training.tokens, 0.0, 0.0))
    return Speed(points)


def measured(trainings: Sequence[Training], device: torch.device) -> Speed | None:
    """The speed, measured with the smallest, the middle and the largest model that fit into half the free main memory.

    None if no model fits. The larger models are left out if they would take longer than LIMIT.
    """
    limit = psutil.virtual_memory().available / 2
    by_work = {one.flops / one.tokens: one for one in trainings if one.parameters * TRAINED_WEIGHT < limit}
    if not by_work:
        return None
    order = sorted(by_work)
    chosen = sorted({order[round(place * (len(order) - 1) / (MODELS - 1))] for place in range(MODELS)})
    points, started = [], time.perf_counter()
    for work in chosen:
        before = time.perf_counter()
        points.append(point(by_work[work], device, SECONDS / len(chosen)))
        took = time.perf_counter() - before
        if time.perf_counter() - started + 2 * took > LIMIT:
            break
    return Speed(points)


def random_pairs(training: Training, target_tokens: int) -> BinarisedSet:
    """Pairs of random pieces. Lengths are within 5% of the corpus's mean, because a batch holds similar sentences."""
    random, corpus, arrays = np.random.default_rng(1), training.corpus, list[Any]()
    number = max(1, round(target_tokens / max(corpus.source, corpus.target)))
    for mean in (corpus.source, corpus.target):
        sizes = np.maximum(1, np.rint(mean * random.uniform(0.95, 1.05, number)).astype(int) - 1)
        arrays += [random.integers(4, corpus.vocabulary, sizes.sum()), np.append(0, np.cumsum(sizes))]
    return BinarisedSet(*arrays)


def point(training: Training, device: torch.device, seconds: float) -> Point:
    """Train for `seconds` seconds and return the measurements.

    The longer side of the batch has `micro_batch_tokens` tokens, or fewer if they would take more than `seconds` / 4.
    """
    model = Transformer(training.model, training.corpus.vocabulary).to(device).train()
    precision = precision_of(training.config.precision, device)
    gradients = Gradients(model, training.config, device, precision, Graphs.on_gpu(model))
    optimiser = adam(model.parameters(), training.config)

    def timed(work, *arguments) -> float:
        started = time.perf_counter()
        work(*arguments)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    def passes(batch: Batch) -> None:
        gradients.add(batch, len(batch.labels_N))

    def batch_of(tokens: int) -> tuple[Batch, int]:
        pairs = random_pairs(training, tokens)
        pieces = len(pairs.source_ids) + len(pairs.target_ids) + 2 * len(pairs)  # with EOS
        # Without `rounded`, whose additional padding depends on the lengths.
        layout = layout_on(device, "float32", model.config)
        return layout(pairs, np.arange(len(pairs))).to(device), pieces

    work = training.flops / training.tokens
    least = round(min(FIRST[0], FIRST[1] / work))
    first, _ = batch_of(least)
    rate = least / min(timed(passes, first) for _ in range(3))  # on a GPU, the second one makes CUDA graphs
    batch, tokens = batch_of(round(min(training.config.micro_batch_tokens, max(least, rate * seconds / 4))))
    plain = Gradients(model, training.config, device, precision)  # a CUDA graph would hide the tensors that are kept
    kept = kept_bytes(lambda: plain.loss(batch), model.parameters())
    plain.close()
    times: list[float] = []
    updates, started = [timed(optimiser.step)], time.perf_counter()
    while time.perf_counter() - started < seconds or len(times) < 2:
        times.append(timed(passes, batch))
        updates.append(timed(optimiser.step))
    gradients.close()
    return Point(work, float(np.median(times)) / tokens, float(np.median(updates)) / training.parameters, kept / tokens)
