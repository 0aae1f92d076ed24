"""The folder of an unfinished training: `work/<run>/<key>/`, ignored by git and DVC.

The key is a digest of the settings and the data: other settings start another training, and settings that are changed
back resume the old one. If only code has changed, the user decides what happens to the old state:

    python -m pipeline.commands.adopt RUN adopt     resume it with the new code; timing.json records the old code
    python -m pipeline.commands.adopt RUN anew      remove it
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
            f"{place} holds a state that other code made: `python -m pipeline.commands.adopt {run} adopt` resumes it "
            f"with the present code, `python -m pipeline.commands.adopt {run} anew` removes it"
        )
    earlier = [entry for entry in history if entry not in (code, "adopt")]
    write_json(place / "code.json", [*earlier, code])
    return place, earlier


def history_of(place: Path) -> list[str]:
    """The digests of the code that has worked there, and `adopt` where the user chose that."""
    path = place / "code.json"
    return list(convert(tuple[str, ...], read_json(path), str(path)))


def release(run: str) -> None:
    """Remove the folders of the run's trainings once one is published, so that no edit resumes a finished one."""
    for path in (WORK / run).iterdir():
        if path.is_dir():
            shutil.rmtree(path)
