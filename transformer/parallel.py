"""Data parallel training: workers take a part of every batch each, and add up their gradients.

Each worker divides its loss by the target tokens of the whole batch, so gradients are added and never averaged. What
the host has to know (flags, losses at records) goes by a group of its own between processors: no step waits for a GPU.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Protocol, TypeVar

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


class Workers(Protocol):
    """The processes that share a training, as one of them sees them. Process 0 writes the files."""

    rank: int
    number: int

    def watch(self, model: nn.Module) -> None:
        """Give every process the weights of process 0, and sum the gradients of `model` from now on."""

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """This process's part of `numbers`: consecutive ones, with about as large a sum of `sizes` as every other's."""

    def some(self, items: Iterable[Item]) -> Iterable[Item]:
        """Every `number`-th of the items, beginning with the `rank`-th."""

    def begin(self) -> None:
        """Called before the first part of a step, and again before the step is repeated after an out-of-memory error."""

    def begin_last(self) -> None:
        """Called before the backward pass of a step's last part, which completes this process's gradients."""

    def finish(self) -> None:
        """Called after the last part. Each `grad` then holds the sum over all processes."""

    def total(self, *values: float) -> tuple[float, ...]:
        """The sum of each value over all processes, with the same bits in every process."""

    def agree(self, *flags: bool) -> tuple[bool, ...]:
        """For each flag, whether it is set in any process."""

    def collect(self, tensor: Tensor) -> None:
        """Replace a scalar tensor by its sum over all processes in process 0, and by 0 elsewhere. Waits for the device."""

    def wait(self) -> None:
        """Return when every process has called this."""


class SingleProcess:
    """A training in one process: nothing to share, nothing to exchange."""

    rank, number = 0, 1

    def watch(self, model: nn.Module) -> None: ...

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        return numbers

    def some(self, items: Iterable[Item]) -> Iterable[Item]:
        return items

    def begin(self) -> None: ...
    def begin_last(self) -> None: ...
    def finish(self) -> None: ...

    def total(self, *values: float) -> tuple[float, ...]:
        return values

    def agree(self, *flags: bool) -> tuple[bool, ...]:
        return flags

    def collect(self, tensor: Tensor) -> None: ...
    def wait(self) -> None: ...


SINGLE_PROCESS = SingleProcess()


class ProcessGroup:
    """The processes of `torch.distributed`'s default group."""

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
