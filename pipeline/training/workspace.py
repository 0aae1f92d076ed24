"""The folder of an unfinished training: `work/<run>/<key>/`, ignored by git and DVC.

The key is a hash of the settings and the data. Another setting therefore starts another training, and an edit that is
undone finds the old one again. If only code has changed, the user decides (pipeline/commands/adopt.py).
"""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.settings.digest import digest
from transformer.config.reading import UserError, convert
from transformer.files import read_json, write_json

WORK = Path("work")


def code_digest(modules: list[str]) -> str:
    """A digest of these source files."""
    return digest({Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in sorted(modules)})


def folder(run: str, key: str) -> Path:
    return WORK / run / key[:16]


@contextmanager
def lock(run: str) -> Iterator[None]:
    """Lock the run's folder. A training may outlive the DVC that started it, and a second one must not write there."""
    (WORK / run).mkdir(parents=True, exist_ok=True)
    with open(WORK / run / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"run {run!r} is being trained by another process (it holds {file.name}); wait or stop it"
            ) from None
        yield


def claim(run: str, key: str, code: str) -> tuple[Path, list[str]]:
    """The training's folder, and the digests of other code that has worked in it.

    Raises UserError if the last state was made by other code that the user has not adopted.
    """
    place = folder(run, key)
    history = history_of(place) if (place / "code.json").exists() else []
    if (place / "state.safetensors").exists() and history and history[-1] not in (code, "adopt"):
        raise UserError(
            f"{place} holds a state that other code made: `python -m pipeline.commands.adopt {run}` goes on from it "
            f"with the code of now, `python -m pipeline.commands.adopt {run} --anew` removes it"
        )
    earlier = [entry for entry in history if entry not in (code, "adopt")]
    write_json(place / "code.json", [*earlier, code])
    return place, earlier


def history_of(place: Path) -> list[str]:
    """The digests of the code that has worked there, and `adopt` where the user chose that."""
    path = place / "code.json"
    return list(convert(tuple[str, ...], read_json(path), str(path)))


def adopt(run: str) -> None:
    """Let the next start go on from the run's unfinished trainings, whatever code made them."""
    for state in (WORK / run).glob("*/state.safetensors"):
        write_json(state.parent / "code.json", [*history_of(state.parent), "adopt"])


def release(run: str) -> None:
    """Remove the folders of the run's trainings once one is published, so that no edit resumes a finished one."""
    for path in (WORK / run).iterdir():
        if path.is_dir():
            shutil.rmtree(path)
