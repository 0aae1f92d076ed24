"""CUDA graphs of the model's forward and backward passes.

A step of base launches about 900 kernels. On a fast GPU, the launches take longer than the kernels. A graph launches
all kernels of a pass at once. Its shapes and addresses are fixed, so each shape of a batch has its own graphs, which read
and write buffers of their own. The loss is not part of a graph, because the number of target tokens varies.

Shapes: B rows, T positions of the target in a row, D d_model.
"""

import gc
from collections.abc import Callable
from weakref import WeakSet

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transformer.batch import Batch
from transformer.fast.fused import hidden
from transformer.memory import out_of_memory, release_cached
from transformer.model import Transformer

MOST = 256  # shapes with graphs; batches of other shapes are computed without graphs
NEAR = 1e-2  # the largest accepted difference to the passes without a graph, relative to their norm

Capture = Callable[[Callable[[], None]], Callable[[], None]]


class CudaCapture:
    """Captures the kernels that a function launches. Returns a function that launches them again.

    All graphs share one pool of memory, so the memory of one graph is overwritten by the next one. torch deletes the pool
    with the last graph.
    """

    def __init__(self) -> None:
        self.stream, self.graphs = torch.cuda.Stream(), WeakSet[torch.cuda.CUDAGraph]()

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        graph, other = torch.cuda.CUDAGraph(), next(iter(self.graphs), None)
        pool = torch.cuda.graph_pool_handle() if other is None else other.pool()
        self.stream.wait_stream(torch.cuda.current_stream())
        collects = gc.isenabled()
        gc.disable()  # a collection may free an older graph, which is an error during a capture
        try:
            with torch.cuda.stream(self.stream):
                # The prefetch thread allocates pinned memory at the same time, which is an error in the default mode.
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    function()
                finally:
                    graph.capture_end()
        finally:
            if collects:
                gc.enable()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.graphs.add(graph)
        return graph.replay


class Graphs:
    """`hidden` of a model in training. Uses graphs for each shape of a batch from its second occurrence on.

    The first occurrence compiles and loads the kernels, which is not possible during a capture. The first graphs are
    compared with the passes without a graph. If they differ, or if a capture fails, no graphs are used any more, and `warn`
    is called with a line of text. If memory runs out during a later capture, no further shape gets graphs.
    """

    def __init__(self, model: Transformer, capture: Capture, warn: Callable[[str], None]) -> None:
        self.model, self.capture, self.warn, self.most = model, capture, warn, MOST
        self.parameters = list(model.parameters())
        self.sums: list[Tensor] = []  # the gradients, to which the graphs add
        self.buffers = [torch.empty(0, device=model.embedding.device) for _ in range(2)]
        self.graphs: dict[tuple[torch.Size, torch.Size], Passes] = {}
        self.seen: set[tuple[torch.Size, torch.Size]] = set()
        self.fault = ""  # why no graphs are used any more

    def hidden(self, batch: Batch) -> Tensor:
        """The decoder's output, [B, T, D]."""
        shape = batch.source.ids_BS.shape, batch.target.ids_BS.shape
        if not self.fault and shape not in self.graphs and shape in self.seen and len(self.graphs) < self.most:
            self.add(shape, batch)
        self.seen.add(shape)
        if shape in self.graphs and self.graphs[shape].cover(batch):
            return Replayed.apply(self.model.embedding, self.graphs[shape], batch)
        return hidden(self.model, batch)

    def add(self, shape: tuple[torch.Size, torch.Size], batch: Batch) -> None:
        kept: list[Tensor] = []
        try:
            self.share_gradients()
            if not self.graphs:
                kept = [total.clone() for total in self.sums]  # the check of the first graphs changes them
            passes = self.captured(batch)
            if kept:
                passes.check()
            self.graphs[shape] = passes
        except (RuntimeError, ArithmeticError) as error:
            if not lacks_memory(error):
                self.fault = next(filter(None, str(error.__context__ or error).splitlines()), "unknown error")
            elif not self.graphs:
                self.fault = "memory does not suffice for them"
            self.most = len(self.graphs)
        finally:
            if kept:
                torch._foreach_copy_(self.sums, kept)
        if self.fault:
            self.give_up(self.fault)

    def captured(self, batch: Batch) -> "Passes":
        """The graphs of a shape. A capture cannot use memory that torch keeps, so it is repeated without torch's cache."""
        try:
            return Passes(self, batch)
        except RuntimeError as error:
            if not lacks_memory(error):
                raise
        release_cached()
        return Passes(self, batch)

    def give_up(self, reason: str) -> None:
        """Delete all graphs, and with them their memory, and use none any more."""
        self.fault = reason
        self.graphs.clear()
        release_cached()
        self.warn(f"training goes on without CUDA graphs: {reason}")

    def room(self, *shape: int) -> list[Tensor]:
        """Buffers of this shape for a decoder's output and its gradient, which the graphs of all shapes share."""
        size = torch.Size(shape).numel()
        if size > self.buffers[0].numel():
            self.buffers = [buffer.new_empty(size) for buffer in self.buffers]
        return [buffer[:size].view(shape) for buffer in self.buffers]

    def share_gradients(self) -> None:
        """Make `sums` the gradients of the parameters. A gradient that a parameter already has is kept."""
        if not self.sums:
            self.sums = [torch.zeros_like(parameter) for parameter in self.parameters]
        if all(parameter.grad is total for parameter, total in zip(self.parameters, self.sums)):
            return
        torch._foreach_zero_(self.sums)
        for parameter, total in zip(self.parameters, self.sums):
            if parameter.grad is not None:
                total.add_(parameter.grad)
            parameter.grad = total


def lacks_memory(error: BaseException) -> bool:
    """Whether memory ran out. After a failed capture, the error that ended it is the context of `error`."""
    return out_of_memory(error) or bool(error.__context__ and out_of_memory(error.__context__))


class Passes:
    """The graphs of the forward and the backward pass for batches of one shape."""

    def __init__(self, graphs: Graphs, batch: Batch) -> None:
        self.graphs, model, parameters = graphs, graphs.model, graphs.parameters
        self.batch = batch.map(torch.clone)
        self.hidden, self.gradient = graphs.room(*batch.target.ids_BS.shape, model.config.d_model)
        # The graphs read these tables, also after a longer sentence has replaced them in the model.
        self.tables = [model.source_positions.table, model.target_positions.table]
        output: list[Tensor] = []

        def forward() -> None:
            output[:] = [hidden(model, self.batch)]
            self.hidden.copy_(output[0].detach())

        def backward() -> None:
            # Unlike `Tensor.backward`, this does not use the nodes that add to `grad`, which belong to another stream.
            found = torch.autograd.grad(output.pop(), parameters, self.gradient)
            torch._foreach_add_(graphs.sums, found)

        self.forward, self.backward = graphs.capture(forward), graphs.capture(backward)

    def cover(self, batch: Batch) -> bool:
        """Whether the tables of positions, as they were at the capture, are long enough for the batch."""
        sides = zip((batch.source, batch.target), self.tables)
        return self.graphs.model.source_positions.learned or all(rows.longest <= len(table) for rows, table in sides)

    def load(self, batch: Batch) -> None:
        """Copy the ids, positions and sentences of a batch into the buffers of the graphs."""
        for own, given in ((self.batch.source, batch.source), (self.batch.target, batch.target)):
            for mine, other in zip(vars(own).values(), vars(given).values()):
                if isinstance(mine, Tensor):
                    mine.copy_(other)

    def check(self) -> None:
        """Raises ArithmeticError if output or gradients differ from those without a graph, for the same random numbers.

        Changes the sums of the gradients.
        """
        graphs = self.graphs
        devices = [self.hidden.device] if self.hidden.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            output = hidden(graphs.model, self.batch)
        self.gradient.copy_(output.detach())
        expected = [output.detach(), *torch.autograd.grad(output, graphs.parameters, self.gradient)]
        torch._foreach_zero_(graphs.sums)
        with torch.random.fork_rng(devices):
            self.forward()
            self.backward()
        differences, norms = (
            torch.stack(torch._foreach_norm(each)).norm()
            for each in (torch._foreach_sub([self.hidden, *graphs.sums], expected), expected)
        )
        if not float(differences) <= NEAR * float(norms):
            raise ArithmeticError("their results differ from those without graphs")


class Replayed(torch.autograd.Function):
    """Replays the graphs of a shape. The backward pass adds to the gradients of the parameters."""

    @staticmethod
    def forward(ctx, anchor: Tensor, passes: Passes, batch: Batch) -> Tensor:
        """`anchor` is a parameter, without which torch would not call `backward`."""
        passes.load(batch)
        passes.forward()
        ctx.passes = passes
        return passes.hidden.view_as(passes.hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[None, ...]:
        passes = ctx.passes
        passes.gradient.copy_(gradient)
        passes.graphs.share_gradients()
        passes.backward()
        return None, None, None
