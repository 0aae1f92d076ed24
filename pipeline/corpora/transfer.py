"""Downloads one URL into one partial file over HTTP, with resuming, retries with back-off and a timeout.

A small record beside the partial file holds the size of the file and its ETag or Last-Modified date, as the server
stated them. A later attempt, also in another process, resumes only if these values are unchanged.
"""

import email.utils
import os
import re
import shutil
import sys
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.workflow.progress import Progress
from transformer.config.reading import UserError
from transformer.files import read_json, write_json

CHUNK = 1 << 14  # bytes; a lost connection loses at most this many
LONGEST_WAIT = 60.0  # seconds; the longest back-off
LONGEST_RETRY_AFTER = 600.0  # seconds; the longest wait if the server states a time
NUMBER = "[0-9]{1,19}"  # a number of bytes or seconds in a header
TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class Unavailable(UserError):
    """The file cannot be downloaded from this address. Another address may have it."""


class Interrupted(Exception):
    """An attempt failed, but the next may succeed. `wait` is in seconds, or None if the server stated no time."""

    def __init__(self, reason: str, wait: float | None = None):
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    attempts: int  # give up after this many failures in a row; a failure after new bytes restarts the count at 1
    timeout: float  # seconds without a byte after which an attempt fails
    sleep: Callable[[float], None]


PATIENT = Patience(attempts=6, timeout=60.0, sleep=time.sleep)


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def transfer(url: str, partial: Path, patience: Patience) -> bool:
    """Complete `partial` from `url`. Returns whether truncation would be detected (a stated length, or chunked encoding).

    Raises Unavailable if the server refuses, redirects to a URL that is not http(s), or fails too often in a row.
    """
    failures = 0
    while True:
        before = size_of(partial)
        try:
            return attempt(url, partial, patience.timeout)
        except Interrupted as interruption:
            failures = 1 if size_of(partial) > before else failures + 1
            if failures == patience.attempts:
                raise Unavailable(f"{url}: gave up after {failures} attempts ({interruption}); {ADVICE}") from None
            wait = min(LONGEST_WAIT, 2.0 ** (failures - 1)) if interruption.wait is None else interruption.wait
            say(f"{url}: {interruption}; next attempt in {wait:.0f} s, {size_of(partial):,} bytes downloaded")
            patience.sleep(wait)


ADVICE = "run again to resume, or set machine.mirror in params.yaml to a folder or URL that has the file"


def attempt(url: str, partial: Path, timeout: float) -> bool:
    """Make one request for the bytes that `partial` lacks. Returns the same value as `transfer`."""
    import requests
    import urllib3

    record = record_of(partial, url)
    have = size_of(partial) if record else 0
    if have and have == record["size"]:
        return True
    # `identity` rules out a content encoding: a .tgz must arrive as the bytes of the file.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": record["validator"]} if record["validator"] else {})
    refusals = (requests.exceptions.InvalidURL, requests.exceptions.TooManyRedirects)
    waits = (min(timeout, 20.0), timeout)
    try:
        with requests.get(
            url, headers=headers, stream=True, timeout=waits, hooks={"response": refuse_redirect}
        ) as response:
            start, size = placed(response, url, partial, have, record)
            receive(response, url, partial, start, size)
            return size is not None or response.headers.get("Transfer-Encoding") == "chunked"
    except refusals as error:
        raise Unavailable(f"{url}: {brief(error)}; {ADVICE}") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Interrupted(brief(error)) from None


def refuse_redirect(response: Any, **_: Any) -> None:
    """Raise Unavailable for a redirect to anything but http(s). A server must not make this machine read `file:` URLs."""
    if not response.is_redirect:
        return
    location = response.headers["location"]
    try:  # requests decodes the location in the same way
        target = urllib.parse.urlsplit(urllib.parse.urljoin(response.url, location.encode("latin-1").decode()))
        valid = target.scheme in ("http", "https") and target.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise Unavailable(f"{response.url}: redirects to {location!r}, which is not an http or https URL; refused")


def placed(response: Any, url: str, partial: Path, have: int, record: dict) -> tuple[int, int | None]:
    """Return the offset of the response's body in the file, and the size of the whole file if the server states it."""
    status, told = response.status_code, response.headers
    if status in TRANSIENT:
        raise Interrupted(f"status {status} {response.reason}", retry_after(told.get("Retry-After")))
    if status == 206 and have:
        match = re.fullmatch(rf"bytes ({NUMBER})-\d+/({NUMBER})", told.get("Content-Range", ""))
        if match and int(match[1]) == have and record["size"] in (None, int(match[2])):
            return have, int(match[2])
    if status in (206, 416):
        partial.unlink(missing_ok=True)
        raise Interrupted("the partial file does not match the server's file, starting again", wait=0.0)
    if status != 200:
        raise Unavailable(f"{url}: status {status} {response.reason}; is the address right? {ADVICE}")
    if have:
        say(f"{url}: the server cannot resume, starting again")
    length = told.get("Content-Length")
    if length is not None and not re.fullmatch(NUMBER, length):
        raise Unavailable(f"{url}: the server states Content-Length {length[:40]!r}, a number is expected; {ADVICE}")
    return 0, None if length is None else int(length)


def receive(response: Any, url: str, partial: Path, start: int, size: int | None) -> None:
    """Write the body into `partial` from byte `start` on."""
    if start == 0:  # the file is emptied before the record is written, so that the record never describes older bytes
        partial.write_bytes(b"")
        validator = response.headers.get("ETag", "W/")
        validator = response.headers.get("Last-Modified") if validator.startswith("W/") else validator
        write_json(record_path(partial), {"url": url, "size": size, "validator": validator})
    free = shutil.disk_usage(partial.parent).free
    if size is not None and size - start > free:
        raise UserError(f"{url}: {size - start:,} bytes remain to download, but {partial.parent} has {free:,} bytes free")
    bar = Progress(total=size, initial=start, unit="B", unit_scale=True, desc=partial.stem)
    with open(partial, "ab") as file, bar:
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            file.write(chunk)
            bar.update(len(chunk))
        file.flush()
        os.fsync(file.fileno())
    if size is not None and size_of(partial) != size:
        raise Interrupted(f"received {size_of(partial):,} of {size:,} bytes")


def retry_after(value: str | None) -> float | None:
    """Return the seconds to wait that a Retry-After header (a number or a date) states, or None if it is not valid."""
    if value is None:
        return None
    if re.fullmatch(NUMBER, value.strip()):
        return min(float(value), LONGEST_RETRY_AFTER)
    try:
        seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def record_path(partial: Path) -> Path:
    return partial.with_name(partial.name + ".json")


def record_of(partial: Path, url: str) -> dict:
    """Return the record of `partial`, or {} if either file is missing, or the record is not JSON or of another URL."""
    try:
        record = read_json(record_path(partial))
    except (FileNotFoundError, ValueError):
        return {}
    return record if partial.exists() and record.get("url") == url else {}


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def brief(error: BaseException) -> str:
    """Return the kind of a requests error and the message of its innermost cause, without the connection object."""
    cause = error
    while isinstance(inner := getattr(cause, "reason", None) or (cause.args or [None])[-1], BaseException):
        cause = inner
    message = re.sub(r"^\w*(<[^>]*>|\(host=[^)]*\)): ", "", str(cause))
    return f"{type(error).__name__}: {' '.join(message.split())[:300]}"
