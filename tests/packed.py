"""Archives for tests, and what stands in a folder."""

import io
import tarfile


def build(path, files, mode="w:gz", before=(), after=()):
    """A tar of `files` {name: bytes}, with empty members (TarInfo) before and after them."""
    with tarfile.open(path, mode) as tar:
        for member in before:
            tar.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in after:
            tar.addfile(member)
    return path


def snapshot(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}
