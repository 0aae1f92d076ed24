"""The names in params.yaml. A name is used in the names of folders and stages and in commands."""

import re
from typing import Any

from transformer.config.reading import UserError, shown


def require_name(name: Any, where: str) -> None:
    """Refuse a name with a character that has a meaning in paths, in a shell or in DVC's keys of params.yaml (`a.b`)."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UserError(
            f"{where}: {shown(name)} is not a valid name; a letter or digit is expected, then letters, digits, - and _"
        )
