"""A training with more steps than a finished one of the same run goes on from the last state of the finished one.

It gives the same bytes as one training of that length, because the batch, the learning rate and the random numbers of a
step do not depend on the last step. `machine.keep_states` keeps the state of a finished training.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.running.progress import warn
from pipeline.training import workspace
from transformer.checkpoint import read_tensors, write_tensors
from transformer.config.training import TrainingConfig
from transformer.files import write_file, write_json
from transformer.store import Store, step_files

FOLDER = "settings and data"  # the part of a state's identity that is the name of its folder


def prepare(
    run: str, config: TrainingConfig, key_of: Callable[[TrainingConfig], str], identity: dict[str, Any], code: str
) -> None:
    """Copy the last state of a finished training with fewer steps into the folder of this one, if it has no state.

    Of several, the longest that the settings and the code allow is taken.

    `key_of` gives the key of a training with these settings. `identity` is what the state of this training has to agree
    with, and `code` the digest of the present code. Warns if there is such a state, but the training begins at step 0.
    """
    place = workspace.folder(run, key_of(config))
    if (place / workspace.STATE).exists() or not (shorter := finished(run, config, key_of)):
        return
    other = f"other code made it (`python -m pipeline.commands.accept {run}` lets the present code use it)"
    found = {
        step: [*differences(config, step), *([other] if workspace.history_of(folder)[-1:] != [code] else [])]
        for step, folder in shorter.items()
    }
    step = max(found, key=lambda each: (not found[each], each))
    reasons, earlier = found[step], shorter[step]
    if not reasons:  # a state may be large
        tensors, description = read_tensors(earlier / workspace.STATE)
        saved = description["identity"]
        reasons = [f"{key} was {saved.get(key)!r}, now {now!r}" for key, now in identity.items() if saved.get(key) != now]
    if reasons:
        warn(f"the training begins at step 0, not at step {step} of {earlier}: {'; '.join(reasons)}")
        return
    store = Store(earlier, config.keep, {})
    records = [*store.records()]
    if step % config.evaluate_every:
        records.pop()  # the dev loss of the last step, which a longer training does not compute
    checkpoints = place / store.checkpoints.name
    checkpoints.mkdir(parents=True, exist_ok=True)
    for _, path in step_files(store.checkpoints):
        copy(path, checkpoints / path.name)
    write_file(place / store.log.name, b"".join(records))
    write_json(place / workspace.CODE, workspace.history_of(earlier))
    description["identity"][FOLDER] = place.name
    description["files"]["records"] = len(records)
    write_tensors(place / workspace.STATE, tensors, description)  # last: before it, the folder holds no training


def finished(run: str, config: TrainingConfig, key_of: Callable[[TrainingConfig], str]) -> dict[int, Path]:
    """The folders of the finished trainings that differ from this one by fewer steps only, by their numbers of steps."""
    found = {}
    for place in set(workspace.saved(run)) - set(workspace.unfinished(run)):
        steps = [step for step, _ in step_files(place / "checkpoints") if config.checkpoint_every <= step < config.steps]
        if steps and workspace.folder(run, key_of(replace(config, steps=steps[-1]))) == place:
            found[steps[-1]] = place
    return found


def differences(config: TrainingConfig, step: int) -> Iterator[str]:
    """Yield why, by the settings, a state at the last `step` of a training is not that of this longer one at this step."""
    if config.patience:
        yield f"patience is {config.patience}, and 0 is expected"
    if (config.steps - step) % config.checkpoint_every:
        every = config.checkpoint_every
        yield f"{config.steps - step} more steps are not a multiple of checkpoint_every ({every}): the checkpoints differ"


def copy(path: Path, other: Path) -> None:
    """Link the file of a checkpoint, which is never written again, or copy it where a file system knows no links."""
    other.unlink(missing_ok=True)
    try:
        os.link(path, other)
    except OSError:
        other.write_bytes(path.read_bytes())
