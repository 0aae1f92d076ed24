"""Obtains files by path or http(s) URL. Each URL is downloaded only once.

Downloads are in `work/downloads/<host and hash of the URL>/<file name>`, and all corpora share them. The checksum of each
file is verified. A download gets its final name only after this. If no checksum was published, the checksum of the first
download is recorded in `checksums.json`, and later downloads must have it.
"""

import hashlib
import json
import os
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from filelock import AcquireReturnProxy, FileLock, Timeout
from urllib3.util.retry import Retry

from pipeline.running.progress import say
from pipeline.settings.addresses import TEXT, file_name, is_url, on_the_web
from pipeline.settings.download import Sum
from pipeline.text.archives import unpacked
from pipeline.text.transfer import PATIENT, Unavailable, record_path, transfer
from transformer.config.reading import UserError, convert
from transformer.files import sync_folder, write_json


@dataclass(frozen=True)
class Fetcher:
    mirror: str | None  # a folder or a URL prefix, tried before the URL itself
    downloads: Path = Path("work/downloads")  # the folder of all downloads
    checksums: Path = Path("checksums.json")  # the file of recorded checksums, which git tracks
    patience: Retry = PATIENT
    timeout: float = 60.0  # seconds without a byte after which an attempt fails

    def fetch(self, address: str, expected: Sum | None, *others: str) -> Path:
        """Return a file on this machine with the content of `address`. A URL is downloaded only if necessary.

        `others` are further URLs of the same file, tried in turn. Raises UserError if the file is missing, cannot be
        downloaded or has a wrong checksum. A download with a wrong checksum is renamed and kept.
        """
        if not is_url(address):
            return local(address, expected)
        place = self.downloads / folder_name(address) / file_name(address)
        with locked(place.with_name(place.name + ".lock")):
            value = recorded(self.checksums).get(address)
            expected = expected or (Sum("sha256", value, str(self.checksums)) if value else None)
            path = place if kept(place, expected) else self.obtain([address, *others], place, expected)
            if expected is None:
                self.record(address, digest(path, "sha256"))
        return path

    def obtain(self, urls: list[str], place: Path, expected: Sum | None) -> Path:
        """Return the file, with the right checksum: `place`, or a file in a mirror's folder, which is not copied.

        An address is skipped if it fails, lacks the file or has a file with a wrong checksum. A message on stderr gives the
        reason. If a mirror is a folder that lacks the file, there is no message.
        """
        addresses = [address for url in urls for address in mirrored(self.mirror, url)] + urls
        for address in addresses[:-1]:
            try:
                if is_url(address):
                    return self.download(address, place, expected)
                if Path(address).is_file():
                    require_sum(Path(address), address, expected)
                    say(f"{urls[0]}: using {address}")
                    return Path(address)
            except (Unavailable, WrongSum) as error:
                say(f"{error}; skipped")
        return self.download(addresses[-1], place, expected)

    def download(self, url: str, place: Path, expected: Sum | None) -> Path:
        """Download `url` to `place`. Raises WrongSum as `require_kept` does."""
        partial = place.with_name(place.name + ".partial")
        say(f"downloading {url}")
        if not transfer(url, partial, self.patience, self.timeout) and expected is None:
            raise Unavailable(
                f"{url}: the server does not state the length and no checksum is known, so truncation could not be "
                "detected; set a checksum in params.yaml, or machine.mirror to a folder with the file"
            )
        require_kept(partial, url, expected)
        os.replace(partial, place)
        record_path(partial).unlink(missing_ok=True)
        sync_folder(place.parent)
        return place

    def record(self, url: str, value: str) -> None:
        with locked(self.downloads / "checksums.lock"):
            write_json(self.checksums, dict(sorted({**recorded(self.checksums), url: value}.items())))
        say(f"{url}: sha256 {value} recorded in {self.checksums}")


class WrongSum(UserError):
    """The file does not have the expected checksum."""


def folder_name(url: str) -> str:
    """Return a short and safe name that is unique to the URL, because two sites may each have a `dev.tgz`."""
    host = re.sub(r"[^A-Za-z0-9.-]", "", urllib.parse.urlsplit(url).hostname or "")
    return f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


def mirrored(mirror: str | None, url: str) -> list[str]:
    """Return the addresses at which a mirror may have the file: under the path of its URL, and under its file name."""
    if mirror is None:
        return []
    if not on_the_web(mirror) and not Path(mirror).is_dir():
        raise UserError(f"params.yaml: machine.mirror: {mirror!r} is neither a folder nor an http(s) prefix")
    path = urllib.parse.urlsplit(url).path.lstrip("/")
    return [f"{mirror.rstrip('/')}/{tail}" for tail in dict.fromkeys((path, file_name(url)))]


def local(address: str, expected: Sum | None) -> Path:
    """Return the user's file, which may be a link. A linked folder below text/ is refused: DVC notices no change in it."""
    path = Path(address)
    for folder in path.parents:
        if folder.is_symlink() and folder != Path(TEXT):
            raise UserError(
                f"{address}: {folder} is a link to a folder, in which DVC notices no change; link each file instead"
            )
    if not path.is_file():
        why = "it is a folder, a pipe or a device" if path.exists() else f"relative to {Path.cwd()}"
        raise UserError(f"{address}: there is no such file ({why})")
    require_sum(path, address, expected)
    return path


def kept(place: Path, expected: Sum | None) -> bool:
    """Return whether `place` is a download with the right checksum. A damaged file is renamed."""
    if not place.exists():
        return False
    try:
        require_kept(place, str(place), expected)
    except WrongSum as error:
        say(f"{error} and downloaded again")
        return False
    return True


def require_kept(path: Path, address: str, expected: Sum | None) -> None:
    """Raise WrongSum as `require_sum` does, after the download has been renamed."""
    try:
        require_sum(path, address, expected)
    except WrongSum as error:
        aside = path.with_name(path.name.removesuffix(".partial") + ".wrong-sum")
        os.replace(path, aside)
        record_path(path).unlink(missing_ok=True)
        raise WrongSum(f"{error}; the file is kept as {aside}") from None


def require_sum(path: Path, address: str, expected: Sum | None) -> None:
    """Raise WrongSum unless the file at `path`, which came from `address`, has the expected checksum."""
    if expected is None:
        return
    try:
        found = digest(path, expected.kind, expected.unpacked)
    except UserError as error:  # not a valid compressed file
        raise WrongSum(str(error)) from None
    if found != expected.value:
        raise WrongSum(f"{address}: its {expected.kind} is {found}, but {expected.origin} has {expected.value}")


def digest(path: Path, kind: str, unpack: bool = False) -> str:
    """Return the checksum of the file. With `unpack`, a compressed file is decompressed first."""
    if not unpack:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, kind).hexdigest()
    result = hashlib.new(kind)
    with unpacked(path) as stream:
        for chunk in stream:
            result.update(chunk)
    return result.hexdigest()


def recorded(path: Path) -> dict[str, str]:
    try:
        return convert(dict[str, str], json.loads(path.read_bytes()), "its content") if path.exists() else {}
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a mapping from URLs to sha256 sums: {error}; restore it from git") from None


def locked(path: Path) -> AcquireReturnProxy:
    """Lock `path` against other processes in a `with` block. If the process is killed, the kernel releases the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()  # raises where filelock would wait for ever
    lock = FileLock(path)
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        say(f"waiting for the process that holds the lock {path}")
        return lock.acquire()
