"""The hash that identifies settings in the names of work folders, in score files and in MLflow."""

import hashlib
import json
from typing import Any


def digest(value: Any) -> str:
    """Return the sha256, in hexadecimal, of the JSON text of `value` with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
