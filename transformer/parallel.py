"""Data parallel training: workers take a part of every batch each, and add up their gradients.

Each worker divides its loss by the target tokens of the whole batch, so gradients are added and never averaged. What
the host has to know (flags, losses at records) goes by a group of its own between processors: no step waits for a GPU.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer.config.reading import UserError

Item = TypeVar("Item")

BUCKET = 25 * 2**20  # bytes of gradients that travel together


class WorkerLost(ConnectionError):
    """Another worker is gone; what started them knows which and why."""


@contextmanager
def connected() -> Iterator[None]:
    """Around what talks to the other workers: torch has no error of its own for one that is gone."""
    try:
        yield
    except RuntimeError as error:
        raise WorkerLost("another worker is gone") from error


class Alone:
    """One process, which has nobody to share a training with: what `Workers` does, and nothing to do for it."""

    rank, number = 0, 1

    def watch(self, model: nn.Module) -> None:
        """Before the first step: let all start from the first's weights."""

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """This worker's pairs of a batch: neighbours, and of about as many tokens as every other's."""
        return numbers

    def some(self, items: Iterable[Item]) -> Iterable[Item]:
        """This worker's of the items, taken in turn."""
        return items

    def begin(self) -> None:
        """Before a step's first part, and before it once more where memory ran out."""

    def begin_last(self) -> None:
        """Before the backward pass after which a step's gradients are complete."""

    def finish(self) -> None:
        """After it: have every worker's gradients summed."""

    def total(self, *values: float) -> tuple[float, ...]:
        """The sums of every worker's values, the same bits on all."""
        return values

    def agree(self, *flags: bool) -> tuple[bool, ...]:
        """Whether any worker says so."""
        return flags

    def collect(self, tensor: Tensor) -> None:
        """Leave the sum of every worker's number with the first and zero with the others. Waits for the device."""

    def wait(self) -> None:
        """Until every worker has come here."""


ALONE = Alone()


class Workers(Alone):
    """This process among those of `torch.distributed`'s default group."""

    def __init__(self) -> None:
        self.rank, self.number = dist.get_rank(), dist.get_world_size()
        self.hosts = dist.new_group(backend="gloo")
        self.gradients: GradientSum | None = None

    def watch(self, model: nn.Module) -> None:
        with connected(), torch.no_grad():
            for parameter in model.parameters():
                dist.broadcast(parameter, 0)
        self.gradients = GradientSum(list(model.parameters()))

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        ends = np.cumsum(sizes)
        start, stop = (ends[-1] * rank // self.number for rank in (self.rank, self.rank + 1))
        return numbers[(ends > start) & (ends <= stop)]

    def some(self, items: Iterable[Item]) -> Iterable[Item]:
        return islice(items, self.rank, None, self.number)

    def begin(self) -> None:
        if self.gradients.under_way:
            raise UserError(
                "out of memory while workers were adding up gradients, where no step can be done again: "
                "lower training.micro_batch_tokens, or raise machine.processes"
            )

    def begin_last(self) -> None:
        self.gradients.expect()

    def finish(self) -> None:
        self.gradients.finish()

    def total(self, *values: float) -> tuple[float, ...]:
        return self.reduced(values, dist.ReduceOp.SUM)

    def agree(self, *flags: bool) -> tuple[bool, ...]:
        return tuple(bool(value) for value in self.reduced(flags, dist.ReduceOp.MAX))

    def reduced(self, values: tuple[float, ...], operation: dist.ReduceOp.RedOpType) -> tuple[float, ...]:
        tensor = torch.tensor(values, dtype=torch.float64)
        with connected():
            dist.all_reduce(tensor, operation, group=self.hosts)
        return tuple(tensor.tolist())

    def collect(self, tensor: Tensor) -> None:
        (total,) = self.total(tensor.item())
        tensor.fill_(0.0 if self.rank else total)

    def wait(self) -> None:
        with connected():
            dist.barrier(group=self.hosts)


class GradientSum:
    """Gradients summed over the workers, in buckets that are on their way while the backward pass goes on.

    The last layers' come first. Buckets leave in one order, since every worker has to add up the same ones.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.buckets: list[list[nn.Parameter]] = [[]]
        for parameter in reversed(parameters):
            if sum(other.nbytes for other in self.buckets[-1]) > BUCKET:
                self.buckets.append([])
            self.buckets[-1].append(parameter)
            parameter.register_post_accumulate_grad_hook(self.arrived)
        self.place = {parameter: number for number, bucket in enumerate(self.buckets) for parameter in bucket}
        self.missing: list[int] | None = None  # in each bucket, once the gradients that come are the last
        self.under_way: list[tuple[Tensor, dist.Work]] = []

    def expect(self) -> None:
        self.missing = [len(bucket) for bucket in self.buckets]

    def arrived(self, parameter: nn.Parameter) -> None:
        if self.missing is None:
            return
        self.missing[self.place[parameter]] -= 1
        while len(self.under_way) < len(self.buckets) and not self.missing[len(self.under_way)]:
            self.send()

    def send(self) -> None:
        """Let the next bucket go; what has no gradient here (this worker had no pairs) adds nothing."""
        bucket = self.buckets[len(self.under_way)]
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in bucket]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with connected():
            self.under_way.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        while len(self.under_way) < len(self.buckets):
            self.send()
        for bucket, (flat, work) in zip(self.buckets, self.under_way):
            with connected():
                work.wait()  # on a GPU its stream waits, the host does not
            for parameter, gradient in zip(bucket, flat.split([each.numel() for each in bucket])):
                parameter.grad = gradient.view_as(parameter)
        self.missing, self.under_way = None, []
