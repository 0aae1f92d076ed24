"""Names that params.yaml gives: each is a folder, a part of a stage's name and a word of a command."""

import re
from typing import Any

from transformer.config.reading import UserError, shown


def require_name(name: Any, where: str) -> None:
    """Refuse what could lead out of a folder, mean something to a shell or split a key of params.yaml."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UserError(
            f"{where}: {shown(name)} is no name; letters, digits, - and _ are valid, a letter or digit first"
        )
