"""Keeps a copy of dvc.lock and restores it. DVC writes dvc.lock non-atomically, so a killed process can truncate it.

The copy may lack the stages that finished last. DVC restores them from its run cache, or else runs them again.
"""

import re
from pathlib import Path

from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from voluptuous import Invalid

from transformer.config.reading import UserError
from transformer.files import atomic

LOCK, KEPT = Path("dvc.lock"), Path("work/.dvc.lock")  # not the folder of a run, whose name cannot start with a dot


def whole(content: bytes) -> bool:
    """Return whether this is a complete lock file. DVC accepts an empty file, too, and then finds every stage stale."""
    try:
        COMPILED_LOCKFILE_SCHEMA(lock := YAML(typ="safe").load(content))
    except (YAMLError, ValueError, Invalid):
        return False
    return bool(lock)


def keep_or_put_back() -> bool:
    """Copy a complete lock file, or restore a damaged one from the copy. Returns whether it was restored.

    The caller must hold DVC's lock, so that no other process is writing the file. Raises UserError for the conflict
    markers of git.
    """
    content = LOCK.read_bytes() if LOCK.exists() else None
    if content and re.search(rb"^<<<<<<< ", content, re.MULTILINE):
        raise UserError(f"{LOCK} has the conflict markers of a merge; resolve the conflict first")
    if content is None or ((damaged := not whole(content)) and not KEPT.exists()):
        return False
    with atomic(LOCK if damaged else KEPT) as file:
        file.write(KEPT.read_bytes() if damaged else content)
    return damaged
