"""When a training has gone wrong: it stops with what was last saved named, and nothing is saved over that.

Called at records and before saves alone, since each call waits for the device.
"""

import math

from transformer.config.reading import UserError
from transformer.store import Store, TrainingState

# A guess among V pieces costs ln V nats. At this many times that, the right piece is given a probability below V^-5:
# no start is as bad, not even one without warm-up, and no training comes back from there.
EXPLODED = 5


class Diverged(UserError):
    """The training has gone wrong, as `check_loss` and `check_state` say."""


def check_loss(mean: float, state: TrainingState, store: Store) -> None:
    """Raise Diverged for a mean loss a piece that is no number, or is above EXPLODED times that of a guess."""
    limit = EXPLODED * math.log(len(state.model.embedding))
    if not math.isfinite(mean):
        raise diverged("the loss is no longer a number", state, store)
    if mean > limit:
        raise diverged(f"the loss has exploded: {mean:.1f} nats a piece, over {limit:.1f},", state, store)


def check_state(state: TrainingState, store: Store) -> None:
    """Raise Diverged for a state that must not be saved: the loss knows nothing of the last step's update."""
    if state.loss_tokens:
        check_loss(state.loss_sum.item() / state.loss_tokens, state, store)
    if not state.finite():
        raise diverged("a weight is no longer a number", state, store)


def diverged(what: str, state: TrainingState, store: Store) -> Diverged:
    good = f"the last good state is {store.state}" if store.state.exists() else "no state was saved before"
    advice = "Try a longer warmup, a smaller lr_scale, schedule warmup or precision float32"
    return Diverged(f"{what} at step {state.step}; {good}. {advice}")
