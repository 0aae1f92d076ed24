"""Data parallel training: each worker takes a part of every batch, and the workers sum their gradients.

Each worker divides its loss by the target tokens of the whole batch, so gradients are summed, never averaged. The host
needs the losses and the flags that stop a training. They are exchanged through a second process group, over gloo, so that
no step waits for a GPU.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer.memory import enough_memory, out_of_memory

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
            # NCCL and the store raise DistError; gloo's RuntimeError names a gloo source file.
            lost = isinstance(error, dist.DistError) or "gloo/" in str(error)
            if out_of_memory(error) or not lost:
                raise
            raise WorkerLost("another worker is gone") from error


class Workers:
    """The processes that share a training, from the view of one of them. Process 0 writes the files.

    `alone`, this process exchanges nothing. Otherwise they are the processes of torch.distributed's default group.
    """

    def __init__(self, alone: bool = True) -> None:
        self.alone = alone
        self.rank, self.number = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())
        if not alone:
            with connected():
                self.hosts = dist.new_group(backend="gloo")

    def share_weights(self, model: nn.Module) -> None:
        """Give every process the weights of process 0."""
        if not self.alone:
            with connected(), torch.no_grad():
                for parameter in model.parameters():
                    dist.broadcast(parameter, 0)

    def share(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the consecutive part of `numbers` for this process. All parts have about the same sum of `sizes`."""
        if self.number == 1:
            return numbers
        ends = np.cumsum(sizes)
        start, stop = (ends[-1] * rank // self.number for rank in (self.rank, self.rank + 1))
        return numbers[(ends > start) & (ends <= stop)]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes. Called once after the last backward pass of a step.

        A parameter without a gradient (this process had no pairs) contributes zeros. CUDA graphs may have made the
        gradients, since nothing is attached to the backward pass.
        """
        if self.alone:
            return
        every = list(parameters)
        with connected():
            flat = torch.cat([(torch.zeros_like(each) if each.grad is None else each.grad).flatten() for each in every])
            dist.all_reduce(flat)
        for parameter, total in zip(every, flat.split([each.numel() for each in every])):
            parameter.grad = total.view_as(parameter)

    def total(self, *values: float) -> tuple[float, ...]:
        """Return the sum of each value over all processes. It is bitwise equal in every process."""
        return self.reduced(values, dist.ReduceOp.SUM)

    def highest(self, *values: float) -> tuple[float, ...]:
        """Return the maximum of each value over all processes. For a flag, this is whether any process has set it."""
        return self.reduced(values, dist.ReduceOp.MAX)

    def reduced(self, values: tuple[float, ...], operation: dist.ReduceOp.RedOpType) -> tuple[float, ...]:
        if self.alone:
            return values
        tensor = torch.tensor(values, dtype=torch.float64)
        with connected():
            dist.all_reduce(tensor, operation, group=self.hosts)
        return tuple(tensor.tolist())

    def collect(self, tensor: Tensor) -> None:
        """In process 0, replace a scalar by its sum over all processes; in the others, by 0. Waits for the device."""
        if not self.alone:
            (total,) = self.total(tensor.item())
            tensor.fill_(0.0 if self.rank else total)

    def wait(self) -> None:
        """Return when every process has called this."""
        if not self.alone:
            with connected():
                dist.barrier(group=self.hosts)


SINGLE_PROCESS = Workers()
