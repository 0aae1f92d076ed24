"""The gradients of one step: of a batch in parts, which become smaller if memory runs out.

On a CPU, several threads share the rows of a part.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from transformer.batch import Batch
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.device import at_once, autocast, begin_with
from transformer.fast.dropout import SOURCE
from transformer.fast.fused import is_fast, layout_on
from transformer.fast.graphs import CudaCapture, Graphs
from transformer.memory import out_of_memory, release_cached
from transformer.perplexity import batch_loss
from transformer.store import TrainingState

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parts:
    """The pairs `numbers` of a batch, divided by `Batches.micro_batches` with this `limit` into the tensors `parts`."""

    numbers: np.ndarray
    limit: int
    parts: list[Batch]


@dataclass
class Step:
    """Computes the gradients of batches. A part of a batch has at most `state.micro_batch_tokens` tokens a side.

    The rows of a part are divided into as many shares as threads work at once. The gradients of the shares are added in
    a fixed order, and each share has its own random numbers, so the result does not depend on which thread is faster.
    `warn` is called with a line of text when the limit is lowered or CUDA graphs end. A model without fast layers, and one
    on a CPU, has no graphs.
    """

    state: TrainingState
    config: TrainingConfig
    device: torch.device
    precision: str
    warn: Callable[[str], None] = warnings.warn

    def __post_init__(self) -> None:
        self.model = self.state.model
        self.graphs = Graphs(self.model, CudaCapture(), self.warn) if is_fast(self.model) else None
        number = at_once(self.device, self.config.threads)
        self.generators = [torch.Generator() for _ in range(number)]
        self.pool = ThreadPoolExecutor(number, "share", begin_with, (self.config.threads // number,))

    def divide(self, batches: Batches, numbers: np.ndarray) -> Parts:
        """The pairs `numbers` in parts, whose tensors for a GPU are in pinned memory."""
        limit = self.state.micro_batch_tokens  # read once: the prefetch thread calls this while a step may lower the limit
        layout = layout_on(self.device, self.precision, self.model)
        parts = batches.micro_batches(numbers, limit)
        return Parts(numbers, limit, [batches.lay_out(part, limit, layout).pinned_for(self.device) for part in parts])

    def gradients(self, batches: Batches, given: Parts, target_tokens: int, place: tuple[int, int]) -> Tensor:
        """The summed loss of a batch, in float64. The parameters then have the gradients of loss / `target_tokens`.

        `place` has the number of the step and of this worker, on which random numbers depend. Raises UserError as
        `repeated` does.
        """

        def work(limit: int) -> Tensor:
            parts = given if limit == given.limit else self.divide(batches, given.numbers)
            self.seed(*place)
            self.state.optimiser.zero_grad()
            total = torch.zeros((), dtype=torch.float64, device=self.device)
            for batch in parts.parts:
                total += self.add(batch, target_tokens)
            return total

        return self.repeated(work)

    def repeated(self, work: Callable[[int], Result]) -> Result:
        """`work(limit)`, repeated if memory runs out: first without CUDA graphs, then with half the limit.

        Raises UserError if memory runs out at a limit of 1, where a part is one pair or one row of packed pairs.
        """
        state, before = self.state, self.state.micro_batch_tokens
        while True:
            try:
                result = work(state.micro_batch_tokens)
                break
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            # Outside of the `except` block, whose traceback keeps tensors. Cached blocks would fragment the memory.
            if self.graphs and self.graphs.graphs:
                self.graphs.give_up("they need too much memory")
                continue
            if state.micro_batch_tokens == 1:
                raise UserError("out of memory on a single pair: lower training.max_length, or split the lines of dev")
            release_cached()
            state.micro_batch_tokens //= 2
        if state.micro_batch_tokens < before:
            self.warn(f"out of memory: micro-batches now have at most {state.micro_batch_tokens:,} tokens")
        return result

    def seed(self, step: int, rank: int) -> None:
        """Seed the random numbers for one step of one worker, so that no state of a generator has to be saved."""
        seed = seed_of(self.config.seed, step, rank)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes a millisecond for backends that are not used
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        for share, generator in enumerate(self.generators):
            generator.manual_seed(seed_of(self.config.seed, step, rank, share + 1))

    def add(self, part: Batch, target_tokens: int) -> Tensor:
        """Add the gradients of the loss of `part` divided by `target_tokens`. Returns the summed loss, without a graph."""
        if len(self.generators) == 1:
            loss = self.loss(part.to(self.device))
            (loss / target_tokens).backward()
            return loss.detach()
        parameters = list(self.model.parameters())

        def work(share: Batch, generator: torch.Generator) -> tuple[Tensor, tuple[Tensor, ...]]:
            SOURCE.generator = generator
            loss = self.loss(share)
            return loss.detach(), torch.autograd.grad(loss / target_tokens, parameters)

        shares = part.shares(len(self.generators))
        futures = [self.pool.submit(work, *each) for each in zip(shares, self.generators)]
        wait(futures)  # where one fails, the others must have ended before the step is repeated
        losses, gradients_of_shares = zip(*(future.result() for future in futures))
        for gradients in gradients_of_shares:
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return torch.stack(losses).sum()

    def loss(self, part: Batch) -> Tensor:
        hidden = self.graphs.hidden if self.graphs else None
        with autocast(self.device, self.precision):
            return batch_loss(self.model, part, self.config.label_smoothing, self.config.r_drop, hidden)

    def close(self) -> None:
        """End the threads, and delete the CUDA graphs."""
        self.pool.shutdown()
        if self.graphs:
            self.graphs.graphs.clear()


def seed_of(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
