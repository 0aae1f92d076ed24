"""Data parallel training: each worker takes a part of every batch, and the workers sum their gradients.

Each worker divides its loss by the target tokens of the whole batch, so gradients are summed, never averaged. The host
needs the losses and the flags that stop a training. They are exchanged through a second process group, over gloo, so that
no step waits for a GPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer.config.reading import UserError
from transformer.memory import enough_memory, out_of_memory

BUCKET = 25 * 2**20  # bytes; a bucket with more bytes of gradients takes no further parameter
REMEDY = "lower training.micro_batch_tokens, or raise machine.processes"


class WorkerLost(ConnectionError):
    """Another worker has ended. The process that started the workers knows which one and why."""


@contextmanager
def connected() -> Iterator[None]:
    """Wraps an operation by which workers exchange tensors or wait for each other.

    Raises WorkerLost if the connection to another worker fails. Raises UserError if memory runs out, because one worker
    alone cannot repeat the operation.
    """
    with enough_memory("while the workers exchanged gradients or losses", REMEDY):
        try:
            yield
        except RuntimeError as error:
            if out_of_memory(error) or not connection_failed(error):
                raise
            raise WorkerLost("another worker is gone") from error


def connection_failed(error: RuntimeError) -> bool:
    """Whether a connection failed. NCCL and the store raise DistError; gloo's RuntimeError names a gloo source file."""
    return isinstance(error, dist.DistError) or "gloo/" in str(error)


class Workers:
    """The processes that share a training, from the view of one of them. Process 0 writes the files.

    This base class is a training in one process, which exchanges nothing.
    """

    rank, number = 0, 1

    def watch(self, model: nn.Module) -> None:
        """Give every process the weights of process 0, and sum the gradients of `model` from now on."""

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the consecutive part of `numbers` for this process. All parts have about the same sum of `sizes`."""
        return numbers

    def begin(self) -> None:
        """Called before the first micro-batch of a step, and again if the step is repeated because memory ran out."""

    def begin_last(self) -> None:
        """Called before the backward pass of a step's last micro-batch, which completes this process's gradients.

        The call has no effect on gradients that several threads compute (gradients.py). `finish` sends these gradients.
        """

    def finish(self) -> None:
        """Called after the last micro-batch. Each `grad` then holds the sum over all processes."""

    def total(self, *values: float) -> tuple[float, ...]:
        """Return the sum of each value over all processes. It is bitwise equal in every process."""
        return values

    def highest(self, *values: float) -> tuple[float, ...]:
        """Return the maximum of each value over all processes. For a flag, this is whether any process has set it."""
        return values

    def collect(self, tensor: Tensor) -> None:
        """In process 0, replace a scalar by its sum over all processes; in the others, by 0. Waits for the device."""

    def wait(self) -> None:
        """Return when every process has called this."""


SINGLE_PROCESS = Workers()


class ProcessGroup(Workers):
    """The processes of `torch.distributed`'s default group."""

    def __init__(self) -> None:
        self.rank, self.number = dist.get_rank(), dist.get_world_size()
        with connected():
            self.hosts = dist.new_group(backend="gloo")
        self.gradients: GradientSum  # made by `watch`

    def watch(self, model: nn.Module) -> None:
        with connected(), torch.no_grad():
            for parameter in model.parameters():
                dist.broadcast(parameter, 0)
        self.gradients = GradientSum(list(model.parameters()))

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        ends = np.cumsum(sizes)
        start, stop = (ends[-1] * rank // self.number for rank in (self.rank, self.rank + 1))
        return numbers[(ends > start) & (ends <= stop)]

    def begin(self) -> None:
        self.gradients.begin()

    def begin_last(self) -> None:
        self.gradients.expect()

    def finish(self) -> None:
        self.gradients.finish()

    def total(self, *values: float) -> tuple[float, ...]:
        return self.reduced(values, dist.ReduceOp.SUM)

    def highest(self, *values: float) -> tuple[float, ...]:
        return self.reduced(values, dist.ReduceOp.MAX)

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
    """Sums gradients over the workers in buckets.

    With one thread or a GPU, each bucket is sent during the backward pass when it is complete. If several threads share a
    batch (gradients.py), all buckets are sent after the backward pass.

    The first bucket holds the parameters of the last layers, whose gradients are computed first. All workers send their
    buckets in the same fixed order, so that corresponding buckets are summed.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.buckets: list[list[nn.Parameter]] = [[]]
        for parameter in reversed(parameters):
            if sum(other.nbytes for other in self.buckets[-1]) > BUCKET:
                self.buckets.append([])
            self.buckets[-1].append(parameter)
            parameter.register_post_accumulate_grad_hook(self.arrived)
        self.place = {parameter: number for number, bucket in enumerate(self.buckets) for parameter in bucket}
        self.missing: list[int] | None = None  # gradients each bucket waits for; None before the last backward pass
        self.under_way: list[tuple[Tensor, dist.Work]] = []

    def begin(self) -> None:
        """Begin a step, or repeat it.

        Raises UserError if a bucket was sent, because other workers may already have added it to their sums.
        """
        if self.under_way:
            raise UserError(f"out of memory after the workers began to add up the gradients of a step: {REMEDY}")
        self.missing = None

    def expect(self) -> None:
        """Mark the last backward pass: gradients that arrive after this call are complete."""
        self.missing = [len(bucket) for bucket in self.buckets]

    def arrived(self, parameter: nn.Parameter) -> None:
        if self.missing is None:
            return
        self.missing[self.place[parameter]] -= 1
        while len(self.under_way) < len(self.buckets) and not self.missing[len(self.under_way)]:
            self.send()

    def send(self) -> None:
        """Send the next bucket. A parameter without a gradient (this worker had no pairs) contributes zeros."""
        bucket = self.buckets[len(self.under_way)]
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in bucket]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with connected():
            self.under_way.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        """Send the remaining buckets, wait for all of them, and put the sums into the parameters' `grad`."""
        while len(self.under_way) < len(self.buckets):
            self.send()
        for bucket, (flat, work) in zip(self.buckets, self.under_way):
            with connected():
                work.wait()  # on a GPU its stream waits, the host does not
            for parameter, gradient in zip(bucket, flat.split([each.numel() for each in bucket])):
                parameter.grad = gradient.view_as(parameter)
        self.missing, self.under_way = None, []
