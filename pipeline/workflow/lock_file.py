"""dvc.lock, which DVC does not write in one piece: a whole copy of it is kept, and put back where a kill left a part.

The copy may lack what finished last; DVC finds that in its cache of runs, and does it again where it does not.
"""

from pathlib import Path

from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from voluptuous import Invalid

from transformer.files import atomic

LOCK, KEPT = Path("dvc.lock"), Path("work/.dvc.lock")  # no name of a run starts with a dot


def whole(content: bytes) -> bool:
    """Whether DVC would take it; it takes an empty one, too, and then knows of nothing."""
    try:
        COMPILED_LOCKFILE_SCHEMA(lock := YAML(typ="safe").load(content))
    except (YAMLError, ValueError, Invalid):
        return False
    return bool(lock)


def keep_or_put_back() -> bool:
    """Keep a copy of a whole lock file, or put the copy back in the place of one that is not; true where it did that.

    To be called while DVC's lock is held, so that no other process is writing.
    """
    content = LOCK.read_bytes() if LOCK.exists() else None
    if content is None or ((damaged := not whole(content)) and not KEPT.exists()):
        return False
    with atomic(LOCK if damaged else KEPT) as file:
        file.write(KEPT.read_bytes() if damaged else content)
    return damaged
