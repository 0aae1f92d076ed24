"""The folder of an unfinished training: `work/<run>/<key>/`, ignored by git and DVC.

The key is a hash of the settings and the data. A changed setting therefore starts another training, and undoing the
change resumes the first one. After a change of code only, the user decides whether to resume (pipeline/commands/adopt.py).
"""

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.workflow.syntax import OWN, same_syntax
from transformer.config.reading import UserError, convert
from transformer.files import digest, read_json, write_json

WORK = Path("work")
STATE = "state.safetensors"  # as in transformer/store.py


def code_digest(code: Mapping[Path, bytes], modules: Iterable[str]) -> str:
    """Return a digest of these modules in `code`. It has folder names, as two folders may have files of the same name."""
    paths = map(Path, sorted(modules))
    return digest({name_of(path): hashlib.sha256(code[path]).hexdigest() for path in paths})


def name_of(path: Path) -> str:
    return "/".join(path.parts[-2:])


def sources() -> dict[Path, bytes]:
    """Return the source files of this project's modules that are imported now."""
    specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, "__spec__", None)]
    paths = [Path(spec.origin) for spec in specs if spec and spec.origin and spec.name.split(".")[0] in OWN]
    return {path: path.read_bytes() for path in paths}


def require_unchanged(what: str, settings: tuple[Any, Any], code: Mapping[Path, bytes], undo: str, record: str) -> None:
    """Raise UserError if the settings or the code of a stage have changed since it started.

    DVC hashes settings and code when a stage ends, and would record changed ones for outputs of the old ones. `settings`
    are those at the start and now. `what` names the run or the search. `code` is what `sources` returned at the start.
    `undo` is the remedy for changed settings, `record` for changed code.
    """
    before, now = settings
    if before != now:
        raise UserError(f"params.yaml: the settings of {what} changed while the stage ran; {undo}")

    def same(path: Path, old: bytes) -> bool:
        return path.exists() and ((new := path.read_bytes()) == old or same_syntax(old, new, {}))

    if changed := [name_of(path) for path, old in code.items() if not same(path, old)]:
        raise UserError(f"{', '.join(sorted(changed))} changed while the stage ran; {record}")


def folder(run: str, key: str) -> Path:
    return WORK / run / key[:16]


@contextmanager
def lock(run: str) -> Iterator[None]:
    """Lock the run's folder, so that two processes never write there at the same time.

    DVC's own lock is not enough, because a training may outlive the DVC process that started it. Raises UserError if
    another process holds the lock.
    """
    (WORK / run).mkdir(parents=True, exist_ok=True)
    with open(WORK / run / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another process uses {WORK / run} (it holds {file.name}); wait until it ends, or stop it"
            ) from None
        yield


def claim(run: str, key: str, code: str) -> tuple[Path, list[str]]:
    """Return the folder of the training, and the digests of the other code versions that trained in it.

    Adds `code` to code.json. Raises UserError if the folder has a state that another version of the code saved, and the
    user has not adopted it.
    """
    place = folder(run, key)
    history = history_of(place) if (place / "code.json").exists() else []
    if (place / STATE).exists() and history and history[-1] not in (code, "adopt"):
        raise UserError(
            f"{place} holds a state that another version of the code saved: `python -m pipeline.commands.adopt {run}` "
            f"resumes it with the current code, `python -m pipeline.commands.adopt {run} --anew` removes it"
        )
    earlier = [entry for entry in history if entry not in (code, "adopt")]
    write_json(place / "code.json", [*earlier, code])
    return place, earlier


def history_of(place: Path) -> list[str]:
    """Return the digests of the code versions that trained in `place`, and "adopt" if the state was adopted since."""
    path = place / "code.json"
    return list(convert(tuple[str, ...], read_json(path), str(path)))


def adopt(run: str) -> None:
    """Let the next start resume the run's unfinished trainings, whatever code made them."""
    for place in unfinished(run):
        write_json(place / "code.json", [*history_of(place), "adopt"])


def unfinished(run: str) -> list[Path]:
    """The folders of the run's trainings that have saved a state."""
    return sorted(state.parent for state in (WORK / run).glob(f"*/{STATE}"))


def remove(place: Path) -> None:
    """Remove the folder of a training.

    The state is removed first, because after a kill a state without its weights would be resumed as a finished training.
    Without a state, the other files do no harm. An error in their removal is therefore ignored.
    """
    (place / STATE).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)


def release(run: str) -> None:
    """Remove the folders of all trainings of the run, for `adopt --anew`."""
    for path in (WORK / run).iterdir():
        if path.is_dir():
            remove(path)
