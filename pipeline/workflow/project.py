"""DVC's view of the project, for the commands and the Snakefile. The import of DVC takes a second."""

import contextlib
import sqlite3
from collections.abc import Iterator

from dvc.exceptions import DvcException
from dvc.repo import Repo, lock_repo

from transformer.config.reading import UserError


@contextlib.contextmanager
def opened(locked: bool = True) -> Iterator[Repo]:
    """Open the project. If `locked`, wait until no other DVC process writes dvc.lock, which is not written atomically.

    Raises UserError if DVC cannot read the project, or cannot write its databases, for example on a full disk.
    """
    try:
        with Repo(_wait_for_lock=locked) as repo, lock_repo(repo) if locked else contextlib.nullcontext():
            yield repo
    except (DvcException, sqlite3.Error) as error:
        raise UserError(f"DVC: {error}" if isinstance(error, sqlite3.Error) else str(error)) from None
