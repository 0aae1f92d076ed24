"""Detects a training that has diverged, and stops it before its state replaces the last good one.

The checks run only when a loss is recorded and before a state is saved, because each check waits for the device.
"""

import math

from transformer.config.reading import UserError
from transformer.store import Store, TrainingState

# The loss of a uniform guess among V pieces is ln V nats. At EXPLODED times this loss, the right piece has a probability of
# V^-5. No training starts with such a loss, even without warm-up, and none recovers from it.
EXPLODED = 5


class Diverged(UserError):
    """The training has diverged."""


def check_loss(mean: float, state: TrainingState, store: Store) -> None:
    """Raise Diverged if the mean loss of a piece is not finite, or over EXPLODED times that of a uniform guess."""
    limit = EXPLODED * math.log(len(state.model.embedding))
    if not math.isfinite(mean):
        raise diverged("the loss is no longer a number", state, store)
    if mean > limit:
        raise diverged(f"the loss has exploded: {mean:.1f} nats a piece, over {limit:.1f},", state, store)


def check_state(state: TrainingState, store: Store) -> None:
    """Raise Diverged for a state that must not be saved.

    The weights and Adam's moments are checked besides the loss, because no loss was computed after their last update.
    """
    if state.loss_tokens:
        check_loss(state.loss_sum.item() / state.loss_tokens, state, store)
    if not state.finite():
        raise diverged("a weight is no longer a number", state, store)


def diverged(what: str, state: TrainingState, store: Store) -> Diverged:
    good = f"the last good state is {store.state}" if store.state.exists() else "no state was saved before"
    advice = "Try a longer warmup, a smaller lr_scale, schedule warmup or precision float32"
    return Diverged(f"{what} at step {state.step}; {good}. {advice}")
