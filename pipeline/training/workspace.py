"""The folder of a training: `work/<run>/<key>/`, ignored by git and DVC.

The key is a hash of the settings and the data. A changed setting therefore starts another training, and undoing the
change resumes the first one. After a change of code only, the user decides whether to resume (pipeline/commands/accept.py).

DVC records a training after its stage has ended. If DVC fails or is killed before that, its next start removes the outputs
and runs the stage again. The folder of a finished training is therefore only marked, and the stage then writes the outputs
again without a step. Once DVC has recorded the training, the stage `average` removes its folder, unless
`machine.keep_states` keeps it for more steps (more_steps.py), and a start trains again.
"""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from transformer.config.reading import UserError, convert
from transformer.files import digest, read_json, write_json

WORK = Path("work")
STATE = "state.safetensors"  # as in transformer/store.py
CODE = "code.json"  # the digests of the code versions that trained
PUBLISHED = "published"  # all outputs of the training are written; holds the md5 of training.json, as dvc.lock does
UNDO = "undo the change, and the same command records it"


def folder(run: str, key: str) -> Path:
    return WORK / run / key[:16]


def lock(run: str) -> AbstractContextManager:
    """Lock the run's folder until the end of the `with` block, so that two processes never write there at the same time.

    DVC's own lock is not enough, because a training may outlive the DVC process that started it. Raises UserError if
    another process holds the lock.
    """
    path = WORK / run / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(path, blocking=False).acquire()
    except Timeout:
        raise UserError(f"another process uses {WORK / run} (it holds {path}); wait until it ends, or stop it") from None


def claim(run: str, key: str, code: str) -> tuple[Path, list[str]]:
    """Return the folder of the training, and the digests of the other code versions that made its state.

    Removes what is left of a finished training that DVC has recorded. Adds `code` to code.json, and removes the mark of a
    finished training. Raises UserError if the folder has a state that another version of the code saved, and the user has
    not accepted it.
    """
    place = folder(run, key)
    if recorded(run, place):
        remove(place)
    history = history_of(place) if (place / STATE).exists() else []
    if history and history[-1] != code:
        raise UserError(
            f"{place} holds a state that another version of the code saved: `python -m pipeline.commands.accept {run}` "
            f"resumes it with the current code, `rm -r {place}` removes it"
        )
    earlier = [entry for entry in history if entry != code]
    (place / PUBLISHED).unlink(missing_ok=True)
    write_json(place / CODE, [*earlier, code])
    return place, earlier


def recorded(run: str, place: Path) -> bool:
    """Return whether DVC has recorded and cached the outputs of the training in `place`, with its code.

    The mark holds the md5 of training.json, which has the settings and the data.
    """
    history = history_of(place)
    if not (history and (place / PUBLISHED).exists()):
        return False
    from pipeline.orchestrating.project import code_of  # the import of DVC takes a second

    text = code_of(f"train@{run}", (place / PUBLISHED).read_text())
    return text is not None and digest(text) == history[-1]


def history_of(place: Path) -> list[str]:
    """Return the digests of the code versions that trained in `place`, or that the user accepted for it."""
    path = place / CODE
    return list(convert(tuple[str, ...], read_json(path), str(path))) if path.exists() else []


def accept(place: Path, code: str) -> None:
    """Let the next start resume the training in `place` with this code, whatever code made its state."""
    write_json(place / CODE, [*history_of(place), code])


def saved(run: str) -> list[Path]:
    """The folders of the run's trainings that have saved a state."""
    return sorted(state.parent for state in (WORK / run).glob(f"*/{STATE}"))


def unfinished(run: str) -> list[Path]:
    """The folders of the run's trainings that have saved a state and not written all outputs."""
    return [place for place in saved(run) if not (place / PUBLISHED).exists()]


def remove_recorded(run: str) -> None:
    """Remove the folder of the finished training that DVC has recorded for the run. Those of other settings stay.

    Raises UserError if another process uses the run's folder.
    """
    with lock(run):
        for mark in (WORK / run).glob(f"*/{PUBLISHED}"):
            if recorded(run, mark.parent):
                remove(mark.parent)


def remove(place: Path) -> None:
    """Remove the folder of a training.

    The state is removed first, because after a kill a state without its weights would be resumed as a finished training.
    Without a state, the other files do no harm. An error in their removal is therefore ignored.
    """
    (place / STATE).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)
