"""Earlier versions of modules, from git."""

import hashlib
import io
import subprocess
from collections.abc import Collection


def modules(sums: Collection[str]) -> dict[str, bytes]:
    """Return the contents of the Python files in git's history whose md5 is in `sums`, by md5."""
    try:
        listed = git("rev-list", "--objects", "--all").decode().splitlines()
        names = {line.split(" ")[0] for line in listed if line.endswith(".py")}
        content = io.BytesIO(git("cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode()))
    except (OSError, subprocess.SubprocessError):  # no git, no repository, or a timeout
        return {}
    found = {}
    while head := content.readline():  # git prints for each object: a line (name, type, size), its content, a line feed
        blob = content.read(int(head.split()[-1]))
        content.read(1)
        if (md5 := hashlib.md5(blob, usedforsecurity=False).hexdigest()) in sums:
            found[md5] = blob
    return found


def git(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(["git", *arguments], input=given, capture_output=True, check=True, timeout=60).stdout
