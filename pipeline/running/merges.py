"""Refuses a file in git that a merge or an editor left damaged, before a stage writes it anew."""

import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipeline.settings.params import require_resolved
from transformer.config.reading import UserError

MENDED = "mend the file; `git checkout` restores the one that was committed"


def require_whole(path: Path) -> None:
    """Raise UserError, with the line, if a JSON file is damaged, has a key twice or has a conflict marker."""
    content = path.read_bytes()
    require_resolved(path, content)
    try:
        json.loads(content, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}; {MENDED}") from None
    except (ValueError, RecursionError):  # JSON is YAML, whose reader states the line of the second key
        parsed(path, content)


def require_all_whole() -> None:
    """Check the JSON files in git that stages write. They write them atomically, so a kill damages none."""
    for path in filter(Path.is_file, (Path("checksums.json"), *Path("results").rglob("*.json"))):
        require_whole(path)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError
    return found


def parsed(path: Path, content: bytes) -> Any:
    """Return the content of a YAML file. Raises UserError with the line of what is wrong."""
    require_resolved(path, content)
    try:
        return YAML(typ="safe").load(content)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        why = str(error.problem).partition(" with value")[0]
    except (YAMLError, ValueError, RecursionError) as error:
        line, why = 1, " ".join(str(error).split())
    raise UserError(f"{path}, line {line}: {why}; {MENDED}")
