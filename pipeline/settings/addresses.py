"""Addresses of files: paths and http(s) URLs, the sums that files are held to, and the names of archives."""

import re
import urllib.parse
from dataclasses import dataclass

from transformer.config.reading import UserError

TARS = {".tar": "", ".tgz": ".gz", ".tar.gz": ".gz", ".txz": ".xz", ".tar.xz": ".xz"}


@dataclass(frozen=True)
class Sum:
    kind: str  # sha256 or md5
    value: str
    origin: str  # the file that holds us to it


def is_url(address: str) -> bool:
    """True for a file's URL, False for a path; what `on_the_web` refuses is refused, and an URL without a file name."""
    if not on_the_web(address):
        return False
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", file_name(address), re.ASCII):
        raise UserError(f"{address!r} is refused; an URL ends in a file name, as in .../dev.tgz")
    return True


def on_the_web(address: str) -> bool:
    """True for http and https, False for a path; any other scheme (file:, ftp:, ...) and a broken URL are refused."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", address)
    if scheme is None:
        return False
    if scheme[1].lower() not in ("http", "https"):
        raise UserError(f"{address!r}: {scheme[1]}: is refused; an address is http://, https:// or a plain path")
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.hostname and parts.port != 0 and ".." not in parts.path.split("/")
    except ValueError:
        valid = False  # brackets that are no IPv6 address, a port that is no number
    if not valid:
        raise UserError(f"{address!r} is refused; an URL has a host and no .., as in https://host/dev.tgz")
    return True


def file_name(url: str) -> str:
    return urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]


def tar_suffix(name: str) -> str:
    """How the tar file `name` is packed."""
    for ending, suffix in TARS.items():
        if name.endswith(ending):
            return suffix
    raise UserError(f"{name}: not the name of an archive; it ends in {', '.join(TARS)}")
