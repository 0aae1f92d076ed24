"""Repairs `dvc.lock` and `.dvc/tmp/rwlock` after processes were killed. DVC writes both files non-atomically."""

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from dvc import dvcfile
from dvc.fs import localfs
from dvc.rwlock import RWLockFileCorruptedError, RWLockFileFormatError, _edit_rwlock
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from dvc.utils.serialize import dumps_yaml, load_yaml
from dvc.utils.strictyaml import YAMLValidationError, validate

from pipeline.orchestrating.project import invalid
from pipeline.running.merges import MENDED, parsed
from pipeline.settings.score_files import within
from transformer.config.reading import UserError
from transformer.files import write_file

LOCK, KEPT = Path("dvc.lock"), Path("work/.dvc.lock")  # not the folder of a run: no name of a run starts with a dot
RWLOCK = Path(".dvc/tmp/rwlock")
PATIENCE = 5.0  # seconds that a killed process may take to end, because freeing much memory takes time


def write_atomically() -> None:
    """Let DVC write dvc.lock atomically in this process. Before that, it then also reads it by a fast parser.

    DVC's own parser is slow, because it keeps comments. dvc.lock has none.
    """
    dvcfile.modify_yaml = lock_file


@contextlib.contextmanager
def lock_file(path: str, fs: Any) -> Iterator[dict[str, Any]]:
    """The content of dvc.lock, which is written when the block ends, atomically: DVC itself would truncate it first."""
    content = load_yaml(path, fs=fs) if fs.exists(path) else {}
    yield content
    write_file(Path(path), dumps_yaml(content))


def fault(content: bytes) -> str:
    """Return what is wrong with a lock file, with the line, or "". One that ends after a whole output counts as complete.

    DVC accepts a file that ends within the last stage or within a value. For the stages that such a file lacks, DVC finds
    that they never ran.
    """
    try:
        read = validate(parsed(LOCK, content), COMPILED_LOCKFILE_SCHEMA, content.decode(errors="replace"), str(LOCK))
    except UserError as error:
        return str(error)
    except YAMLValidationError as error:
        return invalid(error)
    stages = read.get("stages", {})
    last = next(reversed(stages), "")
    end = f"{LOCK}, line {len(content.splitlines())}: the file ends within {last or 'its first lines'}; {MENDED}"
    return "" if last and complete(stages[last]) else end


def entries(content: bytes) -> dict[str, Any]:
    """Return the stages of a lock file, or {} if it has none. Raises UserError, with the line, for what is no YAML."""
    stages = within(parsed(LOCK, content), "stages")
    return stages if isinstance(stages, dict) else {}


def complete(entry: Any) -> bool:
    """Return whether the entry of a stage in dvc.lock ends with a complete output, as DVC writes it."""
    outs = (entry.get("outs") if isinstance(entry, dict) else None) or []
    return bool(outs) and all(
        isinstance(out, dict)
        and {"path", "md5", "size"} <= out.keys()
        and str(out["md5"]).endswith(".dir") == ("nfiles" in out)
        for out in outs
    )


def cut_off(content: bytes, kept: bytes) -> bool:
    """Return whether a kill can have left this lock file, of which `kept` is the last complete one.

    DVC writes the whole file anew, with the stages in their order and new ones at the end. What a kill leaves is therefore
    complete stages in the order of `kept`, and the beginning of the next one.
    """
    if kept.startswith(content):
        return True
    names = [*re.finditer(rb"^  [^ \n][^\n]*", content, re.MULTILINE)]
    if not names:
        return False
    head, (name, *lines) = content[: names[-1].start()], content[names[-1].start() :].split(b"\n")
    try:
        before, old = entries(head), list(entries(kept))
        rest = entries(b"stages:\n" + b"\n".join([name, *lines[:-1], b""])) if lines else {}
    except UserError:
        return False
    found = [*before, *rest]
    in_order = all(one == other for one, other in zip(found, old)) and len({*found}) == len(found)
    ended = content.endswith(b"\n") and any(map(complete, rest.values()))
    return in_order and not ended and not any(line[:4].strip() for line in lines) and all(map(complete, before.values()))


def keep_or_put_back(dry: bool = False) -> str:
    """Copy a complete lock file, or restore one that a kill cut off from the copy. Returns a line about the latter, or "".

    The copy may lack the stages that finished last. DVC restores them from its run cache, or else runs them again. The
    caller must hold DVC's lock, so that no other process is writing the file. Raises UserError for a file that is damaged
    otherwise, for example by a merge. A `dry` run writes nothing, and refuses a file that was cut off.
    """
    if not LOCK.exists():
        return ""
    content, kept = LOCK.read_bytes(), KEPT.read_bytes() if KEPT.exists() else b""
    wrong = fault(content)
    # The last number may be incomplete. An editor may leave out the last line end.
    partial = not content.endswith(b"\n") and kept.startswith(content) and kept != content + b"\n"
    if not wrong and not partial:
        if not dry:
            write_file(KEPT, content)
        return ""
    if not (kept and cut_off(content, kept)):
        raise UserError(wrong)
    if dry:
        raise UserError(f"{LOCK} was incomplete after a kill; without --dry-run, it is restored")
    replaced = LOCK.with_name(f"{LOCK}.cut-{hashlib.sha256(content).hexdigest()[:8]}")
    write_file(replaced, content)
    write_file(LOCK, kept)
    return f"{LOCK} was incomplete after a kill; the last complete one was restored, and {replaced} is the incomplete one"


def clear_rwlock() -> None:
    """Empty DVC's list of the processes that read and write each path, once all of them have ended.

    DVC refuses to start if the list names a process that is ending or a zombie, or if only a part of the list was written.
    Waits up to PATIENCE seconds. If a process is still alive then, the list stays as it is.
    """
    deadline = time.monotonic() + PATIENCE
    while RWLOCK.exists():
        try:
            with _edit_rwlock(str(RWLOCK.parent), localfs, hardlink=False) as modes:  # locks out other processes
                readers, written = [info for infos in modes["read"].values() for info in infos], RWLOCK.stat().st_mtime
                if all(gone(info, written) for info in [*readers, *modes["write"].values()]):
                    return modes.update(read={}, write={})
        except (RWLockFileCorruptedError, RWLockFileFormatError):
            return RWLOCK.unlink(missing_ok=True)
        if time.monotonic() > deadline:
            return
        time.sleep(0.25)


def writing() -> dict[str, int]:
    """Return the paths that running DVC processes are writing, each with the id of its process.

    There are none if DVC's list does not exist or only a part of it was written.
    """
    try:
        write, written = json.loads(RWLOCK.read_bytes()).get("write", {}), RWLOCK.stat().st_mtime
    except (FileNotFoundError, ValueError):
        return {}
    return {name: info["pid"] for name, info in write.items() if info and not gone(info, written)}


def gone(info: Mapping[str, Any], written: float) -> bool:
    """Return whether a process of DVC's list, which was last written at the time `written`, has ended.

    A zombie has ended, too: its parent has not yet read its exit status. After a restart of the machine or the container,
    another process has its id: one that has started since, with other arguments.
    """
    try:
        process = psutil.Process(info["pid"])
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return True
        arguments = info["cmd"].partition(" ")[2]  # after the path of a script, which DVC takes from sys.argv
        return process.create_time() > written and not " ".join(process.cmdline()).endswith(arguments)
    except psutil.NoSuchProcess:
        return True
