"""Files by path or by http(s) URL, held to their sums and kept, so that each is downloaded once.

Downloads lie in `work/downloads/<host and hash of the URL>/<file name>`, shared by all corpora. A file has its name
only once its sum held. A sum that was never published is recorded at the first download, in `checksums.json`.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.corpora.transfer import Patience, Unavailable, record_path, say, transfer
from pipeline.settings.addresses import Sum, file_name, is_url, on_the_web
from transformer.config.reading import UserError
from transformer.files import read_json, sync_folder, write_json


@dataclass(frozen=True)
class Fetcher:
    downloads: Path  # the folder they are kept in
    checksums: Path  # the tracked file of recorded sums
    mirror: str | None  # a folder or an URL prefix, asked first
    patience: Patience

    def fetch(self, address: str, expected: Sum | None) -> Path:
        """A file on this machine with the bytes of `address`, downloaded only if it is not here yet.

        Raises UserError for a missing file or a sum that does not hold; a download with a wrong sum is kept aside.
        """
        if not is_url(address):
            return local(address, expected)
        place = self.downloads / folder_name(address) / file_name(address)
        with locked(place.with_name(place.name + ".lock")):
            expected = expected or self.recorded(address)
            if not kept(place, expected):
                found, giver = self.obtain(address, place, expected)
                hold(found, giver, expected)
                if found.parent != place.parent:  # a mirror's folder: used where it lies
                    place = found
                else:
                    os.replace(found, place)
                    record_path(found).unlink(missing_ok=True)
                    sync_folder(place.parent)
            if expected is None:
                self.record(address, digest(place, "sha256"))
        return place

    def obtain(self, url: str, place: Path, expected: Sum | None) -> tuple[Path, str]:
        """The file, as a partial one beside `place` or in a mirror's folder, and the address that gave it."""
        partial = place.with_name(place.name + ".partial")
        for address in [*mirrored(self.mirror, url), url]:
            if not is_url(address):
                if Path(address).is_file():
                    say(f"{url}: taken from {address}")
                    return Path(address), address
                continue
            say(f"downloading {address}")
            try:
                length_told = transfer(address, partial, self.patience)
            except Unavailable as error:
                if address == url:
                    raise
                say(f"{error}; trying elsewhere")
                continue
            if not length_told and expected is None:
                raise UserError(
                    f"{address}: the server tells no length and no sum is known, so a cut would not be seen"
                )
            return partial, address
        raise AssertionError("the original address ends the loop")

    def recorded(self, url: str) -> Sum | None:
        value = read_sums(self.checksums).get(url)
        return None if value is None else Sum("sha256", value, str(self.checksums))

    def record(self, url: str, value: str) -> None:
        with locked(self.downloads / "checksums.lock"):
            write_json(self.checksums, dict(sorted({**read_sums(self.checksums), url: value}.items())))
        say(f"{url}: sha256 {value} recorded in {self.checksums}")


def folder_name(url: str) -> str:
    """Short, safe and different for different URLs: two sites may each have a `dev.tgz`."""
    host = re.sub(r"[^A-Za-z0-9.-]", "", urllib.parse.urlsplit(url).hostname or "")
    return f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


def mirrored(mirror: str | None, url: str) -> list[str]:
    """Where a mirror may have the file: under the path of its URL, or by its name alone."""
    if mirror is None:
        return []
    if not on_the_web(mirror) and not Path(mirror).is_dir():
        raise UserError(f"params.yaml: machine.mirror: {mirror!r} is neither a folder nor an http(s) prefix")
    path = urllib.parse.urlsplit(url).path.lstrip("/")
    return [f"{mirror.rstrip('/')}/{tail}" for tail in dict.fromkeys((path, file_name(url)))]


def local(path: str, expected: Sum | None) -> Path:
    if not Path(path).is_file():
        raise UserError(f"{path}: there is no such file (from {Path.cwd()})")
    if expected is not None and (found := digest(Path(path), expected.kind)) != expected.value:
        raise UserError(wrong_sum(path, found, expected))
    return Path(path)


def kept(place: Path, expected: Sum | None) -> bool:
    """Whether a good download is here already. One that went bad on the disk is put aside."""
    if not place.exists():
        return False
    if expected is None or digest(place, expected.kind) == expected.value:
        return True
    say(f"{place} has not the sum of {expected.origin} any more; kept as {set_aside(place)}, downloading anew")
    return False


def hold(found: Path, address: str, expected: Sum | None) -> None:
    """Refuse a new download with a wrong sum. A partial file is put aside; what a mirror's folder has stays there."""
    if expected is None or (value := digest(found, expected.kind)) == expected.value:
        return
    ours = found.suffix == ".partial"
    aside = set_aside(found) if ours else found
    raise UserError(f"{wrong_sum(address, value, expected)}; the file is {'kept as' if ours else 'in'} {aside}")


def set_aside(path: Path) -> Path:
    aside = path.with_name(path.name.removesuffix(".partial") + ".wrong-sum")
    os.replace(path, aside)
    record_path(path).unlink(missing_ok=True)
    return aside


def wrong_sum(address: str, found: str, expected: Sum) -> str:
    return f"{address}: its {expected.kind} is {found}, but {expected.origin} has {expected.value}"


def digest(path: Path, kind: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def read_sums(path: Path) -> dict[str, str]:
    try:
        sums = read_json(path) if path.exists() else {}
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}); restore it from git") from None
    if not isinstance(sums, dict) or not all(isinstance(value, str) for value in sums.values()):
        raise UserError(f"{path} is no mapping of URLs to sha256 sums; restore it from git")
    return sums


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path` against other processes. The lock goes with its process, so a kill leaves nothing to clear."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
