"""Atomic writing: a process killed at any moment leaves the old file or the new one, never a part of one."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from transformer.config.reading import UserError

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # the system's numbers for what cannot be written any more


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Give an error of a full disk or quota, or of a file that is too large, the name of what is written: `path`.

    Python names a file only if opening it fails.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path for a file or folder that takes the place of `path` at the end of the `with` block.

    An exception in the block removes it. The next call for `path` removes what a killed process left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary, old = temporary_for(path), temporary_for(path.with_name(f"{path.name}.old"))
    try:
        with naming(path):
            yield temporary
        if temporary.is_dir() and (path.exists() or path.is_symlink()):
            os.rename(path, old)
        os.replace(temporary, path)
        remove(old)
    except BaseException:
        remove(temporary)
        raise
    sync_folder(path.parent)


@contextlib.contextmanager
def atomic(path: Path, mode: str = "wb") -> Iterator[IO]:
    """A temporary file, open for writing, that replaces `path` at the end of the `with` block (see `replacing`)."""
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    with replacing(Path(path)) as temporary, open(temporary, mode, encoding=encoding, newline=newline) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder or file to disk. The names in the folder, or the content of the file, then survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, atomically. Text is written in UTF-8."""
    with atomic(path, "w" if isinstance(content, str) else "wb") as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_file(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises UserError if it is not JSON, and FileNotFoundError if it is missing."""
    with open(path, encoding="utf-8-sig") as file:  # an editor may put a byte-order mark first
        try:
            return json.load(file)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} is damaged: {error}; make it again or remove it") from None


def sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: Any) -> str:
    """Return the sha256, in hexadecimal, of the JSON text of `value` with sorted keys.

    It identifies settings in the names of work folders, in score files and in MLflow.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A new, empty folder that replaces `path` at the end of the `with` block (see `replacing`).

    A process killed meanwhile leaves the old folder, the new one or none, never a part of one.
    """
    with replacing(Path(path)) as temporary:
        temporary.mkdir()
        yield temporary
        for path_within in temporary.rglob("*"):
            sync_folder(path_within)
        sync_folder(temporary)


def remove(path: Path) -> None:
    """Remove a file, a folder with its content, or a symbolic link but not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


HOST = re.sub(r"\W", "-", platform.node())


def temporary_for(path: Path) -> Path:
    """The path of a temporary file or folder of this process."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.partial")


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files and folders of processes that were killed while writing `path`.

    Those of another host, which may share the folder, stay: its processes are not known here.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        *_, host, process, _ = left.name.split(".")
        if host == HOST and process.isdigit() and not running(int(process)):
            remove(left)


def running(process: int) -> bool:
    """Whether `process` is the id of another running process. A leftover with our own id is of an earlier process."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()
