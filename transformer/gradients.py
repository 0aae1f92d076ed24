"""The loss and the gradients of a part of a batch. On a CPU, several threads share the rows of the part."""

from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import torch
from torch import Tensor

from transformer.config.training import TrainingConfig
from transformer.device import at_once, autocast
from transformer.fast.dropout import drawing_from
from transformer.fast.graphs import Graphs
from transformer.layout import Batch
from transformer.model import Transformer
from transformer.perplexity import batch_loss


class Gradients:
    """Adds the gradients of parts of batches to those of the parameters.

    The rows of a part are divided into as many shares as threads work at once. The gradients of the shares are added in
    a fixed order, and each share has its own random numbers, so the result does not depend on which thread is faster.
    """

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        device: torch.device,
        precision: str,
        graphs: Graphs | None = None,
    ) -> None:
        self.model, self.config, self.device, self.precision = model, config, device, precision
        self.graphs = graphs
        number = at_once(device, config.threads)
        self.generators = [torch.Generator() for _ in range(number)]
        self.pool = ThreadPoolExecutor(number, "share", torch.set_num_threads, (config.threads // number,))

    def seed(self, step: int, rank: int) -> None:
        """Seed the random numbers for one step of one worker, so that no state of a generator has to be saved."""
        seed = seed_of(self.config.seed, step, rank)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes a millisecond for backends that are not used
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        for share, generator in enumerate(self.generators):
            generator.manual_seed(seed_of(self.config.seed, step, rank, share))

    def add(self, part: Batch, target_tokens: int) -> Tensor:
        """Add the gradients of the loss of `part` divided by `target_tokens`. Returns the summed loss, without a graph."""
        if len(self.generators) == 1:
            loss = self.loss(part.to(self.device))
            (loss / target_tokens).backward()
            return loss.detach()
        parameters = list(self.model.parameters())

        def work(share: Batch, generator: torch.Generator) -> tuple[Tensor, tuple[Tensor, ...]]:
            with drawing_from(generator):
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

    def release(self) -> bool:
        """Train without CUDA graphs from now on, whose memory other work needs. Returns whether there were any."""
        if not (self.graphs and self.graphs.graphs):
            return False
        self.graphs.give_up("they need too much memory")
        return True

    def close(self) -> None:
        """End the threads, and delete the CUDA graphs."""
        self.pool.shutdown()
        if self.graphs:
            self.graphs.graphs.clear()

    def loss(self, part: Batch) -> Tensor:
        hidden = self.graphs.hidden if self.graphs else None
        with autocast(self.device, self.precision):
            return batch_loss(self.model, part, self.config.label_smoothing, self.config.r_drop, hidden)


def seed_of(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
