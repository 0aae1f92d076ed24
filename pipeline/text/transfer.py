"""Downloads one URL into one partial file over HTTP, and resumes it. urllib3 repeats what fails, with back-off.

A small record beside the partial file holds the size of the file and its ETag or Last-Modified date, as the server
stated them. A later attempt, also in another process, resumes only if these values are unchanged.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import MaxRetryError, ProtocolError
from urllib3.util.retry import Retry

from pipeline.running.progress import Progress, say
from transformer.config.reading import UserError
from transformer.files import naming, read_json, write_json

CHUNK = 1 << 14  # bytes; a lost connection loses at most this many
ADVICE = "run again to resume, or set machine.mirror in params.yaml to a folder or URL that has the file"


class Unavailable(UserError):
    """The file cannot be downloaded from this address. Another address may have it."""


class Patience(Retry):
    """urllib3's retries, which are said on stderr."""

    def sleep(self, response: Any = None) -> None:
        last, wait = self.history[-1], (self.get_retry_after(response) if response else None) or self.get_backoff_time()
        said = f"status {last.status}" if last.status else brief(last.error or Exception("failed"))
        say(f"{last.url}: {said}; next attempt in {wait:.0f} s")
        super().sleep(response)


PATIENT = Patience(
    total=5,  # further attempts; after new bytes, the count starts again
    status_forcelist=(408, 425, 429, 500, 502, 503, 504),
    backoff_factor=1.0,
    backoff_max=60.0,
    retry_after_max=600,
)


def transfer(url: str, partial: Path, patience: Retry = PATIENT, timeout: float = 60.0) -> bool:
    """Complete `partial` from `url`. Returns whether truncation would be detected (a stated length, or chunked encoding).

    An attempt fails after `timeout` seconds without a byte. Raises Unavailable if the server refuses, redirects to a URL
    that is not http(s), or fails too often in a row.
    """
    import requests  # takes a third of a second
    from requests.adapters import HTTPAdapter

    left = patience
    with requests.Session() as session:  # it has adapters for http and https only, so no redirect leads to a file
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=patience))
        while True:
            before = size_of(partial)
            try:
                return attempt(session, url, partial, timeout)
            except urllib3.exceptions.HTTPError as error:  # the body broke off
                try:
                    left = (patience if size_of(partial) > before else left).increment("GET", url, error=error)
                except MaxRetryError:
                    raise Unavailable(f"{url}: gave up ({brief(error)}); {ADVICE}") from None
                left.sleep()


def attempt(session: Any, url: str, partial: Path, timeout: float) -> bool:
    """Make one request for the bytes that `partial` lacks. Returns the same value as `transfer`."""
    record = record_of(partial, url)
    have = size_of(partial) if record else 0
    if have and have == record["size"]:
        return True
    # `identity` rules out a content encoding: a .tgz must arrive as the bytes of the file.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": record["validator"]} if record["validator"] else {})
    try:
        response = session.get(url, headers=headers, stream=True, timeout=(min(timeout, 20.0), timeout))
    except (OSError, ValueError, OverflowError) as error:  # of requests, of a redirect to no URL, of a date in a header
        raise Unavailable(f"{url}: {brief(error)}; {ADVICE}") from None
    with response:
        start, size = placed(response, url, partial, have, record)
        receive(response, url, partial, start, size)
        return size is not None or response.headers.get("Transfer-Encoding") == "chunked"


def placed(response: Any, url: str, partial: Path, have: int, record: dict) -> tuple[int, int | None]:
    """Return the offset of the response's body in the file, and the size of the whole file if the server states it."""
    status = response.status_code
    if status == 206 and have:
        match = re.fullmatch(rf"bytes {have}-\d+/([0-9]{{1,19}})", response.headers.get("Content-Range", ""))
        if match and record["size"] in (None, int(match[1])):
            return have, int(match[1])
    if status in (206, 416):
        partial.unlink(missing_ok=True)
        raise ProtocolError("the partial file does not match the server's file, starting again")
    if status != 200:
        raise Unavailable(f"{url}: status {status} {response.reason}; is the address right? {ADVICE}")
    if have:
        say(f"{url}: the server cannot resume, starting again")
    return 0, response.raw.length_remaining  # None without a valid length


def receive(response: Any, url: str, partial: Path, start: int, size: int | None) -> None:
    if start == 0:  # the file is emptied before the record is written, so that the record never describes older bytes
        partial.write_bytes(b"")
        validator = response.headers.get("ETag", "W/")
        validator = response.headers.get("Last-Modified") if validator.startswith("W/") else validator
        write_json(record_path(partial), {"url": url, "size": size, "validator": validator})
    free = shutil.disk_usage(partial.parent).free
    if size is not None and size - start > free:
        raise UserError(f"{url}: {size - start:,} bytes remain to download, but {partial.parent} has {free:,} bytes free")
    bar = Progress(total=size, initial=start, unit="B", unit_scale=True, desc=partial.stem)
    with naming(partial), open(partial, "ab") as file, bar:
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            file.write(chunk)
            bar.update(len(chunk))
        file.flush()
        os.fsync(file.fileno())
    if size is not None and size_of(partial) != size:
        raise ProtocolError(f"received {size_of(partial):,} of {size:,} bytes")


def record_path(partial: Path) -> Path:
    return partial.with_name(partial.name + ".json")


def record_of(partial: Path, url: str) -> dict:
    """Return the record of `partial`, or {} if there is none of this URL."""
    try:
        record = read_json(record_path(partial))
    except (FileNotFoundError, ValueError):
        return {}
    return record if record.get("url") == url else {}


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def brief(error: BaseException) -> str:
    """Return the kind of an error and the message of its innermost cause, without the connection object."""
    cause = error
    while isinstance(inner := getattr(cause, "reason", None) or (cause.args or [None])[-1], BaseException):
        cause = inner
    message = re.sub(r"^\w*(<[^>]*>|\(host=[^)]*\)): ", "", str(cause))
    return f"{type(error).__name__}: {' '.join(message.split())[:300]}"
