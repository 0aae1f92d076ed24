"""Training (section 5): batches of `batch_tokens` tokens a side, Adam, the paper's schedule, smoothed labels."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from transformer.batch import Pairs
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.data import Batches, MixedBatches, Prefetch, in_order
from transformer.device import same_gpu
from transformer.memory import enough_memory
from transformer.model import Transformer
from transformer.optimisation import adam, learning_rate
from transformer.parallel import SINGLE_PROCESS, Workers
from transformer.perplexity import summed_loss
from transformer.step import Parts, Step
from transformer.store import Store, TrainingState

# Steps whose batches are prepared in advance, so that a slow batch delays no step. They are discarded if a training stops.
AHEAD = 4
# The loss of a uniform guess among V pieces is ln V nats. At EXPLODED times this loss, the right piece has a probability of
# V^-5. No training starts with such a loss, even without warm-up, and none recovers from it.
EXPLODED = 5


class Diverged(UserError):
    """The training has diverged. It stops before its state replaces the last good one.

    The checks run only when a loss is recorded and before a state is saved, because each check waits for the device.
    """


def batches_of(pairs: Pairs, config: TrainingConfig, segmentations: int = 1) -> Batches:
    kind = MixedBatches if config.batching == "mixed" else Batches
    return kind(pairs, config.seed, config.batch_tokens, config.max_length, segmentations)


def new_state(model: Transformer, config: TrainingConfig, device: torch.device) -> TrainingState:
    model.to(device)
    if device.index is not None and device.type == "cuda":
        torch.cuda.set_device(device)  # the device of streams, graphs and seeds
    loss_sum = torch.zeros((), dtype=torch.float64, device=device)
    return TrainingState(model, adam(model.parameters(), config), loss_sum, config.micro_batch_tokens)


@dataclass
class Trainer:
    """The training loop of one model."""

    state: TrainingState
    batches: Batches
    dev: Pairs
    config: TrainingConfig
    store: Store
    device: torch.device
    precision: str
    save_every_seconds: float
    warn: Callable[[str], None] = warnings.warn  # called with a line of text, as that of `Step`
    workers: Workers = SINGLE_PROCESS

    def __post_init__(self) -> None:
        self.step = Step(self.state, self.config, self.device, self.precision, self.warn)
        self.coming = Prefetch(self.prepare, AHEAD, same_gpu(self.device))

    def run(self, tick: Callable[[dict | None], None], stop: Callable[[], bool]) -> bool:
        """Train to the end and return True. If `stop()` is true before the last step, save the state and return False.

        `tick` is called after each step with the record of the loss or None, and after each evaluation with its record.
        Raises Diverged, WorkerLost, or UserError if memory runs out or the workers resume at different steps.
        """
        state, config = self.state, self.config
        state.model.train()
        self.workers.share_weights(state.model)
        highest, lowest = self.workers.highest(state.step, -state.step)
        if highest + lowest:
            raise UserError(
                f"the workers resume at different steps, {int(-lowest)} to {int(highest)}; "
                "all workers must share the folder work/"
            )
        started, saved = time.monotonic() - state.seconds, time.monotonic()
        while not self.finished():
            self.advance()
            record = self.log() if state.step % config.log_every == 0 else None
            tick(record)
            if state.step % config.evaluate_every == 0 or self.finished():
                tick(self.evaluate())
            state.seconds = time.monotonic() - started
            late = time.monotonic() - saved > self.save_every_seconds
            stopping, overdue, lowest = self.workers.highest(stop(), late, -state.micro_batch_tokens)
            state.micro_batch_tokens = -int(lowest)  # one limit for all workers, as only one state is saved
            due = bool(overdue or stopping or self.finished())
            if due or self.averaged():
                self.save(due)
                saved = time.monotonic() if due else saved
            if stopping and not self.finished():
                return False
        return True

    def close(self) -> None:
        """End the threads of the training."""
        self.coming.close()
        self.batches.orders.close()
        self.step.close()

    def at_checkpoint(self) -> bool:
        """Whether this step is a checkpoint. Checkpoints are counted back from the last step."""
        return (self.config.steps - self.state.step) % self.config.checkpoint_every == 0

    def averaged(self) -> bool:
        """Whether averaging may take the weights of this step: it is one of the last `keep` checkpoints.

        With `patience`, any checkpoint may be the last one.
        """
        last = self.config.steps - self.state.step < self.config.keep * self.config.checkpoint_every
        return self.at_checkpoint() and (last or self.config.patience > 0)

    def finished(self) -> bool:
        """Whether this is the last step, or a checkpoint after `patience` dev losses without a new best.

        The dev loss of that checkpoint counts too: if it is a new best, the training goes on.
        """
        patience = self.config.patience
        impatient = bool(patience) and self.state.evaluations_since_best >= patience
        return self.state.step >= self.config.steps or (impatient and self.at_checkpoint())

    def advance(self) -> None:
        """Take one step of the optimiser on one batch.

        For the gradients, the loss is divided by the target tokens of the whole batch, so each token counts equally.
        """
        state, config = self.state, self.config
        sums, parts = self.coming(state.step)
        place = (state.step, self.workers.rank)
        state.loss_sum += self.step.gradients(self.batches, parts, sums["target_tokens"], place)
        self.workers.sum_gradients(state.model.parameters())
        state.step += 1
        rate = learning_rate(state.step, state.model.config.d_model, config)
        for group in state.optimiser.param_groups:
            group["lr"] = rate
        with enough_memory("for Adam's moments", "lower training.micro_batch_tokens, or take a smaller model"):
            state.optimiser.step()
        state.optimiser.zero_grad()
        state.loss_tokens += sums["target_tokens"]
        state.sums = {key: state.sums.get(key, 0) + value for key, value in sums.items()}

    def prepare(self, step: int) -> tuple[dict[str, int], Parts]:
        """The token counts of a step's batch (`Batches.sums`), and this worker's share of the batch, divided into parts.

        Runs in the prefetch thread, the only caller of `batches.batch`, which is not thread-safe.
        """
        with enough_memory("for the next batches", "lower training.batch_tokens"):
            numbers = self.batches.batch(step)
            own = self.workers.share(numbers, self.batches.source[numbers] + self.batches.target[numbers])
            return self.batches.sums(numbers), self.step.divide(self.batches, own)

    def log(self) -> dict:
        """Record the mean training loss since the last record."""
        state = self.state
        self.workers.collect(state.loss_sum)
        loss = state.loss_sum.item() / state.loss_tokens
        self.check_loss(loss)
        record = {
            "step": state.step,
            "loss": round(loss, 6),
            "learning_rate": state.optimiser.param_groups[0]["lr"],
            "tokens": state.sums["source_tokens"] + state.sums["target_tokens"],
        }
        self.store.record(record)
        state.loss_sum.zero_()
        state.loss_tokens = 0
        return record

    def evaluate(self) -> dict:
        """Record the dev loss and perplexity, without smoothing."""
        state = self.state
        loss = self.dev_loss()
        self.check_loss(loss)
        state.evaluations_since_best += 1
        if loss < state.best_dev_loss:
            state.best_dev_loss, state.evaluations_since_best = loss, 0
        record = {"step": state.step, "dev_loss": round(loss, 6), "dev_perplexity": round(math.exp(loss), 6)}
        self.store.record(record)
        return record

    def dev_loss(self) -> float:
        def own(limit: int) -> tuple[float, int]:
            batches = in_order(self.dev, limit, self.workers.share)
            return summed_loss(self.state.model, self.dev, batches, self.device)

        total, tokens = self.workers.total(*self.step.repeated(own))
        return total / tokens

    def save(self, due: bool) -> None:
        """Save the weights if averaging may take them, and the state if `due`."""
        self.workers.collect(self.state.loss_sum)
        self.check_state()
        if self.averaged():
            self.store.save_weights(self.state)
        if due:
            self.store.save(self.state)

    def check_loss(self, mean: float) -> None:
        """Raise Diverged if the mean loss of a piece is not finite, or over EXPLODED times that of a uniform guess."""
        limit = EXPLODED * math.log(len(self.state.model.embedding))
        if not math.isfinite(mean):
            raise self.diverged("the loss is no longer a number")
        if mean > limit:
            raise self.diverged(f"the loss has exploded: {mean:.1f} nats per piece (limit {limit:.1f})")

    def check_state(self) -> None:
        """Raise Diverged for a state that must not be saved.

        The weights and Adam's moments are checked besides the loss, because no loss was computed after their last update.
        """
        if self.state.loss_tokens:
            self.check_loss(self.state.loss_sum.item() / self.state.loss_tokens)
        if not self.state.finite():
            raise self.diverged("a weight or a moment of Adam is not finite")

    def diverged(self, what: str) -> Diverged:
        saved = self.store.state
        good = f"the last good state is {saved}" if saved.exists() else "no state was saved before"
        advice = "Try a larger warmup, a smaller lr_scale, `schedule: warmup` or `precision: float32`"
        return Diverged(f"{what} at step {self.state.step}; {good}. {advice}")
