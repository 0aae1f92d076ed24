"""The names in params.yaml. A name is used in the names of folders and stages and in commands."""

import re
from typing import Any

from transformer.config.reading import UserError, shown


def require_name(name: Any, where: str) -> None:
    """Refuse a name that could lead out of a folder, has a meaning in a shell or splits a key of params.yaml."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UserError(
            f"{where}: {shown(name)} is not a valid name; a letter or digit is expected, then letters, digits, - and _"
        )
