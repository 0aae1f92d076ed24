"""Where files come from: an http or https URL, or a path below text/."""

import re
import urllib.parse
from pathlib import PurePath, PurePosixPath
from typing import Annotated

from transformer.config.reading import UserError

TEXT = "text"  # the folder of the user's own text; every download stage in dvc.yaml depends on it
DEMONSTRATION = f"{TEXT}/demo"  # the sentence pairs that come with the project


def require_address(address: str) -> None:
    """Refuse an address that is neither the http(s) URL of a file nor a path below text/, and a name of `left_beside`.

    DVC notices a change of a file below text/. It would not notice a change elsewhere.
    """
    path = PurePosixPath(address)
    below = not path.is_absolute() and path.parts[:1] == (TEXT,) and len(path.parts) > 1 and ".." not in path.parts
    if not is_url(address) and not below:
        raise UserError(
            f"{address!r} is refused; put the file or a link to it into the folder {TEXT}/ and name it "
            f"{TEXT}/{path.name or 'my.en'}, or give an http(s) URL (DVC does not notice changes elsewhere)"
        )
    if below and left_beside(path):
        raise UserError(f"{address!r} is refused; DVC ignores such names (.dvcignore), so another name is expected")


def left_beside(path: PurePath) -> bool:
    """Return whether a path has a name that programs give to files beside those of the user, and that DVC ignores."""
    return any(re.fullmatch(r"\.#.*|\..*\.sw.|.*~|.*\.partial", part, re.DOTALL) for part in path.parts)


def is_url(address: str) -> bool:
    """Return True for the URL of a file and False for a path.

    Raises UserError for an address that `on_the_web` refuses, for a URL that does not end in a file name, and for that of a
    page that shows a file.
    """
    url = on_the_web(address)
    if shown := re.match(
        r"https?://(huggingface\.co|github\.com)/(datasets/)?[^/]+(/[^/]+)?/blob/", address, re.IGNORECASE
    ):
        folder = "resolve" if "hugging" in shown[1].lower() else "raw"
        raise UserError(f"{address!r} is a page about a file; the address of the file has /{folder}/ in place of /blob/")
    if url and not re.fullmatch(r"[A-Za-z0-9][\w.+@%~,()-]*", file_name(address), re.ASCII):
        raise UserError(f"{address!r} is refused; a URL ends in a file name, as in .../dev.tgz")
    return url


def on_the_web(address: str) -> bool:
    """Return True for an http or https URL and False for a path.

    Raises UserError for another scheme (file:, ftp:, ...), and for a URL with an invalid host or port or a .. in its path.
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", address)
    if scheme is None:
        return False
    if scheme[1].lower() not in ("http", "https"):
        raise UserError(f"{address!r}: {scheme[1]}: is refused; an address is an http:// or https:// URL or a path")
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.hostname and parts.port != 0 and ".." not in parts.path.split("/")
    except ValueError:
        valid = False  # for example brackets without an IPv6 address, or a port that is not a number up to 65535
    if not valid:
        raise UserError(f"{address!r} is refused; a URL has a host and no .., as in https://host/dev.tgz")
    return True


def file_name(url: str) -> str:
    return urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]


def shards(address: str) -> list[str]:
    """Return the shards that `*-of-NNNNN` in an address stands for; any other address is one file."""
    count = re.search(r"\*-of-(\d{5})\b", address)
    return [address.replace("*", f"{number:05}", 1) for number in range(int(count[1]))] if count else [address]


Address = Annotated[str, require_address]
FileAddress = Annotated[str, lambda address: list(map(require_address, shards(address)))]
Mirror = Annotated[str, lambda prefix: on_the_web(prefix) or True]  # a folder is valid, too
